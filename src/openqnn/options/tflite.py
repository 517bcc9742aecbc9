"""Options of qnn-tflite-converter, under the names that its users know."""

from __future__ import annotations

from dataclasses import dataclass

from openqnn.options import rows
from openqnn.options.field import option, refused
from openqnn.options.source import custom_ops

NO_RELAY = (
    "models go to QNN without Relay; `openqnn convert -o graph.oqnn` and `openqnn inspect` show the graph"
)


@dataclass(frozen=True)
class TfliteSource:
    """The source model."""

    input_network: str = option(
        "", "--input_network", "-i", metavar="FILE", required=True, help="the TFLite model to convert"
    )
    input_dim: tuple[tuple[str, tuple[int, ...]], ...] = option(
        (), "-d", "--input_dim", metavar=("NAME", "DIMS"), nargs=2, repeat=True, row=rows.named_dims,
        help="shape of an input: data 1,224,224,3 (default: as the model has it)",
    )  # fmt: skip
    out_names: tuple[str, ...] = option(
        (), "--out_node", "--out_name", metavar="NAME", repeat=True,
        help="end the graph at this tensor of the model; repeat for several",
    )  # fmt: skip
    signature_name: str = option(
        "", "--signature_name", "--tflite_signature_name", metavar="NAME",
        help="the signature whose subgraph is converted (default: the first subgraph)",
    )  # fmt: skip
    show_unconsumed_nodes: bool = option(
        False, "--show_unconsumed_nodes", help="list the operators that no output depends on"
    )
    dump_relay: None = refused(
        "--dump_relay", why=NO_RELAY, metavar="DIR", help="write the model as Relay, with its parameters"
    )
    custom_ops: tuple[str, ...] = custom_ops()
