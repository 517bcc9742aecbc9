"""What the quantizer's options mean, for every tool that has them."""

from __future__ import annotations

import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.metric_script import read_metric
from openqnn.cli.tool import Tool
from openqnn.errors import OpenQnnWarning, OutputError, UsageError
from openqnn.formats.atomic import check_place, replacing
from openqnn.formats.dlc_metadata import COMMAND
from openqnn.formats.sniff import is_converted
from openqnn.options.field import options_of, read_options
from openqnn.options.quantizer import (
    QairtQuantizerFiles,
    QuantizeOutput,
    QuantizerChoices,
    QuantizerData,
    QuantizerEncodings,
    QuantizeTarget,
)
from openqnn.quant.recipe import WEIGHT_WIDTHS, Method, Recipe, Scheme

if TYPE_CHECKING:
    from openqnn.api.quantize import Outcome
    from openqnn.ir import Given, Graph
    from openqnn.quant.algorithms.mixed_precision import Mixed

COMPARED = 8  # samples that a report is made from
BY_AIMET_ITSELF = (
    "param_quantizer", "param_quantizer_calibration", "param_quantizer_schema", "act_quantizer_schema",
    "use_per_channel_quantization", "use_per_row_quantization", "block_size",
)  # fmt: skip
# The last one has a word of its own.
OF_USE_WITHOUT_DATA = ("--ignore_encodings", "--dump_encoding_json", "--use_native_output_files")
ENCODINGS_VERSION = "0.6.1"  # the newest that every version of QNN's converters reads
# What QNN's own tools do unless they are told otherwise.
LIKE_QNN = Recipe(bias_bw=8, param=Scheme(), per_channel=False, per_row=False, headroom=False, wide=False)
QUANTIZERS: Mapping[str, tuple[Method, bool]] = {
    "tf": (Method.MIN_MAX, False),
    "symmetric": (Method.MIN_MAX, True),
    "enhanced": (Method.SQNR, False),
    "adjusted": (Method.ADJUSTED, False),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """The quantizer's part of a command line."""

    data: QuantizerData
    choices: QuantizerChoices
    encodings: QuantizerEncodings

    @property
    def wanted(self) -> bool:
        return bool(self.data.input_list) or self.encodings.float_fallback

    @property
    def native(self) -> bool:
        return self.data.use_native_input_files or self.data.use_native_dtype

    def with_native_files(self) -> Asked:
        return replace(self, data=replace(self.data, use_native_input_files=True))


def read_asked(arguments: Namespace, *, with_data: bool = False) -> Asked:
    """The options, checked against each other; `with_data` there is data of another kind than a list."""
    asked = Asked(
        read_options(arguments, QuantizerData),
        read_options(arguments, QuantizerChoices),
        read_options(arguments, QuantizerEncodings),
    )
    known, data = asked.encodings, asked.data
    if known.ignore_encodings and known.quantization_overrides:
        raise UsageError("--ignore_encodings and --quantization_overrides contradict each other: give one")
    if known.float_fallback and data.input_list:
        raise UsageError("--float_fallback calibrates nothing, so it cannot be given with --input_list")
    if known.float_fallback and known.ignore_encodings:
        raise UsageError("--float_fallback uses the encodings that --ignore_encodings leaves out: give one")
    if asked.wanted or with_data:
        _say_overruled(asked.choices)
    else:
        _say_unused(asked)
    if data.use_native_output_files:
        _warn("--use_native_output_files: no effect, a quantizer writes no results")
    return asked


def _warn(message: str) -> None:
    warnings.warn(message, OpenQnnWarning, stacklevel=3)


def _say_unused(asked: Asked) -> None:
    """Without data nothing is quantized; QNN's tools pass over the other options without a word."""
    groups = (asked.choices, asked.encodings, asked.data)
    given = [label for group in groups for label in _given_in(group) if label not in OF_USE_WITHOUT_DATA]
    if given:
        _warn(
            f"{', '.join(given)}: no effect without --input_list or --float_fallback, the graph stays in"
            " floating point"
        )


def _say_overruled(choices: QuantizerChoices) -> None:
    """What the older of two options asks for and the newer one takes back."""
    usual, percentile = QuantizerChoices(), False
    for kind in ("act", "param"):
        name = getattr(choices, f"{kind}_quantizer")
        calibration, schema = (getattr(choices, f"{kind}_quantizer_{x}") for x in ("calibration", "schema"))
        method, symmetric = QUANTIZERS[name or "tf"]
        percentile = percentile or calibration == Method.PERCENTILE
        if method is not Method.MIN_MAX and calibration not in (None, method):
            _warn(f"--{kind}_quantizer {name}: no effect beside --{kind}_quantizer_calibration {calibration}")
        if symmetric and schema not in (None, name):
            _warn(f"--{kind}_quantizer {name}: no effect beside --{kind}_quantizer_schema {schema}")
    if choices.percentile_calibration_value != usual.percentile_calibration_value and not percentile:
        _warn("--percentile_calibration_value: no effect, no --..._quantizer_calibration is percentile")


def _say_symmetric(choices: QuantizerChoices, recipe: Recipe) -> None:
    """Scales by channel and weights of 16 bits have their zero in the middle, whatever the schema."""
    if choices.param_quantizer_schema != "asymmetric":
        return
    by_channel = [name for name, on in (("channel", recipe.per_channel), ("row", recipe.per_row)) if on]
    why = f"a scale for each {' or '.join(by_channel)}" if by_channel else ""
    why = "16 bits" if recipe.weight_bw == max(WEIGHT_WIDTHS) else why
    if why:
        _warn(f"--param_quantizer_schema asymmetric: no effect on weights with {why}, which are symmetric")


def recipe_for(choices: QuantizerChoices, usual: Recipe, float_bw: int, float_bias_bw: int | None) -> Recipe:
    """The recipe that the options ask for; what they do not mention is as usual for the tool."""
    given = {
        "act_bw": choices.act_bw,
        "weight_bw": choices.weight_bw,
        "block_size": choices.block_size,
        "bias_bw": choices.bias_bw,
        "per_channel": choices.use_per_channel_quantization,
        "per_row": choices.use_per_row_quantization,
        "steps": choices.restrict_quantization_steps,
    }
    act = _scheme(
        usual.act, choices.act_quantizer, choices.act_quantizer_calibration, choices.act_quantizer_schema
    )
    param = _scheme(
        usual.param,
        choices.param_quantizer,
        choices.param_quantizer_calibration,
        choices.param_quantizer_schema,
    )
    percentile = choices.percentile_calibration_value
    return replace(
        usual.told({name: value for name, value in given.items() if value is not None}),
        act=replace(act, percentile=percentile),
        param=replace(param, percentile=percentile),
        float_bw=float_bw,
        float_bias_bw=float_bias_bw,
    )


def _scheme(usual: Scheme, quantizer: str | None, calibration: str | None, schema: str | None) -> Scheme:
    """The newer pair of options counts where both are given."""
    method, symmetric = QUANTIZERS[quantizer] if quantizer else (usual.method, usual.symmetric)
    if calibration is not None:
        method, symmetric = Method(calibration), symmetric if schema is None and quantizer else False
    if schema is not None:
        symmetric = schema == "symmetric"
    return Scheme(method, symmetric)


def quantized(
    graph: Graph, asked: Asked, usual: Recipe, *, float_bw: int = 32, float_bias_bw: int | None = None,
    extra: Mapping[str, Given] | None = None, quiet: bool = False, algorithms: Sequence[str] = (),
    target: QuantizeTarget | None = None, outcome: Callable[[Outcome], None] | None = None,
) -> Graph:  # fmt: skip
    """The graph in fixed point as the options ask for it; without their word with the tool's `algorithms`."""
    from openqnn.api.quantize import quantize, say_wide_biases
    from openqnn.cli.progress import Stages
    from openqnn.passes.htp import convolve_blocks
    from openqnn.quant.overrides import without_whole_filters

    recipe = recipe_for(asked.choices, usual, float_bw, float_bias_bw)
    _say_symmetric(asked.choices, recipe)
    if asked.choices.use_per_channel_quantization:
        graph.given = without_whole_filters(graph)
    goal = target or QuantizeTarget()
    metric = read_metric(goal.target_metric) if goal.target_metric else None
    found: list[Outcome] = []
    with Stages(quiet=quiet) as stages:
        made = quantize(
            graph,
            asked.data.input_list or None,
            recipe=recipe,
            overrides=asked.encodings.quantization_overrides or None,
            ignore_encodings=asked.encodings.ignore_encodings,
            given=extra,
            float_fallback=asked.encodings.float_fallback,
            algorithms=asked.choices.algorithms or algorithms,
            target_sqnr=goal.target_sqnr,
            target_metric=metric,
            native=asked.native,
            progress=lambda done, total: stages.update("calibrate", done, total or 0),
            searching=lambda done, total: stages.update("search", done, total or 0),
            outcome=found.append,
        )
    if usual is LIKE_QNN:  # files for QNN's own runtime, which takes weights in blocks in convolutions alone
        convolve_blocks(made)
    if asked.choices.bias_bw is not None:
        say_wide_biases(made, asked.choices.bias_bw)
    for line in () if quiet else found[0].said:
        print(line, file=sys.stderr)
    if outcome is not None:
        outcome(found[0])
    return made


# -- openqnn quantize ----------------------------------------------------------------------------------------


def run_quantize(
    arguments: Namespace,
    settings: Mapping[str, Any],
    check: Callable[[Path, Path, bool], None],
    write: Callable[[Graph, Path], None],
) -> int:
    """Quantizes, writes, and tells what it cost."""
    from openqnn.api.files import open_graph
    from openqnn.api.quantize import DEFAULT_ALGORITHMS

    output, asked = read_options(arguments, QuantizeOutput), read_asked(arguments, with_data=True)
    source = Path(arguments.model)
    asked = _with_data(asked, output)
    target = Path(output.output or f"{source.stem}.quantized.oqnn")
    check(target, source, output.overwrite)
    _check_beside(asked, output, target, source)
    goal = read_options(arguments, QuantizeTarget)
    found: list[Outcome] = []
    made = quantized(
        open_graph(source, **settings), asked, Recipe(), quiet=output.quiet,
        algorithms=DEFAULT_ALGORITHMS, target=goal, outcome=found.append,
    )  # fmt: skip
    write(made, target)
    written = write_encodings(made, target, output.overwrite) if asked.encodings.dump_encoding_json else None
    if not output.quiet:
        print(f"{target}: {len(made.nodes)} nodes, {target.stat().st_size:,} bytes")
        if written is not None:
            print(written)
    if asked.data.input_list and not output.no_report and (output.report or not output.quiet):
        _compare(found[0], made, asked, output)
    return _reached(found[0].mixed, target, output.quiet)


def _with_data(asked: Asked, output: QuantizeOutput) -> Asked:
    """The options with the data of --data, checked against those of the result."""
    if output.data and asked.data.input_list:
        raise UsageError("--data and --input_list both say what to calibrate with: give one")
    if output.data and asked.encodings.float_fallback:
        raise UsageError("--float_fallback calibrates nothing, so it cannot be given with --data")
    if output.data:
        asked = replace(asked, data=replace(asked.data, input_list=output.data))
    if not asked.wanted:
        raise UsageError("there is nothing to quantize with", hint="--data PATH, or --float_fallback")
    if output.report:
        if not asked.data.input_list:
            raise UsageError("--report compares results on data, and --float_fallback takes none")
        check_place(output.report)
    return asked


def _check_beside(asked: Asked, output: QuantizeOutput, target: Path, source: Path) -> None:
    """Before the work is done: what is written beside the result replaces nothing of the user's unasked."""
    from openqnn.analysis.quant_page import is_quant_page

    if asked.encodings.dump_encoding_json and not output.overwrite:
        check_encodings(target)
    report = Path(output.report)
    if not output.report:
        return
    data = asked.data.input_list
    for other, what in ((target, "the result"), (source, "the source model"), (data, "the data")):
        if os.path.abspath(report) == os.path.abspath(other):
            raise OutputError(f"--report {report} is {what} itself", hint="give another file")
    if report.exists() and not is_quant_page(report) and not output.overwrite:
        raise OutputError(f"{report} exists and is no report", hint="--overwrite replaces it")


def check_encodings(target: Path) -> Path:
    """Where --dump_encoding_json writes; OutputError where that is something else than encodings."""
    from openqnn.formats.encodings import may_replace

    path = _encodings_beside(target)
    if not may_replace(path):
        raise OutputError(f"{path} exists and is no encodings file", hint="give the result another name")
    return path


def _encodings_beside(target: Path) -> Path:
    return target.with_name(f"{target.stem}_encodings.json")


def _reached(mixed: Mixed | None, target: Path, quiet: bool) -> int:
    """Says what it took to reach a target; where that cannot be, the best that there is was written."""
    from openqnn.cli.report_quantization import print_mixed

    if mixed is None:
        return 0
    if not quiet:
        print_mixed(mixed)
    if mixed.reached:
        return 0
    print(
        f"error: the target is not reached, whatever computes in floating point: {target} has the best that"
        f" was found, {mixed.after:.4g}",
        file=sys.stderr,
    )
    return 1


def _compare(found: Outcome, made: Graph, asked: Asked, output: QuantizeOutput) -> None:
    from openqnn.analysis.quant_page import quant_page
    from openqnn.analysis.quant_report import OutputReport, quant_report
    from openqnn.cli.report_quantization import print_quantization
    from openqnn.quant.samples import is_whole, samples_of
    from openqnn.runtime.compare import output_noise

    every = samples_of(found.origin, asked.data.input_list, native=asked.native)
    with warnings.catch_warnings(action="ignore", category=OpenQnnWarning):  # they are said by now
        samples = list(islice(filter(is_whole, every), COMPARED))
    if not samples:
        _warn("no report: all samples have NaN")
        return
    report = quant_report(found.real, made, samples)
    if found.real is not found.origin:  # tensors inside may be scaled, but outputs are what they always were
        noise = output_noise(found.origin, made, samples)
        report = replace(
            report, outputs=tuple(OutputReport(name, n.sqnr, n.cosine) for name, n in noise.items())
        )
    if not output.quiet:
        print_quantization(report)
    if output.report:
        with replacing(output.report) as file:
            file.write(quant_page(report).encode())
        print(output.report)


# -- qairt-quantizer -----------------------------------------------------------------------------------------


def run_qairt_quantizer(arguments: Namespace, command: str) -> int:
    from openqnn.api.files import open_graph, save_dlc

    files, asked = read_options(arguments, QairtQuantizerFiles), read_asked(arguments)
    source = Path(files.input_dlc)
    target = Path(files.output_dlc or source.with_suffix(".quantized.dlc"))
    if not asked.wanted:
        raise UsageError("there is nothing to quantize with", hint="--input_list FILE, or --float_fallback")
    if target.exists() and source.exists() and target.samefile(source):
        raise OutputError(f"{target} is the source itself", hint="give another file with --output_dlc")
    if target.exists() and not is_converted(target):
        raise OutputError(f"{target} exists and is no DLC", hint="give another file with --output_dlc")
    if asked.encodings.dump_encoding_json:
        check_encodings(target)
    if files.use_aimet_quantizer:
        _check_aimet(files, asked)
    opened = open_graph(source)
    graph = quantized(
        opened, asked, LIKE_QNN, float_bw=files.float_bitwidth, float_bias_bw=files.float_bias_bitwidth,
        extra=_by_aimet(opened, asked) if files.use_aimet_quantizer else None,
    )  # fmt: skip
    save_dlc(graph, target, metadata={COMMAND: command})
    print(f"{target}: {target.stat().st_size:,} bytes")
    if asked.encodings.dump_encoding_json:
        print(write_encodings(graph, target))
    if files.debug is not None:
        for name, origin in graph.provenance.items():
            print(f"{name}: {origin}", file=sys.stderr)
    return 0


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
    own = _given_in(asked.choices, BY_AIMET_ITSELF)
    if own:
        _warn(f"{', '.join(own)}: no effect, AIMET decides that itself")


def _given_in(
    group: QuantizerChoices | QuantizerEncodings | QuantizerData, names: Container[str] = ()
) -> list[str]:
    """The options of a group that are not as usual, or some of these."""
    usual = type(group)()
    return [
        o.label
        for name, o in options_of(type(group))
        if (not names or name in names) and getattr(group, name) != getattr(usual, name)
    ]


def _by_aimet(graph: Graph, asked: Asked) -> dict[str, Given]:
    """AIMET's encodings; where an encodings file or the model says something else, that counts more."""
    from openqnn.api.quantize import HTP, prepared_for
    from openqnn.quant.aimet import aimet_encodings
    from openqnn.quant.samples import samples_of

    recipe, known = recipe_for(asked.choices, LIKE_QNN, 32, None), asked.encodings
    prepared = prepared_for(graph, recipe, HTP)
    samples = samples_of(prepared, asked.data.input_list, native=asked.native)
    said = {} if known.ignore_encodings else dict(graph.given)
    if known.quantization_overrides:
        said |= overrides_of(graph, known.quantization_overrides)
    return aimet_encodings(prepared, samples, recipe) | said


# -- what the options mean -----------------------------------------------------------------------------------


def input_types(types: Mapping[str, str]) -> dict[str, Given]:
    """What --input_type says: images are bytes as they are, opaque inputs stay floats."""
    from openqnn.ir import Encoding, Given

    found: dict[str, Given] = {}
    for name, kind in types.items():
        if kind == "image":
            found[name] = Given("input type", 8, encoding=Encoding.per_tensor(1.0))
        elif kind == "opaque":
            found[name] = Given("input type", 32, floating=True)
    return found


def write_encodings(graph: Graph, target: Path, overwrite: bool = False) -> Path:
    """All encodings as JSON beside the result."""
    from openqnn.formats import encodings
    from openqnn.quant.to_encodings_file import encodings_of

    path = _encodings_beside(target) if overwrite else check_encodings(target)
    encodings.write_encodings(path, encodings_of(graph, shared=True), ENCODINGS_VERSION)
    return path


def overrides_of(graph: Graph, path: str) -> dict[str, Given]:
    """What an encodings file says about the tensors of a graph."""
    from openqnn.api.quantize import read_given

    return read_given(graph, path)


TOOLS = (
    Tool(
        "qairt-quantizer",
        "Quantize a DLC file: a DLC whose tensors are in fixed point.",
        "--input_dlc MODEL.dlc (--input_list FILE | --float_fallback) [options]",
        (QairtQuantizerFiles, QuantizerData, QuantizerChoices, QuantizerEncodings),
        run_qairt_quantizer,
    ),
)  # fmt: skip
