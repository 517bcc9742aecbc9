"""qairt-dlc-prepare: a DLC with what HTP made of its graphs for a SoC."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Tool
from openqnn.errors import ModelError
from openqnn.options.dlc_tools import DlcPrepareOptions
from openqnn.options.field import read_options


def run_dlc_prepare(arguments: Namespace) -> int:
    from openqnn.cli.shared.binaries import check_binary
    from openqnn.cli.shared.vendor_setup import remark, say, setup
    from openqnn.cli.shared.write_prepared import chip_of, write_prepared
    from openqnn.formats.atomic import Parked
    from openqnn.formats.sniff import kind_of
    from openqnn.vendor.remote import compile_source, describe_context
    from openqnn.vendor.source import Source

    options = read_options(arguments, DlcPrepareOptions)
    source = Path(options.input_dlc)
    if not source.is_file():
        raise ModelError(f"{source}: no such file")
    target = Path(options.output_dlc or source.with_suffix(".prepared.dlc"))
    check_binary(target, str(source), kind_of(source))
    made = setup("htp", "", options.soc)
    parked = Parked("context.bin")
    compiled = compile_source(Source(files=(str(source),)), made.target, file=str(parked.path), note=remark)
    info = describe_context(parked.path)
    write_prepared(source, target, parked.path.read_bytes(), info)
    say(f"note: the compiled graphs are a record of ours; the SDK's tools read the graphs of {target} alone")
    say(f"  hint: `openqnn extract {target}` gives the context binary, which they read")
    print(f"{target}: {', '.join(compiled.graphs)} for {chip_of(info)}, {compiled.size:,} bytes")
    return 0


TOOL = Tool(
    "qairt-dlc-prepare",
    "Compile a DLC for a SoC's HTP, and write it with the result in it.",
    "--input_dlc MODEL.dlc [--output_dlc FILE] [--htp_socs NAME]",
    (DlcPrepareOptions,),
    lambda arguments, _: run_dlc_prepare(arguments),
    examples=("qairt-dlc-prepare --input_dlc model.dlc --output_dlc prepared.dlc --htp_socs sm8650",),
)
