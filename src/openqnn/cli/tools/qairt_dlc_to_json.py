"""qairt-dlc-to-json: the graph of a DLC file as JSON."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Tool
from openqnn.options.dlc_tools import DlcJsonOptions
from openqnn.options.field import read_options


def run_dlc_to_json(arguments: Namespace) -> int:
    from openqnn.cli.shared.dlc_files import dlc_nets
    from openqnn.emit.net_json import write_net_json
    from openqnn.formats.atomic import check_place

    options = read_options(arguments, DlcJsonOptions)
    target = Path(options.output_json or Path(options.input_dlc).with_suffix(".json"))
    check_place(target)
    nets = dlc_nets(options.input_dlc)
    for net in nets:
        file = target if len(nets) == 1 else target.with_name(f"{target.stem}_{net.name}{target.suffix}")
        write_net_json(net, file)
        print(f"{file}: {net.name}, {len(net.nodes)} layers")
    return 0


TOOL = Tool(
    "qairt-dlc-to-json",
    "Write the graphs of a DLC file as JSON, in the form of model_net.json.",
    "--input_dlc MODEL.dlc [--output_json FILE]",
    (DlcJsonOptions,),
    lambda arguments, _: run_dlc_to_json(arguments),
    examples=("qairt-dlc-to-json --input_dlc model.dlc --output_json model.json",),
)
