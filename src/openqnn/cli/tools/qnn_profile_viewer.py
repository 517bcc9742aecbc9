"""qnn-profile-viewer: a profiling log as text, and as a file of another kind."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from openqnn.cli.command import Tool
from openqnn.cli.shared.vendor_setup import print_version
from openqnn.errors import InputError, OutputError, UsageError
from openqnn.formats.atomic import check_place, replacing
from openqnn.options.field import option, read_options

if TYPE_CHECKING:
    from openqnn.formats.htp_timeline import Schematic
    from openqnn.formats.profiling_log import ProfilingLog

OPTRACE = "optrace"
NO_TIMELINE = (
    "libQnnHtp gives one when it compiles with --profiling_level detailed --profiling_option optrace for a"
    " chip of its cost model: --soc QCS9100. It records none on a PC while a graph runs, and timelines of a"
    " device have a form that only Qualcomm's reader knows"
)
Writer: TypeAlias = "Callable[[ProfilingLog], Mapping[str, str]]"
"""Makes the files of --output: their text by name."""


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
    config: str = option(
        "",
        "--config",
        metavar="JSON",
        help="the features of the optrace reader: what to write beside the trace",
    )
    extract_opaque_objects: bool = option(
        False, "--extract_opaque_objects", help="write opaque objects into files beside --output"
    )
    version: bool = option(False, "--version", help="print versions and exit")


def run_profile_viewer(arguments: Namespace) -> int:
    from openqnn import __version__
    from openqnn.analysis.profile_text import profile_text
    from openqnn.formats.atomic import together
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
    files = writer(log)
    objects = _objects(log, Path(options.output).parent) if options.extract_opaque_objects else None
    print(profile_text(log, __version__), end="")
    with together():
        for target, text in files.items() if options.output else ():
            with replacing(target) as file:
                file.write(text.encode("utf-8"))
    if objects is not None:
        _extract(objects)
    return 0


def _reader(options: ProfileViewerOptions) -> Writer:
    """What makes the output files, by the name of the library that does it in the original."""
    from openqnn.analysis.profile_text import profile_csv
    from openqnn.analysis.profile_trace import chrome_trace, log_record

    name = Path(options.reader).name.lower()
    if OPTRACE in name:
        return _optrace(options)
    for flag in ("schematic", "config"):
        if getattr(options, flag):
            hint = "--reader libQnnHtpOptraceProfilingReader.so"
            raise UsageError(f"--{flag} goes with HTP's optrace reader", hint=hint)
    if not name:
        return lambda log: {options.output: profile_csv(log)}
    if "chrometrace" in name:
        return lambda log: {options.output: json.dumps(chrome_trace(log))}
    if "json" in name:
        return lambda log: {options.output: json.dumps(log_record(log), indent=2)}
    raise UsageError(
        f"--reader {options.reader}: this reader is not known",
        hint="libQnnJsonProfilingReader.so, libQnnChrometraceProfilingReader.so and"
        " libQnnHtpOptraceProfilingReader.so, or none for CSV",
    )


def _optrace(options: ProfileViewerOptions) -> Writer:
    """The timelines that libQnnHtp's cost model wrote into the log, with the names of the schematic."""
    from openqnn.analysis.optrace import features
    from openqnn.formats.htp_timeline import read_schematic

    if not options.schematic:
        raise UsageError("the optrace reader needs --schematic")
    chosen = features(options.config) if options.config else {}
    schematic = read_schematic(options.schematic)
    return lambda log: _optrace_files(log, schematic, chosen, Path(options.output))


def _optrace_files(
    log: ProfilingLog, schematic: Schematic, chosen: Mapping[str, bool], output: Path
) -> dict[str, str]:
    from openqnn.analysis.optrace import TraceChoices, optrace_chrome, optrace_summary, tables
    from openqnn.formats.htp_timeline import timelines_in

    timelines = timelines_in(log)
    if not timelines:
        raise InputError(f"{log.path}: no timeline of HTP is in this log", hint=NO_TIMELINE)
    mine = [timeline for timeline in timelines if timeline.graph == schematic.graph]
    if not mine:
        graphs = ", ".join(timeline.graph for timeline in timelines)
        raise InputError(f"the schematic is of graph '{schematic.graph}', and the log is of {graphs}")
    flows = chosen.get("enable_input_output_flow_events", False)
    choices = TraceChoices(flows, chosen.get("memory_info", True))
    files = {str(output): json.dumps(optrace_chrome(timelines, {schematic.graph: schematic}, choices))}
    summary = optrace_summary(mine[0], schematic)
    if chosen.get("qhas_json"):
        name = output.with_name(f"{output.stem}_qnn_htp_analysis_summary.json")
        files[str(name)] = json.dumps(summary, indent=2)
    if chosen.get("htp_json"):
        name = output.with_name(f"{output.stem}_htp.json")
        files[str(name)] = json.dumps(tables(mine[0], schematic), indent=1)
    return files


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
