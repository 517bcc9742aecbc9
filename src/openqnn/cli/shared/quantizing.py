"""What the quantizer's options mean, for every tool that has them."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.shared.metric_script import read_metric
from openqnn.errors import OpenQnnWarning, OutputError, UsageError
from openqnn.options.field import options_of, read_options
from openqnn.options.quantizer import (
    QuantizerChoices,
    QuantizerData,
    QuantizerEncodings,
    QuantizeTarget,
)
from openqnn.quant.recipe import WEIGHT_WIDTHS, Method, Recipe, Scheme

if TYPE_CHECKING:
    from openqnn.api.quantize import Outcome
    from openqnn.ir import Given, Graph

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
        warn("--use_native_output_files: no effect, a quantizer writes no results")
    return asked


def warn(message: str) -> None:
    warnings.warn(message, OpenQnnWarning, stacklevel=3)


def _say_unused(asked: Asked) -> None:
    """Without data nothing is quantized; QNN's tools pass over the other options without a word."""
    groups = (asked.choices, asked.encodings, asked.data)
    given = [label for group in groups for label in options_given(group) if label not in OF_USE_WITHOUT_DATA]
    if given:
        warn(
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
            warn(f"--{kind}_quantizer {name}: no effect beside --{kind}_quantizer_calibration {calibration}")
        if symmetric and schema not in (None, name):
            warn(f"--{kind}_quantizer {name}: no effect beside --{kind}_quantizer_schema {schema}")
    if choices.percentile_calibration_value != usual.percentile_calibration_value and not percentile:
        warn("--percentile_calibration_value: no effect, no --..._quantizer_calibration is percentile")


def _say_symmetric(choices: QuantizerChoices, recipe: Recipe) -> None:
    """Scales by channel and weights of 16 bits have their zero in the middle, whatever the schema."""
    if choices.param_quantizer_schema != "asymmetric":
        return
    by_channel = [name for name, on in (("channel", recipe.per_channel), ("row", recipe.per_row)) if on]
    why = f"a scale for each {' or '.join(by_channel)}" if by_channel else ""
    why = "16 bits" if recipe.weight_bw == max(WEIGHT_WIDTHS) else why
    if why:
        warn(f"--param_quantizer_schema asymmetric: no effect on weights with {why}, which are symmetric")


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
    test_data: str = "",
) -> Graph:  # fmt: skip
    """The graph in fixed point as the options ask for it; without their word with the tool's `algorithms`."""
    from openqnn.api.quantize import quantize, say_wide_biases
    from openqnn.cli.progress import Stages
    from openqnn.quant.overrides import without_whole_filters
    from openqnn.targets.htp import convolve_blocks

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
            test_data=test_data or None,
            hold_back=usual is not LIKE_QNN,  # QNN's own tools calibrate with all samples
            progress=lambda done, total: stages.update("calibrate", done, total or 0),
            searching=lambda done, total: stages.update("search", done, total or 0),
            outcome=found.append,
        )
    if usual is LIKE_QNN:  # files for QNN's own runtime, which takes weights in blocks in convolutions alone
        convolve_blocks(made)
    if asked.choices.bias_bw is not None:
        say_wide_biases(made, asked.choices.bias_bw)
    if not quiet:
        _say_outcome(found[0], verdict=usual is LIKE_QNN)
    if outcome is not None:
        outcome(found[0])
    return made


def _say_outcome(outcome: Outcome, *, verdict: bool) -> None:
    for line in outcome.said:
        print(line, file=sys.stderr)
    if verdict:
        _say_good(outcome)


def _say_good(found: Outcome) -> None:
    """The verdict of a tool that has no report; any other than a good one is a warning."""
    from openqnn.quant.verdict import GOOD

    if found.verdict is not None and found.verdict.word == GOOD:
        print(found.verdict)


def check_encodings(target: Path) -> Path:
    """Where --dump_encoding_json writes; OutputError where that is something else than encodings."""
    from openqnn.formats.encodings import may_replace

    path = _encodings_beside(target)
    if not may_replace(path):
        raise OutputError(f"{path} exists and is no encodings file", hint="give the result another name")
    return path


def _encodings_beside(target: Path) -> Path:
    return target.with_name(f"{target.stem}_encodings.json")


def options_given(
    group: QuantizerChoices | QuantizerEncodings | QuantizerData, names: Container[str] = ()
) -> list[str]:
    """The options of a group that are not as usual, or some of these."""
    usual = type(group)()
    return [
        o.label
        for name, o in options_of(type(group))
        if (not names or name in names) and getattr(group, name) != getattr(usual, name)
    ]


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
