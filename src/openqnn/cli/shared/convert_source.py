"""What qnn-onnx-converter and its siblings for other frameworks have in common: everything but the source."""

from __future__ import annotations

import shutil
import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.shared.architecture_csv import check_converted_graph
from openqnn.cli.shared.converting import (
    BATCHNORM_FOLDING,
    DEAD_CODE,
    check_converted,
    check_input_names,
    check_source_name,
    converted_graph,
    dry_run,
    report_files,
    text_of,
)
from openqnn.cli.shared.io_options import custom_encodings, legacy_borders
from openqnn.cli.shared.quantizing import (
    LIKE_QNN,
    Asked,
    check_encodings,
    input_types,
    quantized,
    read_asked,
    write_encodings,
)
from openqnn.errors import OpenQnnWarning
from openqnn.options.converter import ConverterIo, ConverterOutput, ConverterSteps
from openqnn.options.field import read_options
from openqnn.options.later import LaterConverter, LaterQuantizer
from openqnn.options.packages import Checker, Packages
from openqnn.options.quantizer import KeptNodes, QuantizerChoices, QuantizerData, QuantizerEncodings

if TYPE_CHECKING:
    from openqnn.ir import Graph
    from openqnn.passes.boundary.layouts import Borders

# The option groups that follow a source's own.
CONVERTER_GROUPS = (
    ConverterIo, ConverterSteps, ConverterOutput, QuantizerData, QuantizerChoices, QuantizerEncodings,
    KeptNodes, Packages, Checker, LaterConverter, LaterQuantizer,
)  # fmt: skip


@dataclass(frozen=True)
class SourceRequest:
    """A model, the settings of `convert` that belong to it, and passes that are left out.

    `after` is called with the graph in floating point.
    """

    model: str
    settings: Mapping[str, Any]
    without: frozenset[str] = field(default_factory=frozenset)
    after: Callable[[Graph], None] | None = None


def _check_files(source: SourceRequest, target: Path, asked: Asked) -> None:
    """Refuses before the work begins what could not be read or written after it."""
    from openqnn.formats.encodings import read_encodings

    check_source_name(target)
    check_converted(target, Path(source.model))
    if asked.encodings.quantization_overrides:
        read_encodings(asked.encodings.quantization_overrides)  # also where it has no effect
    if asked.encodings.dump_encoding_json:
        check_encodings(target)


def _left_out(source: SourceRequest, steps: ConverterSteps) -> set[str]:
    """The passes that the options take out."""
    left_out = set(source.without)
    if steps.disable_batchnorm_folding:
        left_out.add(BATCHNORM_FOLDING)
    if steps.keep_disconnected_nodes:
        left_out.add(DEAD_CODE)
    return left_out


def _say_idle_quant_nodes(graph: Graph, kept: KeptNodes) -> None:
    if kept.keep_quant_nodes and not any(v.dtype.is_fixed for v in graph.values()):
        warnings.warn("--keep_quant_nodes: no effect, the model has none", OpenQnnWarning, stacklevel=3)


