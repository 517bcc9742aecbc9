"""Options of qnn-pytorch-converter, under the names that its users know."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options import rows
from openqnn.options.field import option, refused
from openqnn.options.source import custom_ops
from openqnn.options.tflite import NO_RELAY


def listed(text: str) -> tuple[str, ...]:
    """Paths between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


@dataclass(frozen=True)
class PytorchSource:
    """The source model."""

    input_network: str = option(
        "", "--input_network", "-i", metavar="FILE", required=True,
        help="the PyTorch model to convert: TorchScript (.pt, needs torch) or an exported program (.pt2)",
    )  # fmt: skip
    input_dim: tuple[tuple[str, tuple[int, ...]], ...] = option(
        (), "-d", "--input_dim", metavar=("NAME", "DIMS"), nargs=2, repeat=True, row=rows.named_dims,
        help="name and shape of an input: data 1,3,224,224; in the order of the model's inputs. Needed for "
        "TorchScript, which has no shapes",
    )  # fmt: skip
    out_names: tuple[str, ...] = option(
        (), "--out_node", "--out_name", metavar="NAME", repeat=True,
        help="end the graph at this tensor of the model; repeat for several",
    )  # fmt: skip
    dump_out_names: bool = option(
        False, "--dump_out_names",
        help="write model_output_names.json beside the result: outputs of the model by those of the graph",
    )  # fmt: skip
    pytorch_custom_op_lib: tuple[str, ...] = option(
        (), "--pytorch_custom_op_lib", "-pcl", metavar="LIBRARIES", parse=listed,
        help="libraries of custom ops, with commas between: torch loads them before the model",
    )  # fmt: skip
    dump_relay: None = refused(
        "--dump_relay", why=NO_RELAY, metavar="DIR", help="write the model as Relay, with its parameters"
    )
    custom_ops: tuple[str, ...] = custom_ops()
