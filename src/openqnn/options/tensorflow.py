"""Options of qnn-tensorflow-converter, under the names that its users know."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options import rows
from openqnn.options.field import option
from openqnn.options.source import custom_ops

TAG = "serve"


@dataclass(frozen=True)
class TensorflowSource:
    """The source model."""

    input_network: str = option(
        "", "--input_network", "-i", metavar="MODEL", required=True,
        help="a SavedModel's folder, a Keras model (.keras, .h5), a frozen graph (.pb), a checkpoint (.meta)",
    )  # fmt: skip
    input_dim: tuple[tuple[str, tuple[int, ...]], ...] = option(
        (), "-d", "--input_dim", metavar=("NAME", "DIMS"), nargs=2, repeat=True, row=rows.named_dims,
        help="shape of an input: data 1,224,224,3 (default: as the model has it, for one sample)",
    )  # fmt: skip
    out_names: tuple[str, ...] = option(
        (), "--out_node", "--out_name", metavar="NAME", repeat=True,
        help="end the graph at this node; repeat for several (default: all that nothing reads, or the "
        "signature's outputs)",
    )  # fmt: skip
    saved_model_tag: str = option(
        TAG, "--saved_model_tag", metavar="TAG", help="which MetaGraph of a SavedModel (default: serve)"
    )
    saved_model_signature_key: str = option(
        "", "--saved_model_signature_key", metavar="KEY",
        help="which signature of a SavedModel (default: serving_default)",
    )  # fmt: skip
    show_unconsumed_nodes: bool = option(
        False, "--show_unconsumed_nodes", help="list the nodes of a graph that no output depends on"
    )
    allow_unconsumed_nodes: bool = option(
        False,
        "--allow_unconsumed_nodes",
        help="accepted: such nodes are left out and never stop a conversion",
    )
    validate_models: bool = option(
        False, "--tf_validate_models",
        help="run inputs of ones through TensorFlow and through the graph, and tell how far apart they are",
    )  # fmt: skip
    custom_ops: tuple[str, ...] = custom_ops()
