"""Options of the quantizer, the same for the converters, qairt-quantizer and `openqnn quantize`.

Where QNN's tools have two spellings of one thing (--act_bw and --act_bitwidth), all take both.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from openqnn.options.field import option
from openqnn.options.packages import op_package_lib

QUANTIZERS = ("tf", "symmetric", "enhanced", "adjusted")
CALIBRATIONS = ("min-max", "sqnr", "entropy", "mse", "percentile")
SCHEMAS = ("asymmetric", "symmetric")
ALGORITHMS = ("cle", "bias_correction", "adaround", "smoothquant")


def _steps(text: str) -> tuple[int, int]:
    """Two hexadecimal numbers: "-0x8000 0x7F7F"."""
    try:
        low, high = (int(word, 16) for word in text.replace(",", " ").split())
    except ValueError:
        raise argparse.ArgumentTypeError(f'{text!r}: expected two numbers such as "-0x8000 0x7F7F"') from None
    return low, high


def _percentile(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 90 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number from 90 to 100")
    return value


def _switch(words: Sequence[str]) -> bool:
    """Nothing or `true` switches on, `false` off."""
    word = words[0].lower() if words else "true"
    if word not in ("true", "false") or len(words) > 1:
        raise argparse.ArgumentTypeError(f"{' '.join(words)!r}: expected true, false or nothing")
    return word == "true"


@dataclass(frozen=True)
class QuantizerData:
    """Calibration data."""

    input_list: str = option(
        "", "--input_list", metavar="FILE",
        help="a list of raw input files, a line for each set of inputs: ranges of tensors are measured on "
        "them, and the result is in fixed point",
    )  # fmt: skip
    use_native_input_files: bool = option(
        False, "--use_native_input_files", help="the files hold the inputs' own types instead of floats"
    )
    use_native_dtype: bool = option(
        False, "--use_native_dtype", help="older name of --use_native_input_files"
    )
    use_native_output_files: bool = option(
        False, "--use_native_output_files",
        help="for scripts that have it: the quantizer writes no results",
    )  # fmt: skip


@dataclass(frozen=True)
class QuantizerChoices:
    """Quantization."""

    param_quantizer: str | None = option(
        None, "--param_quantizer", metavar="NAME", choices=QUANTIZERS,
        help="how ranges of weights are found: tf (extremes), symmetric, enhanced (least noise), "
        "adjusted (extremes, widened to whole steps)",
    )  # fmt: skip
    act_quantizer: str | None = option(
        None, "--act_quantizer", metavar="NAME", choices=QUANTIZERS,
        help="how ranges of activations are found: tf, symmetric, enhanced or adjusted",
    )  # fmt: skip
    param_quantizer_calibration: str | None = option(
        None, "--param_quantizer_calibration", metavar="NAME", choices=CALIBRATIONS,
        help=f"newer form of --param_quantizer: {', '.join(CALIBRATIONS)}",
    )  # fmt: skip
    act_quantizer_calibration: str | None = option(
        None, "--act_quantizer_calibration", metavar="NAME", choices=CALIBRATIONS,
        help=f"newer form of --act_quantizer: {', '.join(CALIBRATIONS)}",
    )  # fmt: skip
    param_quantizer_schema: str | None = option(
        None, "--param_quantizer_schema", metavar="NAME", choices=SCHEMAS,
        help="whether zero is in the middle of the range of weights: asymmetric or symmetric",
    )  # fmt: skip
    act_quantizer_schema: str | None = option(
        None, "--act_quantizer_schema", metavar="NAME", choices=SCHEMAS,
        help="whether zero is in the middle of the range of activations: asymmetric or symmetric",
    )  # fmt: skip
    percentile_calibration_value: float = option(
        99.99, "--percentile_calibration_value", metavar="PERCENT", parse=_percentile,
        help="how much of the values the range holds with percentile calibration: 90 to 100 (default 99.99)",
    )  # fmt: skip
    algorithms: tuple[str, ...] = option(
        (), "--algorithms", metavar="NAME", nargs="+", choices=ALGORITHMS,
        help=f"change the weights so that less is lost: {', '.join(ALGORITHMS)} (openqnn quantize: adaround, "
        "unless others are given)",
    )  # fmt: skip
    act_bw: int | None = option(
        None, "--act_bw", "--act_bitwidth", metavar="BITS", parse=int, choices=(8, 16),
        help="width of activations: 8 or 16",
    )  # fmt: skip
    weight_bw: int | None = option(
        None, "--weight_bw", "--weights_bitwidth", metavar="BITS", parse=int, choices=(4, 8, 16),
        help="width of weights: 4, 8 or 16",
    )  # fmt: skip
    block_size: int | None = option(
        None, "--block_size", metavar="CHANNELS", parse=int,
        help="a scale for so many input channels of 4-bit weights each: a multiple of 16",
    )  # fmt: skip
    bias_bw: int | None = option(
        None, "--bias_bw", "--bias_bitwidth", metavar="BITS", parse=int, choices=(8, 32),
        help="width of biases: 8 or 32",
    )  # fmt: skip
    use_per_channel_quantization: bool | None = option(
        None, "--use_per_channel_quantization", metavar="BOOL", nargs="*", row=_switch,
        help="a scale for each output channel of convolutions, also where the model has one for all",
    )  # fmt: skip
    use_per_row_quantization: bool | None = option(
        None, "--use_per_row_quantization", metavar="BOOL", nargs="*", row=_switch,
        help="a scale for each row of the weights of MatMul and FullyConnected",
    )  # fmt: skip
    restrict_quantization_steps: tuple[int, int] | None = option(
        None, "--restrict_quantization_steps", metavar='"MIN MAX"', parse=_steps,
        help='the stored integers to use, in hexadecimal, in tensors as wide as they are: "-0x8000 0x7F7F" '
        "is for 16 bits",
    )  # fmt: skip


@dataclass(frozen=True)
class QuantizerEncodings:
    """Encodings that are known already."""

    quantization_overrides: str = option(
        "", "--quantization_overrides", metavar="JSON",
        help="a file of AIMET's: its encodings take precedence over those of the model and of calibration",
    )  # fmt: skip
    ignore_encodings: bool = option(
        False, "--ignore_encodings", help="use calibration alone, not the encodings that the model has"
    )
    float_fallback: bool = option(
        False, "--float_fallback", "--floatFallback",
        help="calibrate nothing: nodes whose tensors have no encoding compute in floats",
    )  # fmt: skip
    dump_encoding_json: bool = option(
        False, "--dump_encoding_json", help="also write all encodings as JSON, beside the result"
    )


@dataclass(frozen=True)
class KeptNodes:
    """Quantize nodes of the model."""

    keep_quant_nodes: bool = option(
        False, "--keep_quant_nodes", help="keep them in the graph instead of taking their encodings"
    )


@dataclass(frozen=True)
class QairtQuantizer:
    """Quantization."""

    quantization_overrides: str = option(
        "", "--quantization_overrides", metavar="JSON",
        help="a file of AIMET's: its encodings are kept in the DLC for qairt-quantizer",
    )  # fmt: skip


@dataclass(frozen=True)
class QairtQuantizerFiles:
    """The DLC."""

    input_dlc: str = option(
        "", "--input_dlc", metavar="FILE", required=True, help="a DLC in floating point, from qairt-converter"
    )
    output_dlc: str = option(
        "", "--output_dlc", metavar="FILE", help="the result (default: MODEL.quantized.dlc beside the input)"
    )
    float_bitwidth: int = option(
        32, "--float_bitwidth", metavar="BITS", parse=int, choices=(16, 32),
        help="width of what stays in floating point: 32 or 16",
    )  # fmt: skip
    float_bias_bitwidth: int | None = option(
        None, "--float_bias_bitwidth", metavar="BITS", parse=int, choices=(16, 32),
        help="width of biases that stay in floating point: 32 or 16",
    )  # fmt: skip
    preserve_io_datatype: tuple[tuple[str, ...], ...] = option(
        (), "--preserve_io_datatype", metavar="NAME", nargs="*", repeat=True,
        help="inputs and outputs keep the types that they have in the source, all or those named",
    )  # fmt: skip
    use_aimet_quantizer: bool = option(
        False, "--use_aimet_quantizer", help="let AIMET (package aimet-onnx) find the encodings"
    )
    op_package_lib: str = op_package_lib()
    debug: int | None = option(
        None, "--debug", metavar="LEVEL", nargs="?", const=1, parse=int,
        help="tell on stderr where every encoding came from",
    )  # fmt: skip


@dataclass(frozen=True)
class QuantizeTarget:
    """Mixed precision."""

    target_sqnr: float | None = option(
        None, "--target_sqnr", metavar="DB", parse=float, exclusive="target",
        help="give 16 bits or floating point to the nodes that need it, until the worst output has so many "
        "decibels over the noise",
    )  # fmt: skip
    target_metric: str = option(
        "", "--target_metric", metavar="SCRIPT", exclusive="target",
        help="the same until a score is reached: a Python file with a function metric(run), which gives the "
        "score, and a number target; run takes arrays by input name and gives arrays by output name",
    )  # fmt: skip


@dataclass(frozen=True)
class QuantizeOutput:
    """The result."""

    data: str = option(
        "", "--data", metavar="PATH",
        help="calibration data: an input list, a .npy or .npz file, or a folder of them",
    )  # fmt: skip
    test_data: str = option(
        "", "--test_data", metavar="PATH",
        help="data that figures are measured on (default: up to eight samples of the calibration data, which"
        " are held back for that)",
    )  # fmt: skip
    output: str = option(
        "", "-o", "--output", metavar="FILE",
        help="what to write: FILE.oqnn (default: MODEL.quantized.oqnn), FILE.dlc, FILE.cpp or FILE.onnx,"
        " a QDQ model for ONNX Runtime",
    )  # fmt: skip
    report: str = option(
        "", "--report", metavar="HTML", exclusive="report", help="also write a report with plots"
    )
    no_report: bool = option(
        False, "--no_report", exclusive="report", help="do not compare the result with floating point"
    )
    overwrite: bool = option(False, "--overwrite", help="replace a file that is not an OpenQNN graph")
    quiet: bool = option(False, "--quiet", help="print errors only")
