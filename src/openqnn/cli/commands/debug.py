"""openqnn debug: which layer is wrong, why, and what to change."""

from __future__ import annotations

import hashlib
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.command import Command, Report
from openqnn.cli.shared.quantizing import Asked, quantized, read_asked
from openqnn.errors import InputError, OpenQnnWarning, OutputError, UsageError
from openqnn.formats.atomic import replacing
from openqnn.options.debug import DebugOptions
from openqnn.options.field import read_options
from openqnn.options.packages import OwnOps
from openqnn.options.quantizer import QuantizerChoices, QuantizerData, QuantizerEncodings
from openqnn.options.source import SourceOptions
from openqnn.quant.recipe import Recipe

if TYPE_CHECKING:
    from openqnn.analysis.accuracy.debug_report import DebugReport
    from openqnn.analysis.accuracy.stored_results import ResultStore
    from openqnn.api.quantize import Outcome
    from openqnn.ir import Array, Graph
    from openqnn.quant.samples import Samples

FILES = ("debug.html", "debug.csv", "debug.json")
VIEW = "model.html"
STORED = "stored"  # the folder of results beside a report
GRAPHS = ("real", "fixed", "usual")


def run_debug(arguments: Namespace) -> Report:
    """0 where no layer is broken, 1 where one is."""
    from openqnn.analysis.accuracy.debug import debug_accuracy
    from openqnn.analysis.accuracy.debug_report import report_record
    from openqnn.api.files import open_graph
    from openqnn.cli.progress import Stages

    options, source = read_options(arguments, DebugOptions), read_options(arguments, SourceOptions)
    asked = _with_data(read_asked(arguments, with_data=True), options)
    if options.prefix and not options.confirm:
        raise UsageError("--prefix runs the layers that --confirm does", hint="--confirm --prefix")
    _check_places(options)
    opened = open_graph(source.model, **source.settings())
    store = _store(opened, asked, options)
    known = store.graphs(*GRAPHS) if store is not None else None
    real, fixed, usual = known or _graphs(opened, asked, options)
    samples = _samples(real, asked, options.samples)
    if store is not None and not known and usual is not None:
        store.keep_graphs(**dict(zip(GRAPHS, (real, fixed, usual), strict=True)))
    with Stages(quiet=options.quiet) as stages:
        report = debug_accuracy(
            real, fixed, samples, usual=usual, attribution=not options.no_attribution, stage=stages.update,
            store=store,
        )  # fmt: skip
    if options.confirm:
        report = _confirmed(report, real, fixed, samples[0], options)
    _write(report, options, fixed)
    mended = _fix(report, usual, opened, asked, samples, options) if options.fix else []
    if options.json:
        sys.stderr.writelines(f"{line}\n" for line in mended)
    return Report(report_record(report), lambda: _print(report, options, mended), report.exit_code)


def _store(opened: Graph, asked: Asked, options: DebugOptions) -> ResultStore | None:
    """Where results are kept, beside a report: they follow from the model, the data and the choices."""
    from openqnn.analysis.accuracy.stored_results import ResultStore, digest_of
    from openqnn.api.quantize_variants import digest_of_arrays, digest_of_graph

    if not options.report:
        return None
    files = [
        hashlib.sha256(Path(path).read_bytes()).hexdigest()
        for path in _files_of(asked.choices, asked.encodings, options.quantized)
    ]
    with warnings.catch_warnings(action="ignore", category=OpenQnnWarning):  # they are said later
        data = digest_of_arrays(_data(opened, asked))
    choices = asked.choices, asked.encodings, options.samples, options.no_attribution
    digest = digest_of(digest_of_graph(opened), data, *choices, files)
    return ResultStore(Path(options.report) / STORED, digest)


def _files_of(*options: object) -> Iterator[str]:
    """The files that options name."""
    for each in options:
        for value in vars(each).values() if hasattr(each, "__dict__") else [each]:
            if isinstance(value, str) and value and Path(value).is_file():
                yield value


