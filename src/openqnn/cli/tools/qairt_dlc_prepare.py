"""qairt-dlc-prepare: whether HTP compiles a DLC for a SoC, and the DLC again."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from openqnn.cli.command import Tool
from openqnn.errors import ModelError
from openqnn.options.dlc_tools import DlcPrepareOptions
from openqnn.options.field import read_options


def run_dlc_prepare(arguments: Namespace) -> int:
    import shutil

    from openqnn.cli.shared.binaries import check_binary
    from openqnn.cli.shared.vendor_setup import remark, say, setup
    from openqnn.formats.atomic import replacing_path
    from openqnn.formats.sniff import kind_of
    from openqnn.vendor.remote import compile_source
    from openqnn.vendor.source import Source

    options = read_options(arguments, DlcPrepareOptions)
    source = Path(options.input_dlc)
    if not source.is_file():
        raise ModelError(f"{source}: no such file")
    target = Path(options.output_dlc or source.with_suffix(".prepared.dlc"))
    check_binary(target, str(source), kind_of(source))
    made = setup("htp", "", options.soc)
    compiled = compile_source(Source(files=(str(source),)), made.target, note=remark)
    with replacing_path(target) as temporary:
        shutil.copyfile(source, temporary)
    say("note: HTP compiles the graphs; the DLC holds no cache of that, which only the original's format has")
    say(f"  hint: qnn-context-binary-generator --dlc_path {source} --backend htp --binary_file NAME keeps it")
    print(f"{target}: {', '.join(compiled.graphs)}")
    return 0


TOOL = Tool(
    "qairt-dlc-prepare",
    "Check that HTP compiles a DLC for a SoC, and write the DLC under another name.",
    "--input_dlc MODEL.dlc [--output_dlc FILE] [--htp_socs NAME]",
    (DlcPrepareOptions,),
    lambda arguments, _: run_dlc_prepare(arguments),
    examples=("qairt-dlc-prepare --input_dlc model.dlc --output_dlc prepared.dlc --htp_socs sm8650",),
)
