"""Measuring a graph on one of Qualcomm's libraries: what it tells of each node while it runs."""

from __future__ import annotations

from collections.abc import Mapping

from openqnn.emit import lower
from openqnn.ir import Graph
from openqnn.qnn.net import Array
from openqnn.qnn.profile import Level, ProfileEvent
from openqnn.vendor import jobs
from openqnn.vendor.library_worker import shared_worker
from openqnn.vendor.source import suited
from openqnn.vendor.target_setup import target_of

MEASURING = 600.0  # seconds


def execute_events(
    graph: Graph,
    arrays: Mapping[str, Array],
    library: str,
    soc: str | int | None = None,
    level: Level = Level.DETAILED,
    *,
    runs: int = 1,
) -> tuple[ProfileEvent, ...]:
    """Run a graph on arrays as it stores them, and give what the library measured in the last of the runs."""
    target = target_of(library, soc)
    names: dict[str, str] = {}
    made = suited(graph, target.library)
    net = lower(made, names)
    read = [value for value in made.inputs if value.name in names]
    inputs = {
        name: arrays[value.name].astype(value.dtype.numpy, copy=False).reshape(net.tensors[name].dims)
        for value, name in zip(read, net.inputs, strict=True)
    }
    return shared_worker().ask(
        jobs.execute_events, target.library, MEASURING,
        net=net, inputs=inputs, device=target.device, level=level, runs=runs,
    )  # fmt: skip
