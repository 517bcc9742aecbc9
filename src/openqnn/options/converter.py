"""Options of qnn-onnx-converter, under the names that its users know."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options import rows
from openqnn.options.field import option
from openqnn.options.source import custom_ops, positive

FLOAT_WIDTHS = (16, 32)


@dataclass(frozen=True)
class ConverterSource:
    """The source model."""

    input_network: str = option(
        "", "--input_network", "-i", metavar="FILE", required=True, help="the ONNX model to convert"
    )
    out_names: tuple[str, ...] = option(
        (), "--out_node", "--out_name", metavar="NAME", repeat=True,
        help="end the graph at this tensor of the model; repeat for several",
    )  # fmt: skip
    input_dim: tuple[tuple[str, tuple[int, ...]], ...] = option(
        (), "-d", "--input_dim", metavar="WORD", nargs="+", repeat=True, row=rows.all_named_dims, many=True,
        help="NAME DIMS: shape of an input, in the model's own order of axes: data 1,3,224,224",
    )  # fmt: skip
    batch: int | None = option(
        None, "-b", "--batch", metavar="N", parse=positive,
        help="first dimension of every input",
    )  # fmt: skip
    define_symbol: tuple[tuple[str, int], ...] = option(
        (), "-s", "--define_symbol", metavar=("SYMBOL", "N"), nargs=2, repeat=True, row=rows.named_number,
        help="size of a symbolic dimension wherever it appears",
    )  # fmt: skip
    no_simplification: bool = option(
        False, "-n", "--no_simplification",
        help="do not fold constants and do not merge or remove nodes that add nothing",
    )  # fmt: skip
    custom_ops: tuple[str, ...] = custom_ops()


@dataclass(frozen=True)
class ConverterIo:
    """Inputs and outputs of the converted graph."""

    input_type: tuple[tuple[str, str], ...] = option(
        (), "-t", "--input_type", metavar=("NAME", "TYPE"), nargs=2, repeat=True,
        row=rows.named_choice(rows.INPUT_TYPES),
        help="how a quantized graph takes an input: image (bytes from 0 to 255), default, opaque (as floats)",
    )  # fmt: skip
    input_dtype: tuple[tuple[str, str], ...] = option(
        (), "--input_dtype", metavar=("NAME", "TYPE"), nargs=2, repeat=True,
        row=rows.named_choice(rows.DATA_TYPES),
        help="data type of an input of the graph; a cast turns it into the model's own",
    )  # fmt: skip
    input_encoding: tuple[tuple[str, str, str], ...] = option(
        (), "-e", "--input_encoding", metavar="WORD", nargs="+", repeat=True, row=rows.named_encoding,
        help="NAME IN [OUT]: the application gives colours as IN, the model expects OUT (default bgr); "
        f"one of {', '.join(rows.ENCODINGS)}",
    )  # fmt: skip
    input_layout: tuple[tuple[str, str], ...] = option(
        (), "-l", "--input_layout", metavar=("NAME", "LAYOUT"), nargs=2, repeat=True,
        row=rows.named_choice(rows.LAYOUTS),
        help=f"what the axes of an input mean in the source model: {', '.join(rows.LAYOUTS)}",
    )  # fmt: skip
    custom_io: str = option(
        "",
        "--custom_io",
        metavar="YAML",
        help="a file with layout, data type and scale of inputs and outputs",
    )
    preserve_io: tuple[tuple[str, tuple[str, ...]], ...] = option(
        (), "--preserve_io", metavar="WORD", nargs="*", repeat=True, row=rows.kept,
        help="[layout|datatype [NAME ...]]: keep the source model's layouts, data types or both, of all "
        "inputs and outputs or of those named; with data types, files of --input_list have them, too",
    )  # fmt: skip
    keep_int64_inputs: bool = option(
        False, "--keep_int64_inputs", help="64-bit integer inputs stay so instead of becoming 32 bits wide"
    )
    dump_custom_io_config_template: str = option(
        "", "--dump_custom_io_config_template", metavar="YAML",
        help="write a file for --custom_io that describes the model as it is, and stop",
    )  # fmt: skip


@dataclass(frozen=True)
class ConverterSteps:
    """The conversion."""

    dry_run: str | None = option(
        None, "--dry_run", metavar="info|debug", nargs="?", const="info", choices=("info", "debug"),
        help="only tell what is supported and what is not: as a table, or (debug) message by message",
    )  # fmt: skip
    disable_batchnorm_folding: bool = option(
        False, "--disable_batchnorm_folding",
        help="keep factors and terms per channel apart from the layers before them",
    )  # fmt: skip
    keep_disconnected_nodes: bool = option(
        False, "--keep_disconnected_nodes", help="also convert nodes that no output depends on"
    )
    debug: int | None = option(
        None, "--debug", metavar="LEVEL", nargs="?", const=1, parse=int,
        help="tell on stderr what every pass did and declined to do",
    )  # fmt: skip


@dataclass(frozen=True)
class ConverterOutput:
    """The result."""

    output_path: str = option(
        "", "-o", "--output_path", metavar="FILE",
        help="model.cpp; model.bin and model_net.json go beside it (default: beside the source model)",
    )  # fmt: skip
    copyright_file: str = option(
        "", "--copyright_file", metavar="FILE", help="a text to put at the head of the result"
    )
    float_bw: int = option(
        32, "--float_bw", "--float_bitwidth", metavar="BITS", parse=int, choices=FLOAT_WIDTHS,
        help="width of floats, in weights and activations: 32 or 16",
    )  # fmt: skip
    float_bias_bw: int | None = option(
        None, "--float_bias_bw", "--float_bias_bitwidth", metavar="BITS", parse=int, choices=FLOAT_WIDTHS,
        help="width of floats in biases: 32 or 16 (default: as --float_bw)",
    )  # fmt: skip
    overwrite_model_prefix: bool = option(
        False, "--overwrite_model_prefix",
        help="name the functions of the model after the file instead of QnnModel",
    )  # fmt: skip
    exclude_named_tensors: bool = option(
        False, "--exclude_named_tensors",
        help="number the tensors inside the graph instead of naming them as the model does",
    )  # fmt: skip
