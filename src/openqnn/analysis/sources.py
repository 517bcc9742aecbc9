"""Any file that holds graphs, as plain QNN records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openqnn.api.files import open_graph
from openqnn.emit import lower
from openqnn.emit.read_net_json import read_net_json
from openqnn.errors import UsageError
from openqnn.formats.oqnn import is_oqnn
from openqnn.qnn.net import Net
from openqnn.vendor.remote import read_dlc, read_model_library
from openqnn.vendor.saver_library import read_saver
from openqnn.vendor.trust import check_trusted

NET_JSON = ".json"
_READERS = {".dlc": read_dlc, ".so": read_model_library, ".c": read_saver}
HOLDS_SEVERAL = (*_READERS, NET_JSON)
"""Suffixes of files that hold QNN records already, of one graph or more."""
_SECONDS = 300.0


def read_nets(path: str | os.PathLike[str], settings: Mapping[str, Any] | None = None) -> list[Net]:
    """The graphs of a file. `settings` are for models that are converted first; others have fixed shapes."""
    if Path(path).suffix == NET_JSON:
        return [_read_net_json(Path(path))]
    reader = _READERS.get(Path(path).suffix)
    if reader is not None:
        check_trusted(path)
        return reader(path, timeout=_SECONDS)
    return [lower(open_graph(path, **({} if is_oqnn(path) else settings or {})), idle=True)]


def _read_net_json(path: Path) -> Net:
    """The graph with its weights, where their file lies beside it under the name that converters give it."""
    weights = path.with_name(f"{path.stem.removesuffix('_net')}.bin")
    return read_net_json(path, weights if weights.is_file() else None)


def read_net(path: str | os.PathLike[str], graph: str = "", settings: Mapping[str, Any] | None = None) -> Net:
    """The only graph of a file, or the named one."""
    nets = read_nets(path, settings)
    if len(nets) == 1:
        return nets[0]
    names = [net.name for net in nets]
    chosen = next((net for net in nets if net.name == graph), None)
    if chosen is None:
        what = f"has no graph '{graph}'" if graph else "holds several graphs"
        raise UsageError(f"{path} {what}", hint=f"name one with --graph: {', '.join(names) or 'none'}")
    return chosen
