"""qairt-dlc-info: what is in a DLC file."""

from __future__ import annotations

from argparse import Namespace

from openqnn.cli.command import Tool
from openqnn.options.dlc_tools import DlcInfoOptions
from openqnn.options.field import read_options


def run_dlc_info(arguments: Namespace) -> int:
    from openqnn.cli.shared.dlc_files import dlc_nets, layers_csv, print_dlc
    from openqnn.formats.atomic import replacing

    options = read_options(arguments, DlcInfoOptions)
    nets = dlc_nets(options.input_dlc)
    if options.save:
        with replacing(options.save) as file:
            file.write(layers_csv(nets).encode())
    print_dlc(options.input_dlc, nets)
    return 0


TOOL = Tool(
    "qairt-dlc-info",
    "Tell what is in a DLC file: inputs, outputs, layers, encodings. `openqnn inspect` counts operations.",
    "-i MODEL.dlc [-s LAYERS.csv]",
    (DlcInfoOptions,),
    lambda arguments, _: run_dlc_info(arguments),
    examples=("qairt-dlc-info -i model.dlc",),
)
