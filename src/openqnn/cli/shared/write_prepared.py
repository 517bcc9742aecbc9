"""Writing a DLC that keeps what was compiled from it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.errors import ModelError

if TYPE_CHECKING:
    from openqnn.qnn.context_info import ContextInfo
    from openqnn.qnn.net import Net


def write_prepared(source: Path, target: Path, binary: bytes, info: ContextInfo) -> None:
    """The DLC with a context binary of its graphs; ModelError where they are not the same graphs."""
    from openqnn.formats.atomic import replacing_path
    from openqnn.formats.dlc_contexts import add_context
    from openqnn.vendor.remote import read_dlc

    _check_same(source, read_dlc(source), info)
    with replacing_path(target) as temporary:
        shutil.copyfile(source, temporary)
        add_context(temporary, chip_of(info), binary)


def chip_of(info: ContextInfo) -> str:
    """The chip that a binary is for, by name where it has one."""
    from openqnn.errors import UsageError
    from openqnn.qnn.soc import find_soc

    try:
        return find_soc(info.soc_model).name
    except UsageError:
        return str(info.soc_model or "any")


def _check_same(source: Path, nets: Sequence[Net], info: ContextInfo) -> None:
    known = {net.name: net for net in nets}
    for graph in info.graphs:
        net = known.get(graph.name)
        if net is None:
            raise ModelError(
                f"the context is of graph '{graph.name}', and {source} has {', '.join(known)}",
                hint="give the DLC that the context was compiled from",
            )
        for names, tensors in ((net.inputs, graph.inputs), (net.outputs, graph.outputs)):
            if _shapes(net, names) != {t.tensor.name: tuple(t.tensor.dims) for t in tensors}:
                raise ModelError(
                    f"graph '{graph.name}' of {source} has other inputs or outputs than the context",
                    hint="give the DLC that the context was compiled from",
                )


def _shapes(net: Net, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(net.tensors[name].dims) for name in names}
