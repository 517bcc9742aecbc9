"""qnn-profile-viewer: a profiling log as text, and as a file of another kind."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.command import Tool
from openqnn.cli.shared.vendor_setup import print_version
from openqnn.errors import InputError, OutputError, UnsupportedError, UsageError
from openqnn.formats.atomic import check_place, replacing
from openqnn.options.field import option, read_options

if TYPE_CHECKING:
    from openqnn.formats.profiling_log import ProfilingLog

OPTRACE = "optrace"


@dataclass(frozen=True)
class ProfileViewerOptions:
    """The log."""

    input_log: str = option("", "--input_log", metavar="LOG", help="a profiling log")
    output: str = option(
        "", "--output", metavar="PATH", help="a file for the data: CSV, or what the reader writes"
    )
    reader: str = option(
        "",
        "--reader",
        metavar="LIB",
        help="what reads the log, by the name of Qualcomm's library: libQnnJsonProfilingReader.so writes "
        "JSON, libQnnChrometraceProfilingReader.so a Chrome trace; the default one writes CSV",
    )
    schematic: str = option(
        "", "--schematic", metavar="BIN", help="the schematic of the graph, for the reader of HTP's optrace"
    )
    extract_opaque_objects: bool = option(
        False, "--extract_opaque_objects", help="write opaque objects into files beside --output"
    )
    version: bool = option(False, "--version", help="print versions and exit")


def run_profile_viewer(arguments: Namespace) -> int:
    from openqnn import __version__
    from openqnn.analysis.profile_text import profile_text
    from openqnn.formats.profiling_log import read_profiling_log

    options = read_options(arguments, ProfileViewerOptions)
    if options.version:
        return print_version("qnn-profile-viewer")
    if not options.input_log:
        raise UsageError("--input_log is required")
    if options.output:
        check_place(options.output)
    writer = _reader(options)
    log = read_profiling_log(options.input_log)
    text = writer(log) if options.output else ""
    objects = _objects(log, Path(options.output).parent) if options.extract_opaque_objects else None
    print(profile_text(log, __version__), end="")
    if options.output:
        with replacing(options.output) as file:
            file.write(text.encode("utf-8"))
    if objects is not None:
        _extract(objects)
    return 0


def _reader(options: ProfileViewerOptions) -> Callable[[ProfilingLog], str]:
    """What makes the output file, by the name of the library that does it in the original."""
    from openqnn.analysis.profile_text import profile_csv
    from openqnn.analysis.profile_trace import chrome_trace, log_record

    name = Path(options.reader).name.lower()
    if options.schematic and OPTRACE not in name:
        raise UsageError(
            "--schematic goes with HTP's optrace reader", hint="--reader libQnnHtpOptraceProfilingReader.so"
        )
    if OPTRACE in name:
        return _optrace(options)
    if not name:
        return profile_csv
    if "chrometrace" in name:
        return lambda log: json.dumps(chrome_trace(log))
    if "json" in name:
        return lambda log: json.dumps(log_record(log), indent=2)
    raise UsageError(
        f"--reader {options.reader}: this reader is not known",
        hint="libQnnJsonProfilingReader.so and libQnnChrometraceProfilingReader.so, or none for CSV",
    )


def _optrace(options: ProfileViewerOptions) -> Callable[[ProfilingLog], str]:
    """Timelines are in a log as opaque objects, whose form only Qualcomm's reader knows."""
    if not options.schematic:
        raise UsageError("the optrace reader needs --schematic")
    if not Path(options.schematic).is_file():
        raise InputError(f"{options.schematic}: no such file")
    raise UnsupportedError(
        f"{Path(options.reader).name}: only Qualcomm's own library reads HTP's timelines",
        hint="the SDK's qnn-profile-viewer reads this log; without --reader, its events are shown here."
        " A log that was made on a PC has no timeline: the simulator records none",
    )


def _objects(log: ProfilingLog, folder: Path) -> dict[Path, bytes]:
    """Opaque objects by the files that they go to, none of which may be there."""
    from openqnn.vendor.net_run.run_graphs import file_stem

    events = [e for r in log.records for root in r.events for e in root.walk() if e.content]
    found: dict[Path, bytes] = {}
    for number, event in enumerate(events):
        target = folder / f"{file_stem(event.object_name or event.identifier or 'object')}_{number}.bin"
        if target.exists():
            raise OutputError(f"{target} exists", hint="--output in another folder puts objects there")
        found[target] = event.content
    return found


def _extract(objects: Mapping[Path, bytes]) -> None:
    if not objects:
        print("no opaque object is in the log")
    for target, content in objects.items():
        with replacing(target) as file:
            file.write(content)
        print(f"{target}: {len(content):,} bytes")


TOOL = Tool(
    "qnn-profile-viewer",
    "Print what a profiling log has, and write it to a file.",
    "--input_log LOG [--output PATH] [options]",
    (ProfileViewerOptions,),
    lambda arguments, _: run_profile_viewer(arguments),
    examples=("qnn-profile-viewer --input_log output/qnn-profiling-data_0.log --output profile.csv",),
)
