"""Context binaries that commands write: where they go, and what is said of them."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.shared.vendor_setup import say
from openqnn.errors import OutputError
from openqnn.formats.atomic import check_kind, check_place
from openqnn.formats.sniff import CONTEXT, EPCONTEXT

if TYPE_CHECKING:
    from openqnn.vendor.jobs import Compiled


def print_compiled(compiled: Compiled, file: Path | None) -> None:
    graphs = ", ".join(compiled.graphs)
    if file is None:
        say("note: no --binary_file: the graphs were compiled, and nothing was written")
        print(f"compiled {graphs}")
    else:
        print(f"{file}: {graphs}, {compiled.size:,} bytes")


def default_binary(given: str) -> Path:
    """A binary in the working folder, unless that is where a converter has put the model's weights."""
    target = Path(Path(given).with_suffix(".bin").name)
    if target.is_file() and tarfile.is_tarfile(target):
        hint = f"-o {target.stem}.context.bin, or any other name"
        raise OutputError(f"{target} holds the weights of a model: it would be lost", hint=hint)
    return target


def check_binary(target: Path, given: str, kind: str = "") -> None:
    """Before the work is done: that the result has a place, and not that of what it is made of."""
    check_place(target)
    if target.exists() and Path(given).exists() and target.samefile(given):
        raise OutputError(f"{target} is the source itself", hint="give another file for the result")
    check_kind(target, kind or (EPCONTEXT if target.suffix == ".onnx" else CONTEXT))
