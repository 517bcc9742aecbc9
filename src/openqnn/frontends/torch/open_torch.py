"""Opens a model of PyTorch, whatever it is: a file, an exported program, a module with example inputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from openqnn.errors import ModelError, UsageError
from openqnn.formats.sniff import look_of
from openqnn.frontends.dimensions import Dimensions
from openqnn.frontends.frontend import head_of
from openqnn.frontends.torch.aliases import with_written_state
from openqnn.frontends.torch.archive import Archive, ArchiveKind, kind_of, open_archive
from openqnn.frontends.torch.importer import Importer
from openqnn.frontends.torch.program import Program

EXPORT = """export it where its class is at hand:
    model.load_state_dict(torch.load("weights.pt")); model.eval()
    program = torch.export.export(model, (example_input,))
    torch.export.save(program, "model.pt2")"""


def open_importer(
    source: Any,
    dimensions: Dimensions,
    outputs: Sequence[str],
    *,
    prune: bool,
    keep_quant_nodes: bool,
    example_inputs: Any = None,
) -> Importer:
    """An importer for a model, not yet run."""
    program = open_program(source, example_inputs)
    return Importer(with_written_state(program), dimensions, keep_quant_nodes)


def open_program(source: Any, example_inputs: Any = None) -> Program:
    if not isinstance(source, str | os.PathLike):
        from openqnn.frontends.torch.from_torch import program_of

        return program_of(source, example_inputs)
    return _from_file(Path(cast("str | os.PathLike[str]", source)))


def _from_file(path: Path) -> Program:
    from openqnn.frontends.torch.read_pt2 import read_pt2

    if not path.is_file():
        raise ModelError(f"{path}: {'a folder, not a file' if path.is_dir() else 'no such file'}")
    kind = kind_of(path)
    if kind is ArchiveKind.EXPORTED:
        return read_pt2(open_archive(path))
    if kind is ArchiveKind.PICKLE:
        raise ModelError(
            f"{path}: weights or a module as a pickle: it has no graph, and is not opened because unpickling"
            " runs whatever code is in it",
            hint=EXPORT,
        )
    if kind is ArchiveKind.OLD_EXPORTED:
        raise ModelError(
            f"{path}: an exported program of torch 2.7 or older, whose weights are a pickle",
            hint="load and save it with torch 2.9 or newer: torch.export.save(torch.export.load(old), new)",
        )
    if head_of(path, 2) == b"PK":
        archive: Archive = open_archive(path)  # tells what is wrong with it
        raise ModelError(
            f"{path}: a zip archive, but none that torch.export.save writes ({len(archive.entries)} entries)"
        )
    raise ModelError(f"{path}: not a PyTorch model", hint=look_of(head_of(path, 512)))


def example_needed() -> UsageError:
    return UsageError(
        "a module is converted with example inputs, which say its shapes",
        hint="openqnn.convert(module, example_inputs=(torch.randn(1, 3, 224, 224),))",
    )
