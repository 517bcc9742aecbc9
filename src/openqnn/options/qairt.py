"""Options of qairt-converter, under the names that its users know."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options import rows
from openqnn.options.converter import FLOAT_WIDTHS
from openqnn.options.field import option, refused
from openqnn.options.source import custom_ops, positive


@dataclass(frozen=True)
class QairtSource:
    """The source model."""

    input_network: str = option(
        "", "--input_network", "-i", metavar="FILE", required=True,
        help="the model to convert, of any framework that can be read",
    )  # fmt: skip
    input_dim: tuple[tuple[str, tuple[int, ...]], ...] = option(
        (), "--desired_input_shape", "--source_model_input_shape", "--input_dim", "-d", metavar="WORD",
        nargs="+", repeat=True, row=rows.all_named_dims, many=True,
        help="NAME DIMS: shape of an input, such as data 1,3,224,224",
    )  # fmt: skip
    out_names: tuple[str, ...] = option(
        (), "--out_tensor_node", "--out_tensor_name", metavar="NAME", repeat=True,
        help="end the graph at this tensor of the model; repeat for several",
    )  # fmt: skip
    input_dtype: tuple[tuple[str, str], ...] = option(
        (), "--source_model_input_datatype", metavar=("NAME", "TYPE"), nargs=2, repeat=True,
        row=rows.named_choice(rows.DATA_TYPES),
        help="data type of an input of the graph; a cast turns it into the model's own",
    )  # fmt: skip
    input_layout: tuple[tuple[str, str], ...] = option(
        (), "--source_model_input_layout", "-l", metavar=("NAME", "LAYOUT"), nargs=2, repeat=True,
        row=rows.named_choice(rows.LAYOUTS),
        help=f"what the axes of an input mean in the source model: {', '.join(rows.LAYOUTS)}",
    )  # fmt: skip
    input_encoding: tuple[tuple[str, str, str], ...] = option(
        (), "--desired_input_color_encoding", "--input_color_encoding", "-e", metavar="WORD", nargs="+",
        repeat=True, row=rows.named_encoding,
        help="NAME IN [OUT]: the application gives colours as IN, the model expects OUT (default bgr); "
        f"one of {', '.join(rows.ENCODINGS)}",
    )  # fmt: skip
    output_layout: tuple[tuple[str, str], ...] = option(
        (), "--source_model_output_layout", metavar=("NAME", "LAYOUT"), nargs=2, repeat=True,
        row=rows.named_choice(rows.LAYOUTS),
        help="what the axes of an output mean in the source model",
    )  # fmt: skip
    desired_input_layout: tuple[tuple[str, str], ...] = option(
        (), "--desired_input_layout", metavar=("NAME", "LAYOUT"), nargs=2, repeat=True,
        row=rows.named_choice(rows.LAYOUTS),
        help="how the application gives an input; a transpose turns it into the model's own layout",
    )  # fmt: skip
    desired_output_layout: tuple[tuple[str, str], ...] = option(
        (), "--desired_output_layout", metavar=("NAME", "LAYOUT"), nargs=2, repeat=True,
        row=rows.named_choice(rows.LAYOUTS),
        help="how the application gets an output",
    )  # fmt: skip
    preserve_io_datatype: tuple[tuple[str, ...], ...] = option(
        (), "--preserve_io_datatype", metavar="NAME", nargs="*", repeat=True,
        help="keep the source model's data types, of all inputs and outputs or of those named",
    )  # fmt: skip
    io_config: str = option(
        "", "--io_config", metavar="YAML",
        help="a file about inputs and outputs; what the command line says counts more",
    )  # fmt: skip
    dump_io_config_template: str = option(
        "", "--dump_io_config_template", metavar="YAML",
        help="write a file for --io_config that describes the model as it is, and stop",
    )  # fmt: skip
    custom_ops: tuple[str, ...] = custom_ops()


@dataclass(frozen=True)
class QairtOutput:
    """The conversion and its result."""

    dry_run: str | None = option(
        None, "--dry_run", metavar="info|debug", nargs="?", const="info", choices=("info", "debug"),
        help="only tell what is supported and what is not: as a table, or (debug) message by message",
    )  # fmt: skip
    debug: int | None = option(
        None, "--debug", metavar="LEVEL", nargs="?", const=1, parse=int,
        help="tell on stderr what every pass did and declined to do",
    )  # fmt: skip
    output_path: str = option(
        "", "--output_path", "-o", metavar="FILE", help="model.dlc (default: beside the source model)"
    )
    copyright_file: str = option(
        "", "--copyright_file", metavar="FILE", help="a text to keep in the DLC's metadata"
    )
    float_bitwidth: int = option(
        32, "--float_bitwidth", metavar="BITS", parse=int, choices=FLOAT_WIDTHS,
        help="width of floats, in weights and activations: 32 or 16",
    )  # fmt: skip
    float_bias_bitwidth: int | None = option(
        None, "--float_bias_bitwidth", metavar="BITS", parse=int, choices=FLOAT_WIDTHS,
        help="width of floats in biases: 32 or 16 (default: as --float_bitwidth)",
    )  # fmt: skip
    model_version: str = option(
        "", "--model_version", metavar="TEXT", help="up to 64 ASCII characters to know the model by"
    )


@dataclass(frozen=True)
class QairtOnnx:
    """ONNX models."""

    no_simplification: bool = option(
        False, "--onnx_no_simplification", "--onnx_skip_simplification",
        help="do not fold constants and do not merge or remove nodes that add nothing",
    )  # fmt: skip
    batch: int | None = option(
        None, "--onnx_batch", metavar="N", parse=positive, help="first dimension of every input"
    )
    define_symbol: tuple[tuple[str, int], ...] = option(
        (), "--onnx_define_symbol", metavar=("SYMBOL", "N"), nargs=2, repeat=True, row=rows.named_number,
        help="size of a symbolic dimension wherever it appears",
    )  # fmt: skip


@dataclass(frozen=True)
class QairtOthers:
    """Models of other frameworks."""

    tf_no_optimization: None = refused(
        "--tf_no_optimization", why="TensorFlow's own converter to TFLite always optimises",
        help="TensorFlow: do not optimise the graph",
    )  # fmt: skip
    tf_show_unconsumed_nodes: bool = option(
        False, "--tf_show_unconsumed_nodes",
        help="TensorFlow: list the nodes of a graph that no output depends on",
    )  # fmt: skip
    tf_saved_model_tag: str = option(
        "", "--tf_saved_model_tag", metavar="TAG",
        help="TensorFlow: which MetaGraph of a SavedModel (default: serve)",
    )  # fmt: skip
    tf_saved_model_signature_key: str = option(
        "", "--tf_saved_model_signature_key", metavar="KEY",
        help="TensorFlow: which signature of a SavedModel (default: serving_default)",
    )  # fmt: skip
    tf_validate_models: bool = option(
        False, "--tf_validate_models",
        help="TensorFlow: run inputs of ones through it and the graph, and tell how far apart results are",
    )  # fmt: skip
    tflite_signature_name: str = option(
        "", "--tflite_signature_name", metavar="NAME",
        help="TFLite: the signature whose subgraph is converted (default: the first subgraph)",
    )  # fmt: skip
    caffemodel: str = option(
        "", "--caffemodel", "--caffe_bin", metavar="FILE",
        help="Caffe: the weights of the network (default: the .caffemodel beside the .prototxt)",
    )  # fmt: skip
