"""torchvision's and Keras' networks: how many convert, give their framework's numbers, compile for the NPU.

    python -m tests.frontends.zoo.sweep torchvision keras [--only NAME ...] [--write]

Each network has random weights and batch norms that fit an input. It is saved as its framework saves it
(`.pt2`, `.keras`), converted, run on the built-in backend beside the framework, and compiled by libQnnHtp.
Each is tried in a process of its own. Results are kept in the cache of the models, so that a sweep may be
done in parts; `--write` writes docs/zoo.md of all that are there.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import openqnn
from openqnn.errors import OpenQnnError
from tests.frontends.tflite.litert import cosine
from tests.models.fetch import cache_directory

PAGE = Path(__file__).resolve().parents[3] / "docs" / "zoo.md"
KINDS = ("torchvision", "keras")
SOC, COMPILE_SECONDS, SECONDS = "SM8650", 600.0, 1200.0
LEAST_COSINE, CONVERT_SHARE, COMPILE_SHARE = 0.9999, 0.95, 0.85


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a network; `cosine` is 0 where it did not convert, `why` says what stopped it."""

    kind: str
    name: str
    input: list[int]
    nodes: int = 0
    cosine: float = 0.0
    compiled: bool = False
    seconds: float = 0.0
    why: str = ""

    @property
    def matches(self) -> bool:
        return self.cosine >= LEAST_COSINE


def names(kind: str) -> list[str]:
    if kind == "keras":
        from tests.frontends.zoo import keras_models

        return keras_models.names()
    from tests.frontends.zoo import torchvision_models

    return torchvision_models.names()


def saved(kind: str, name: str, folder: Path) -> tuple[Path, Any, Any]:
    """The network's file, an input, and the framework's output."""
    if kind == "keras":
        from tests.frontends.zoo import keras_models

        return keras_models.saved(name, folder)
    from tests.frontends.zoo import torchvision_models

    return torchvision_models.saved(name, folder)


def attempt(kind: str, name: str, compile: bool, result: str) -> None:
    """One network; the row is written after each stage, so that a process that ends early leaves one."""
    warnings.simplefilter("ignore")
    start = time.monotonic()
    row = Row(kind, name, [], why="its framework did not save it")

    def note(**changes: Any) -> None:
        nonlocal row
        row = Row(**asdict(row) | changes | {"seconds": round(time.monotonic() - start, 1)})
        Path(result).write_text(json.dumps(asdict(row)))

    note()
    with tempfile.TemporaryDirectory() as folder:
        path, x, wanted = saved(kind, name, Path(folder))
        note(input=list(x.shape), why="it was not converted in time")
        try:
            graph = openqnn.convert(path, batch=1 if kind == "keras" else None)
            with openqnn.Session(graph) as session:
                found = next(iter(session.run({graph.inputs[0].name: x}).values()))
        except OpenQnnError as e:
            note(why=_said(e))
            return
    alike = cosine(found, wanted) if found.shape == wanted.shape else 0.0
    note(nodes=len(graph.nodes), cosine=alike, why="" if alike >= LEAST_COSINE else "other numbers")
    if compile:
        try:
            openqnn.compile(graph, "htp", soc=SOC, timeout=COMPILE_SECONDS)
            note(compiled=True)
        except OpenQnnError as e:
            note(why=_said(e))


def _said(error: OpenQnnError) -> str:
    problems = getattr(error, "problems", ())
    return (problems[0].reason if problems else error.message).splitlines()[0][:200]


def sweep(kind: str, wanted: Sequence[str], compile: bool = True) -> list[Row]:
    """Rows of the networks that are named, in a process each."""
    context = multiprocessing.get_context("fork")
    rows: list[Row] = []
    for name in wanted:
        with tempfile.NamedTemporaryFile() as result:
            process = context.Process(target=attempt, args=(kind, name, compile, result.name))
            process.start()
            process.join(SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
            row = Row(**json.loads(Path(result.name).read_text()))
        if process.exitcode and not row.why:
            row = Row(**asdict(row) | {"why": f"the process ended with {process.exitcode} while it compiled"})
        keep(row)
        rows.append(row)
        print(f"{name:28} {row.cosine:.6f} compiled {row.compiled} {row.seconds:.0f} s {row.why}", flush=True)
    return rows


def kept_file(kind: str) -> Path:
    return cache_directory() / f"zoo_{kind}.json"


def kept(kind: str) -> list[Row]:
    path = kept_file(kind)
    return [Row(**row) for row in json.loads(path.read_text()).values()] if path.exists() else []


def keep(row: Row) -> None:
    all_of_it = {r.name: asdict(r) for r in kept(row.kind)} | {row.name: asdict(row)}
    kept_file(row.kind).write_text(json.dumps(all_of_it))


def page() -> str:
    lines = [INTRODUCTION]
    for kind in KINDS:
        rows = sorted(kept(kind), key=lambda r: r.name.lower())
        if not rows:
            continue
        right, asked = sum(r.matches for r in rows), [r for r in rows if r.compiled or r.why]
        lines += [
            f"## {TITLES[kind]}", "",
            f"{len(rows)} networks so far: {right} ({right / len(rows):.0%}) convert and match on the",
            f"built-in backend; {sum(r.compiled for r in asked)} of {len(asked)} compile for {SOC}.", "",
            "| network | input | QNN nodes | cosine | compiles | what stops it |",
            "| --- | --- | ---: | ---: | --- | --- |",
        ]  # fmt: skip
        for r in rows:
            shape = " x ".join(map(str, r.input))
            said = r.why.replace("|", "\\|")
            alike = f"{r.cosine:.6f}" if r.nodes else ""
            yes = "yes" if r.compiled else "no" if r.why else "not tried"
            lines.append(f"| {r.name} | {shape} | {r.nodes or ''} | {alike} | {yes} | {said} |")
        lines.append("")
    return "\n".join(lines)


TITLES = {"torchvision": "torchvision", "keras": "keras.applications"}
INTRODUCTION = f"""\
# Networks of torchvision and Keras

Written by `python -m tests.frontends.zoo.sweep torchvision keras --write`; `make frameworks` runs the sweep.

Every network of the two packages for classification, segmentation and video, with random weights, and batch
norms that fit an input. It is saved by its framework (`.pt2`, `.keras`), converted from the file, and run on
the built-in backend beside the framework: it matches with a cosine of at least {LEAST_COSINE}. Then libQnnHtp
compiles it in half precision, within {COMPILE_SECONDS:.0f} s. Images are small, that this takes hours and not
days. It may be done in parts (`--missing` goes on with the others): the tables have the networks that were
tried so far. Asked of all are {CONVERT_SHARE:.0%} that match and {COMPILE_SHARE:.0%} that compile.
"""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--missing", action="store_true", help="leave out what was tried before")
    parser.add_argument("--no_compile", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    for kind in options.kinds:
        done = {r.name for r in kept(kind)} if options.missing else set[str]()
        sweep(kind, [n for n in options.only or names(kind) if n not in done], not options.no_compile)
    if options.write:
        PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