def _confirmed(
    report: DebugReport, real: Graph, fixed: Graph, sample: Mapping[str, Array], options: DebugOptions
) -> DebugReport:
    """The report with what libQnnHtp says about the first layers and about tapping."""
    from openqnn.analysis.accuracy.confirm import confirm_on_htp

    names = [y.tensor for y in report.layers[: options.layers]]
    found = confirm_on_htp(real, fixed, sample, names, prefixes=options.prefix)
    notes = [f"libQnnHtp, isolated on one sample: {name} {db:.1f} dB" for name, db in found.isolated.items()]
    notes += [f"libQnnHtp, up to {name}, nothing tapped: {db:.1f} dB" for name, db in found.prefix.items()]
    notes += [f"libQnnHtp does not run {name} alone: {why}" for name, why in found.refused.items()]
    if found.tapping is None:
        notes.append("libQnnHtp does not run the graph: what tapping changes is not known")
    elif found.tapping == float("inf"):
        notes.append("tapping these layers changes nothing in the outputs on libQnnHtp")
    else:
        notes.append(f"tapping these layers changes the outputs on libQnnHtp: {found.tapping:.1f} dB")
    return replace(report, notes=(*report.notes, *notes), confirmed=found.isolated)


def _fix(
    report: DebugReport, usual: Graph | None, opened: Graph, asked: Asked,
    samples: Sequence[Mapping[str, Array]], options: DebugOptions,
) -> list[str]:  # fmt: skip
    """Writes the recipe; lines that tell what it is worth, since the model is quantized with it."""
    from openqnn.analysis.accuracy.mend import mending_encodings
    from openqnn.api.quantize import DEFAULT_ALGORITHMS
    from openqnn.formats.encodings import write_encodings
    from openqnn.runtime.compare import output_noise

    entries = mending_encodings(report, usual)
    if not entries:
        return ["--fix: nothing to mend by encodings"]
    write_encodings(options.fix, entries)
    with_fix = replace(asked, encodings=replace(asked.encodings, quantization_overrides=options.fix))
    found: list[Outcome] = []
    made = quantized(
        opened, with_fix, Recipe(), quiet=True, algorithms=DEFAULT_ALGORITHMS, outcome=found.append
    )
    after = min((n.sqnr for n in output_noise(found[0].origin, made, samples).values()), default=0.0)
    before = min((o.sqnr for o in report.outputs), default=0.0)
    verdict = "better" if after > before + 0.5 else "worse" if after < before - 0.5 else "no better"
    return [
        f"{options.fix}: {len(entries)} encodings; the worst output has {after:.1f} dB with them,"
        f" {before:.1f} dB before: {verdict}",
        f"  openqnn quantize MODEL --data {asked.data.input_list} --quantization_overrides {options.fix}",
    ]


def _with_data(asked: Asked, options: DebugOptions) -> Asked:
    if options.data and asked.data.input_list:
        raise UsageError("--data and --input_list both say what to compare on: give one")
    if not (options.data or asked.data.input_list):
        raise UsageError("there is nothing to compare on", hint="--data PATH")
    if options.data:
        asked = replace(asked, data=replace(asked.data, input_list=options.data))
    return asked


def _check_places(options: DebugOptions) -> None:
    """Before the work is done: nothing of the user's is replaced unasked."""
    from openqnn.analysis.accuracy.debug_page import is_debug_page
    from openqnn.formats.encodings import may_replace

    if options.fix and not may_replace(options.fix) and not options.overwrite:
        raise OutputError(f"{options.fix} exists and is no encodings file", hint="--overwrite replaces it")
    if not options.report:
        return
    folder = Path(options.report)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"--report {folder} is a file", hint="give a folder")
    others = [p for p in (folder / name for name in (*FILES, VIEW)) if p.exists()]
    known = is_debug_page(folder / FILES[0])
    if others and not known and not options.overwrite:
        raise OutputError(f"{others[0]} exists and is no report", hint="--overwrite replaces it")


