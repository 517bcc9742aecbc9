"""Put every node of a graph to a library, one by one, without compiling anything.

It happens in a child process. A node that crashes or hangs the library gets that as its verdict, and the
rest goes on in a new child.
"""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.errors import BackendError
from openqnn.qnn.net import Net, NetNode
from openqnn.qnn.op_package_library import packages_for
from openqnn.qnn.options import DeviceOptions
from openqnn.vendor import jobs
from openqnn.vendor.library_worker import LibraryWorker, Name, shared_worker


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the library says about a node; `reason` is empty where it takes it."""

    node: NetNode
    reason: str = ""

    @property
    def ok(self) -> bool:
        return not self.reason


def validate_net(
    net: Net,
    library: Name,
    device: DeviceOptions | None = None,
    *,
    worker: LibraryWorker | None = None,
    timeout: float = 60.0,
) -> list[Verdict]:
    """A verdict for each node, in order. For HTP, `device` says for which SoC or architecture."""
    used = worker or shared_worker()
    reasons: dict[int, str] = {}

    def note(verdict: tuple[int, str]) -> None:
        reasons[verdict[0]] = verdict[1]

    packages = packages_for(str(library))
    while len(reasons) < len(net.nodes):
        left = [index for index in range(len(net.nodes)) if index not in reasons]
        known = len(reasons)
        try:
            used.ask(
                jobs.validate_nodes, library, timeout, note,
                net=net, nodes=left, device=device, packages=packages,
            )  # fmt: skip
        except BackendError as error:
            # Nothing to do with a node: the library does not even start.
            if len(reasons) == known and "validate" not in error.message and "tensors" not in error.message:
                raise
            reasons[next(index for index in left if index not in reasons)] = error.message
    return [Verdict(node, reasons[index]) for index, node in enumerate(net.nodes)]
