"""Options of later SDKs and of published guides that change nothing here: taken, with a note."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options.field import noted

_DEVICE = "the chip is chosen where the graph is compiled: --soc of qnn-context-binary-generator"
_LEVEL = "HTP's level of optimization is `O` in the file of --config_file, where the graph is compiled"
_ORDER = "outputs always have the model's order"
_UNUSED = "inputs that nothing reads are always left out"
_SUMMARY = "`openqnn inspect MODEL` prints one"
_BIAS = "biases have the scales that the library computes with, per row where the weights have them so"


@dataclass(frozen=True)
class LaterConverter:
    """Taken from other versions."""

    target_device: None = noted("--target_device", why=_DEVICE, metavar="NAME", help="device to convert for")
    target_backend: None = noted(
        "--target_backend", "--target_soc_model", why=_DEVICE, metavar="NAME", help="backend to convert for"
    )
    optimization_level: None = noted(
        "--optimization_level", why=_LEVEL, metavar="LEVEL", help="level of optimization"
    )
    log_level: None = noted(
        "--log_level", why="--debug tells what every pass did", metavar="LEVEL", help="how much to log"
    )
    onnx_summary: None = noted("--onnx_summary", why=_SUMMARY, help="print a summary of the model")
    preserve_onnx_output_order: None = noted(
        "--preserve_onnx_output_order", why=_ORDER, help="keep the order of outputs"
    )
    remove_unused_inputs: None = noted(
        "--remove_unused_inputs", why=_UNUSED, help="leave out inputs that nothing reads"
    )


@dataclass(frozen=True)
class LaterQuantizer:
    """Taken from other versions of the quantizer."""

    enable_per_row_quantized_bias: None = noted(
        "--enable_per_row_quantized_bias", why=_BIAS, help="biases by row"
    )
    disable_relu_squashing: None = noted(
        "--disable_relu_squashing", why="a Relu is merged only where the numbers stay the same",
        help="keep Relu apart",
    )  # fmt: skip
    use_dynamic_16_bit_weights: None = noted(
        "--use_dynamic_16_bit_weights", why="weights have the width of --weights_bitwidth",
        help="16-bit weights where they are worth it",
    )  # fmt: skip
    pack_4_bit_weights: None = noted(
        "--pack_4_bit_weights", why="the library packs 4-bit weights itself", help="pack 4-bit weights"
    )


@dataclass(frozen=True)
class LaterGenerator:
    """Taken from other versions."""

    input_list: None = noted(
        "--input_list", why="compiling reads no inputs", metavar="FILE", help="lists of input files"
    )
    optimization_level: None = noted(
        "--optimization_level", why="HTP's level is `O` in the file of --config_file", metavar="LEVEL",
        help="level of optimization",
    )  # fmt: skip


@dataclass(frozen=True)
class LaterLibrary:
    """Taken from other versions."""

    target_backends: None = noted(
        "--target_backends", why="a model library runs on every backend", metavar="LIST", help="backends"
    )