def _graphs(opened: Graph, asked: Asked, options: DebugOptions) -> tuple[Graph, Graph, Graph | None]:
    """The graph in floating point, the one in fixed point, and the one that is usually made of it."""
    from openqnn.analysis.accuracy.usual import usual_graph

    real, fixed = _real_and_fixed(opened, asked, options)
    return real, fixed, usual_graph(real, fixed, _calibrated(real, asked, options))


def _real_and_fixed(opened: Graph, asked: Asked, options: DebugOptions) -> tuple[Graph, Graph]:
    from openqnn.analysis.accuracy.references import reference_for
    from openqnn.api.files import open_graph
    from openqnn.api.quantize import DEFAULT_ALGORITHMS

    if options.quantized:
        fixed = open_graph(options.quantized)
        return reference_for(opened, fixed), fixed
    found: list[Outcome] = []
    made = quantized(
        opened, asked, Recipe(), quiet=options.quiet, algorithms=DEFAULT_ALGORITHMS, outcome=found.append
    )
    return found[0].real, made


def _data(real: Graph, asked: Asked) -> Samples:
    """All that the graph was calibrated with, of which the first samples are compared on."""
    from openqnn.quant.samples import samples_of

    return samples_of(real, asked.data.input_list, native=asked.native)


def _calibrated(real: Graph, asked: Asked, options: DebugOptions) -> Iterable[Mapping[str, Array]]:
    """The samples that ranges came from: the quantizer holds some back, other tools' graphs have had all."""
    from openqnn.quant.held_out import HeldOut

    every = _data(real, asked)
    return every if options.quantized else HeldOut(real, every)


def _samples(real: Graph, asked: Asked, count: int) -> list[Mapping[str, Array]]:
    from openqnn.quant.samples import is_whole

    every = _data(real, asked)
    with warnings.catch_warnings(action="ignore", category=OpenQnnWarning):
        found = list(islice(filter(is_whole, every), count))
    if not found:
        raise InputError(f"{asked.data.input_list}: no sample is free of NaN")
    return found


def _write(report: DebugReport, options: DebugOptions, fixed: Graph) -> None:
    """The report in three forms, and the graph as a page of the viewer with the errors of its layers."""
    from openqnn.analysis.accuracy.debug_page import debug_page
    from openqnn.analysis.accuracy.debug_report import report_csv, report_json

    if not options.report:
        return
    folder = Path(options.report)
    folder.mkdir(parents=True, exist_ok=True)
    texts = debug_page(report, VIEW), report_csv(report), report_json(report)
    for name, text in zip(FILES, texts, strict=True):
        with replacing(folder / name) as file:
            file.write(text.encode())
    _write_view(folder, fixed)


def _write_view(folder: Path, fixed: Graph) -> None:
    from openqnn.viewer.from_graph import view_from_graph
    from openqnn.viewer.page import html_page
    from openqnn.viewer.read_overlays import read_overlays

    view = view_from_graph(fixed, fixed.name, "QNN graph")
    page = html_page([view], read_overlays(folder / FILES[2]))
    with replacing(folder / VIEW) as file:
        file.write(page.encode())


def _print(report: DebugReport, options: DebugOptions, mended: Sequence[str]) -> None:
    from openqnn.cli.report_debug import print_debug

    print_debug(report, options.layers)
    if options.report:
        print(Path(options.report) / FILES[0])
    print("".join(f"{line}\n" for line in mended), end="")


COMMAND = Command(
    "debug",
    "Tell which layer of a quantized model is wrong, why, and what to change.",
    (SourceOptions, OwnOps, DebugOptions, QuantizerData, QuantizerChoices, QuantizerEncodings),
    run_debug,
    examples=(
        "openqnn debug model.onnx --data samples/",
        "openqnn debug model.onnx --data samples/ --fix fixed.json --confirm",
    ),
)
