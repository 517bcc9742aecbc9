"""Context binaries for tests, from records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from openqnn.qnn.library import find_library
from openqnn.qnn.net import Net
from openqnn.qnn.options import DeviceOptions, GraphOptions
from openqnn.vendor.remote import compile_source
from openqnn.vendor.source import Source
from openqnn.vendor.target_setup import Target


def build_context(
    nets: Sequence[Net],
    path: str | Path,
    library: str | Path = "htp",
    *,
    device: DeviceOptions | None = None,
    options: Mapping[str, GraphOptions] | None = None,
) -> int:
    """Compile graphs into a file; gives its size in bytes."""
    target = Target(str(find_library(library)), device, graphs=options or {})
    return compile_source(Source(nets=tuple(nets)), target, file=str(path), timeout=600).size