def convert_source(arguments: Namespace, command: str, source: SourceRequest) -> int:
    """Converts a model to model.cpp, model.bin and model_net.json by the groups of CONVERTER_GROUPS."""
    from openqnn.api.convert import describe_borders
    from openqnn.formats.custom_io import read_custom_io, write_custom_io

    io = read_options(arguments, ConverterIo)
    steps, output = read_options(arguments, ConverterSteps), read_options(arguments, ConverterOutput)
    packages = read_options(arguments, Packages)
    for group in (LaterConverter, LaterQuantizer):
        read_options(arguments, group)
    kept, asked = read_options(arguments, KeptNodes), read_asked(arguments)
    if any(kind != "layout" for kind, _ in io.preserve_io):  # files for calibration have these types, too
        asked = asked.with_native_files()
    settings = dict(source.settings)
    entries = read_custom_io(io.custom_io) if io.custom_io else []
    borders = legacy_borders(io, entries, fixed=asked.wanted)
    if io.dump_custom_io_config_template:
        inputs, outputs = describe_borders(source.model, **settings)
        write_custom_io(io.dump_custom_io_config_template, [*inputs, *outputs])
        print(f"{io.dump_custom_io_config_template}: {len(inputs)} inputs, {len(outputs)} outputs")
        return 0
    if steps.dry_run:
        return dry_run(source.model, settings, steps.dry_run)
    target = Path(output.output_path or Path(source.model).with_suffix(".cpp"))
    _check_files(source, target, asked)
    copyright_text = text_of(output.copyright_file)
    more = {
        **settings, "borders": borders, "without": _left_out(source, steps),
        "keep_quant_nodes": kept.keep_quant_nodes,
    }  # fmt: skip
    if not asked.wanted:
        more |= {"float_bits": output.float_bw, "bias_bits": output.float_bias_bw}
    graph = converted_graph(source.model, more, steps.debug)
    if source.after is not None:
        source.after(graph)
    check_input_names(graph, [name for name, _ in (*io.input_type, *io.input_dtype, *io.input_layout)])
    _say_idle_quant_nodes(graph, kept)
    told = graph
    if asked.wanted:
        told = quantized(
            graph, asked, LIKE_QNN, float_bw=output.float_bw, float_bias_bw=output.float_bias_bw,
            extra=input_types(dict(io.input_type))
            | custom_encodings(entries, graph, asked.choices.act_bw or LIKE_QNN.act_bw),
        )  # fmt: skip
        graph = _with_asked_types(told, graph, borders)
    elif not asked.encodings.ignore_encodings:
        _say_unused_encodings(graph)
    _write_source(graph, target, output, packages.package_name, copyright_text, command)
    _check_architecture(arguments, graph, target)
    if asked.encodings.dump_encoding_json:
        print(write_encodings(told, target))
    return 0


def _check_architecture(arguments: Namespace, graph: Graph, target: Path) -> None:
    if read_options(arguments, Checker).arch_checker:
        check_converted_graph(graph, target)


def _say_unused_encodings(graph: Graph) -> None:
    from openqnn.ir import MODEL

    count = sum(said.source == MODEL for said in graph.given.values())
    if count:
        warnings.warn(
            f"the model's own encodings, of {count} tensors, have no effect without --float_fallback or"
            " --input_list: the graph is in floating point",
            OpenQnnWarning,
            stacklevel=3,
        )


def _with_asked_types(fixed: Graph, real: Graph, borders: Borders) -> Graph:
    """Inputs and outputs in the types that were asked for: the quantizer stores them as it stores tensors."""
    from openqnn.ir.clone import clone_graph
    from openqnn.targets.htp.boundary import keep_types

    types = {v.name: v.dtype for v in (*real.inputs, *real.outputs)}
    asked = {n: t for n, t in types.items() if n in borders.dtypes or n in borders.keep_dtype}
    asked |= {n: stored for n, (stored, _) in borders.stored.items() if types[n].is_float}
    made = clone_graph(fixed)  # encodings are told of the one before
    keep_types(made, asked)
    found = {v.name: v.dtype for v in (*made.inputs, *made.outputs)}
    missed = {n: t for n, t in asked.items() if found.get(n, t) is not t}
    if missed:
        told = ", ".join(f"'{n}' is {found[n].label}, not {t.label}" for n, t in missed.items())
        warnings.warn(f"HTP has no way to types that were asked for: {told}", OpenQnnWarning, stacklevel=3)
    return made


def _write_dlc(graph: Graph, target: Path, package: str) -> None:
    """What some guides ask this tool for, in spite of its name for another."""
    from openqnn.api.files import save_dlc

    said = f"{target} is a DLC, as qairt-converter writes it; this tool's own files are model.cpp and .bin"
    warnings.warn(said, OpenQnnWarning, stacklevel=3)
    save_dlc(graph, target, package=package)
    report_files(graph, [target])


def _write_source(
    graph: Graph, target: Path, output: ConverterOutput, package: str, copyright_text: str, command: str
) -> None:
    from openqnn.emit import lower
    from openqnn.emit.model_source import SourceOptions, write_model_source
    from openqnn.formats.atomic import replacing_path, together

    if target.suffix == ".dlc":
        _write_dlc(graph, target, package)
        return
    options = SourceOptions(
        output.overwrite_model_prefix, output.exclude_named_tensors, package, copyright_text, command
    )
    with together():
        written = write_model_source([lower(graph)], target, options)
    if not target.suffix:  # the original writes the source under this very name
        with replacing_path(target) as temporary:
            shutil.copyfile(written.cpp, temporary)
    report_files(graph, [f for f in (written.cpp, written.bin, written.net_json) if f is not None])
