"""Options of the quantizer. It is not there yet, so each one says so instead of being passed over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openqnn.options.field import refused

NO_QUANTIZER = "the quantizer is not part of this version yet, graphs are converted in floating point"


def _later(*names: str, help: str, metavar: str = "", nargs: str | None = None) -> Any:
    return refused(*names, why=NO_QUANTIZER, help=help, metavar=metavar, nargs=nargs)


@dataclass(frozen=True)
class LegacyQuantizer:
    """Quantization."""

    quantization_overrides: None = _later(
        "--quantization_overrides", metavar="JSON", help="encodings that take precedence over all others"
    )
    keep_quant_nodes: None = _later("--keep_quant_nodes", help="keep the model's own quantize nodes")
    input_list: None = _later("--input_list", metavar="FILE", help="raw inputs to calibrate with")
    param_quantizer: None = _later("--param_quantizer", metavar="NAME", help="finds ranges of weights")
    act_quantizer: None = _later("--act_quantizer", metavar="NAME", help="finds ranges of activations")
    algorithms: None = _later("--algorithms", metavar="NAME", nargs="+", help="extra algorithms, such as cle")
    bias_bw: None = _later("--bias_bw", metavar="BITS", help="width of quantized biases")
    act_bw: None = _later("--act_bw", metavar="BITS", help="width of quantized activations")
    weight_bw: None = _later("--weight_bw", metavar="BITS", help="width of quantized weights")
    ignore_encodings: None = _later("--ignore_encodings", help="leave out encodings that come with the model")
    use_per_row_quantization: None = _later(
        "--use_per_row_quantization", help="an encoding for each row of matrices"
    )
    use_per_channel_quantization: None = _later(
        "--use_per_channel_quantization", metavar="BOOL", nargs="*", help="encodings by output channel"
    )
    use_native_input_files: None = _later(
        "--use_native_input_files", help="calibration files hold the inputs' own types"
    )
    use_native_dtype: None = _later("--use_native_dtype", help="older name of --use_native_input_files")
    use_native_output_files: None = _later(
        "--use_native_output_files", help="results are written in the outputs' own types"
    )
    restrict_quantization_steps: None = _later(
        "--restrict_quantization_steps", metavar='"MIN MAX"', help="stored range of 16-bit encodings"
    )


@dataclass(frozen=True)
class QairtQuantizer:
    """Quantization."""

    quantization_overrides: None = _later(
        "--quantization_overrides", metavar="JSON", help="encodings that take precedence over all others"
    )
