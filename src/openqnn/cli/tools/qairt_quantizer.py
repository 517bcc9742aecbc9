"""qairt-quantizer: a DLC file whose tensors are in fixed point."""

from __future__ import annotations

import sys
from argparse import Namespace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.command import Tool
from openqnn.cli.shared.quantizing import (
    LIKE_QNN,
    Asked,
    check_encodings,
    options_given,
    overrides_of,
    quantized,
    read_asked,
    recipe_for,
    warn,
    write_encodings,
)
from openqnn.errors import OutputError, UsageError
from openqnn.formats.dlc_metadata import COMMAND
from openqnn.formats.sniff import is_converted
from openqnn.options.field import read_options
from openqnn.options.later import LaterQuantizer
from openqnn.options.packages import OwnDeclarations
from openqnn.options.quantizer import (
    QairtQuantizerFiles,
    QuantizerChoices,
    QuantizerData,
    QuantizerEncodings,
)

if TYPE_CHECKING:
    from openqnn.ir import Given, Graph

BY_AIMET_ITSELF = (
    "param_quantizer", "param_quantizer_calibration", "param_quantizer_schema", "act_quantizer_schema",
    "use_per_channel_quantization", "use_per_row_quantization", "block_size",
)  # fmt: skip


def _check_target(source: Path, target: Path) -> None:
    if target.exists() and source.exists() and target.samefile(source):
        raise OutputError(f"{target} is the source itself", hint="give another file with --output_dlc")
    if target.exists() and not is_converted(target):
        raise OutputError(f"{target} exists and is no DLC", hint="give another file with --output_dlc")


def run_qairt_quantizer(arguments: Namespace, command: str) -> int:
    from openqnn.api.files import open_graph, save_dlc

    files, asked = read_options(arguments, QairtQuantizerFiles), read_asked(arguments)
    read_options(arguments, LaterQuantizer)
    source = Path(files.input_dlc)
    target = Path(files.output_dlc or source.with_suffix(".quantized.dlc"))
    if not asked.wanted:
        raise UsageError("there is nothing to quantize with", hint="--input_list FILE, or --float_fallback")
    _check_target(source, target)
    if asked.encodings.dump_encoding_json:
        check_encodings(target)
    if files.use_aimet_quantizer:
        _check_aimet(files, asked)
    opened = open_graph(source)
    graph = quantized(
        opened, asked, LIKE_QNN, float_bw=files.float_bitwidth, float_bias_bw=files.float_bias_bitwidth,
        extra=_by_aimet(opened, asked) if files.use_aimet_quantizer else None,
    )  # fmt: skip
    if files.preserve_io_datatype:
        graph = _with_source_types(graph, opened, set(chain(*files.preserve_io_datatype)))
    save_dlc(graph, target, metadata={COMMAND: command})
    print(f"{target}: {target.stat().st_size:,} bytes")
    if asked.encodings.dump_encoding_json:
        print(write_encodings(graph, target))
    if files.debug is not None:
        for name, origin in graph.provenance.items():
            print(f"{name}: {origin}", file=sys.stderr)
    return 0


def _with_source_types(fixed: Graph, real: Graph, names: set[str]) -> Graph:
    """The graph with inputs and outputs in the types of the source, all of them or those that are named.

    A DLC has `onnx__Relu_0` where its source had `onnx::Relu_0`: either is understood.
    """
    from openqnn.formats.input_list import meant_name
    from openqnn.ir.clone import clone_graph
    from openqnn.targets.htp.boundary import keep_types

    types = {v.name: v.dtype for v in (*real.inputs, *real.outputs)}
    names = {meant_name(name, list(types)) or name for name in names}
    unknown = sorted(names - types.keys())
    if unknown:
        hint = f"it has: {', '.join(types)}"
        raise UsageError(f"--preserve_io_datatype: there is no input or output '{unknown[0]}'", hint=hint)
    made = clone_graph(fixed)
    keep_types(made, {n: t for n, t in types.items() if not names or n in names})
    return made


def _check_aimet(files: QairtQuantizerFiles, asked: Asked) -> None:
    """Options that QNN's tool does not allow beside AIMET either."""
    given = {
        "--float_bitwidth": files.float_bitwidth != QairtQuantizerFiles.float_bitwidth,
        "--float_bias_bitwidth": files.float_bias_bitwidth is not None,
        "--restrict_quantization_steps": asked.choices.restrict_quantization_steps is not None,
        "--float_fallback": asked.encodings.float_fallback,
    }
    for name in (name for name, wrong in given.items() if wrong):
        raise UsageError(f"{name} cannot be given with --use_aimet_quantizer: leave one of them out")
    own = options_given(asked.choices, BY_AIMET_ITSELF)
    if own:
        warn(f"{', '.join(own)}: no effect, AIMET decides that itself")


def _by_aimet(graph: Graph, asked: Asked) -> dict[str, Given]:
    """AIMET's encodings; where an encodings file or the model says something else, that counts more."""
    from openqnn.api.quantize import prepared_for
    from openqnn.quant.aimet import aimet_encodings
    from openqnn.quant.samples import samples_of
    from openqnn.targets.registry import HTP

    recipe, known = recipe_for(asked.choices, LIKE_QNN, 32, None), asked.encodings
    prepared = prepared_for(graph, recipe, HTP)
    samples = samples_of(prepared, asked.data.input_list, native=asked.native)
    said = {} if known.ignore_encodings else dict(graph.given)
    if known.quantization_overrides:
        said |= overrides_of(graph, known.quantization_overrides)
    return aimet_encodings(prepared, samples, recipe) | said


TOOL = Tool(
    "qairt-quantizer",
    "Quantize a DLC file: a DLC whose tensors are in fixed point.",
    "--input_dlc MODEL.dlc (--input_list FILE | --float_fallback) [options]",
    (
        QairtQuantizerFiles,
        QuantizerData,
        QuantizerChoices,
        QuantizerEncodings,
        LaterQuantizer,
        OwnDeclarations,
    ),
    run_qairt_quantizer,
    examples=(
        "qairt-quantizer --input_dlc model.dlc --input_list inputs.txt --output_dlc fixed.dlc",
        "qairt-quantizer --input_dlc model.dlc --input_list inputs.txt"
        " --act_bitwidth 16 --output_dlc fixed.dlc",
    ),
)
