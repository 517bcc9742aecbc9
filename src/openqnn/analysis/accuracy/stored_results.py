"""Stored results, by what they follow from: an interrupted run goes on, and a second look is a look-up."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import openqnn
from openqnn.analysis.accuracy.attribution import Attribution
from openqnn.analysis.accuracy.tally import Tally
from openqnn.errors import OpenQnnError, OutputError
from openqnn.formats.atomic import replacing, replacing_any_kind
from openqnn.ir import Array, Graph
from openqnn.ir.oqnn import load_graph, save_graph

KIND = "openqnn debug"
MARK = "stored.json"
MEASURED, ATTRIBUTED = "measured.json", "attributed.json"


def digest_of(*parts: object) -> str:
    """What tells results apart: the parts, and the versions of what computes them."""
    text = json.dumps([openqnn.__version__, onnxruntime.__version__, *parts], default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a measurement came: parts of the graph that are done, samples of the next one, and sums."""

    part: int
    done: int
    tallies: Mapping[str, Tally]


class ResultStore:
    """A folder with the results of one digest. A folder of another digest is emptied when one is written.

    Whatever is damaged counts as not there.
    """

    def __init__(self, folder: Path, digest: str) -> None:
        self.folder, self.digest = folder, digest

    # -- the measurement -------------------------------------------------------------------------------------

    def progress(self) -> Progress | None:
        record = self._read(MEASURED)
        try:
            tallies = {n: _tally(t) for n, t in record["tallies"].items()}
            return Progress(int(record["part"]), int(record["done"]), tallies)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def keep_progress(self, part: int, done: int, tallies: Mapping[str, Tally]) -> None:
        plain = {n: {**asdict(t), "counts": [int(c) for c in t.counts]} for n, t in tallies.items()}
        self._write(MEASURED, {"part": part, "done": done, "tallies": plain})

    def errors(self, sample: int) -> dict[str, Array]:
        """The errors that layers add to a sample, from all parts that are done."""
        found: dict[str, Array] = {}
        for path in sorted(self.folder.glob(f"errors-*-{sample}.npz")):
            with np.load(path, allow_pickle=False) as arrays:
                found |= {str(arrays[f"name{i}"]): arrays[f"error{i}"] for i in range(len(arrays.files) // 2)}
        return found

    def keep_errors(self, part: int, sample: int, errors: Mapping[str, Array]) -> None:
        arrays = {f"error{i}": array for i, array in enumerate(errors.values())}
        names = {f"name{i}": np.array(name) for i, name in enumerate(errors)}
        self._begin()
        with replacing(self.folder / f"errors-{part}-{sample}.npz") as file:
            np.savez(file, **arrays, **names)  # pyright: ignore[reportArgumentType]

    # -- attribution -----------------------------------------------------------------------------------------

    def attribution(self) -> tuple[Attribution, bool]:
        """What is known, and whether that is all."""
        record = self._read(ATTRIBUTED)
        try:
            only, without = ({n: float(v) for n, v in record[k].items()} for k in ("only", "without"))
            return Attribution(only, without, float(record["all"])), bool(record["complete"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return Attribution({}, {}, inf), False

    def keep_attribution(self, found: Attribution, complete: bool) -> None:
        """Once all is known, nobody needs the errors, which are large."""
        self._write(ATTRIBUTED, {**asdict(found), "complete": complete})
        if complete:
            for path in self.folder.glob("errors-*.npz"):
                path.unlink(missing_ok=True)

    # -- anything else ---------------------------------------------------------------------------------------

    def graphs(self, *names: str) -> list[Graph] | None:
        """Graphs that were kept together."""
        if not self._read(MARK):
            return None
        try:
            return [load_graph(self.folder / f"{name}.oqnn") for name in names]
        except (OpenQnnError, OSError):
            return None

    def keep_graphs(self, **graphs: Graph) -> None:
        self._begin()
        for name, graph in graphs.items():
            save_graph(graph, self.folder / f"{name}.oqnn")

    def _begin(self) -> None:
        if self._read(MARK):
            return
        if self.folder.exists():
            if any(self.folder.iterdir()) and not _is_ours(self.folder):
                raise OutputError(f"{self.folder} exists and is not of openqnn debug", hint="move it away")
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True)
        self._put(MARK, {})

    def _read(self, name: str) -> dict[str, Any]:
        try:
            record = json.loads((self.folder / name).read_text(encoding="utf-8"))
            return record if record["kind"] == KIND and record["digest"] == self.digest else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _write(self, name: str, record: Mapping[str, Any]) -> None:
        self._begin()
        self._put(name, record)

    def _put(self, name: str, record: Mapping[str, Any]) -> None:
        with replacing_any_kind(True), replacing(self.folder / name) as file:  # a damaged file looks like any
            file.write(json.dumps({"kind": KIND, "digest": self.digest, **record}).encode())


def _tally(record: Mapping[str, Any]) -> Tally:
    known = {f.name for f in fields(Tally)}
    if set(record) != known:
        raise ValueError("a tally of another version")
    return Tally(**{**record, "counts": np.array(record["counts"], np.int64)})


def _is_ours(folder: Path) -> bool:
    try:
        return json.loads((folder / MARK).read_text(encoding="utf-8"))["kind"] == KIND
    except (OSError, ValueError, KeyError, TypeError):
        return False
