"""Opens a model of PyTorch, whatever it is: a file, an exported program, a module with example inputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from openqnn.errors import ModelError, UsageError
from openqnn.formats.sniff import look_of
from openqnn.frontends.dimensions import Dimensions
from openqnn.frontends.frontend import Importer as AnyImporter
from openqnn.frontends.frontend import head_of
from openqnn.frontends.torch.aliases import is_write, with_written_state
from openqnn.frontends.torch.archive import ArchiveKind, kind_of, open_archive
from openqnn.frontends.torch.importer import Importer, refs_of
from openqnn.frontends.torch.program import Program, ProgramNode, ProgramOutput, Ref

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
    libraries: Sequence[str] = (),
) -> AnyImporter:
    """An importer for a model, not yet run; `libraries` of custom ops are loaded first."""
    if isinstance(source, str | os.PathLike) and kind_of(source) is ArchiveKind.SCRIPT:
        from openqnn.frontends.torch.torchscript import open_script

        more = {"prune": prune, "keep_quant_nodes": keep_quant_nodes}
        return open_script(
            Path(cast("str | os.PathLike[str]", source)), dimensions, outputs, libraries, **more
        )
    if libraries:
        from openqnn.frontends.torch.torchscript import load_libraries

        load_libraries(libraries)
    more = {"prune": prune, "keep_quant_nodes": keep_quant_nodes}
    if isinstance(source, str | os.PathLike):
        return importer_of(open_program(source), dimensions, outputs, **more)
    from openqnn.frontends.torch.from_torch import exported_of, from_exported
    from openqnn.frontends.torch.onnx_fallback import FallbackImporter, onnx_importer

    exported = exported_of(source, example_inputs)
    first = importer_of(from_exported(exported, type(source).__name__), dimensions, outputs, **more)
    return FallbackImporter(first, lambda: onnx_importer(exported, dimensions, outputs, **more))


def importer_of(
    program: Program, dimensions: Dimensions, outputs: Sequence[str], *, prune: bool, keep_quant_nodes: bool
) -> Importer:
    program = with_written_state(labelled(program, list(dimensions.shapes)))
    return Importer(ended(program, outputs, prune), dimensions, keep_quant_nodes)


def labelled(program: Program, names: Sequence[str]) -> Program:
    """Inputs under the names that the user gives in order, where they are not the program's own."""
    outside = [i for i in program.inputs if not i.state and not i.is_number]
    if not names or len(names) != len(outside) or set(names) == {i.name for i in outside}:
        return program
    labels = dict(zip((i.name for i in outside), names, strict=True))
    inputs = tuple(replace(i, label=labels.get(i.name, "") if not i.state else "") for i in program.inputs)
    return replace(program, inputs=inputs)


def ended(program: Program, outputs: Sequence[str], prune: bool) -> Program:
    """The program up to the tensors that are asked for, without nodes that nobody needs."""
    known = {name for node in program.nodes for name in node.outputs if name}
    unknown = [name for name in outputs if name not in known]
    if unknown:
        close = get_close_matches(unknown[0], known, 3) or sorted(known)[:5]
        raise UsageError(f"the model has no tensor '{unknown[0]}'", hint=f"did you mean {', '.join(close)}?")
    if outputs:
        program = replace(program, outputs=tuple(ProgramOutput(Ref(name)) for name in outputs))
    writes = any(is_write(n.target) for n in program.nodes)
    return program if writes or not (prune or outputs) else replace(program, nodes=_needed(program))


def _needed(program: Program) -> tuple[ProgramNode, ...]:
    wanted = {ref.name for o in program.outputs for ref in refs_of(o.value)}
    kept: list[ProgramNode] = []
    for node in reversed(program.nodes):
        if wanted.intersection(node.outputs):
            kept.append(node)
            wanted |= {ref.name for a in node.arguments for ref in refs_of(a.value)}
    return tuple(reversed(kept))


def open_program(source: str | os.PathLike[str]) -> Program:
    """The program of a .pt2 file; ModelError for any other."""
    path = Path(source)
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
        entries = len(open_archive(path).entries)  # tells what is wrong with it
        raise ModelError(
            f"{path}: a zip archive of {entries} entries, but none that torch.export.save writes"
        )
    raise ModelError(f"{path}: not a PyTorch model", hint=look_of(head_of(path, 512)))


def example_needed() -> UsageError:
    return UsageError(
        "a module is converted with example inputs, which say its shapes",
        hint="openqnn.convert(module, example_inputs=(torch.randn(1, 3, 224, 224),))",
    )
