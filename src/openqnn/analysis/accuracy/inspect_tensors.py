"""Inspection of tensors: golden and target beside each other, as plots, tables and figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from openqnn.analysis.accuracy.plots import Mark, Plot, Series, draw_png
from openqnn.analysis.accuracy.tensor_folder import TensorFolder, safe_path
from openqnn.analysis.accuracy.verifiers import ChosenVerifier
from openqnn.errors import InputError
from openqnn.formats.atomic import replacing
from openqnn.formats.encodings import TensorEncoding
from openqnn.ir import Array
from openqnn.qnn.net import qnn_name

BINS = 100
MOST_POINTS = 4000  # of a plot
MOST_ROWS = 1_000_000  # of a table of values


@dataclass(frozen=True, slots=True)
class Inspected:
    """The figures of one tensor; calibrated ones only where encodings are given."""

    name: str
    golden: tuple[float, float]
    target: tuple[float, float]
    calibrated: tuple[float, float] | None
    values: Mapping[str, float]

    def record(self) -> dict[str, object]:
        made: dict[str, object] = {"Name": self.name}
        for side, ends in (("golden", self.golden), ("target", self.target)):
            made |= {f"{side}_min": ends[0], f"{side}_max": ends[1]}
        if self.calibrated is not None:
            low, high = self.calibrated
            made |= {"calibrated_min": low, "calibrated_max": high}
            made |= {"min_difference": self.target[0] - low, "max_difference": self.target[1] - high}
        return {**made, **self.values}


def inspect_folders(
    golden: TensorFolder, target: TensorFolder, verifiers: Sequence[ChosenVerifier],
    encodings: Mapping[str, TensorEncoding], folder: Path,
) -> list[Inspected]:  # fmt: skip
    """All tensors that both folders have under the same name, each in a folder of its own."""
    shared = [name for name in golden if name in target.files]
    if not shared:
        raise InputError(
            f"{golden.folder} and {target.folder} have no file of the same name",
            hint="only files with the same name in both folders are inspected",
        )
    found = [
        inspect_tensor(name, golden.read(name), _real(target, name, encodings), verifiers, encodings, folder)
        for name in shared
    ]
    write_inspection(folder / "summary.csv", found)
    return found


def _real(target: TensorFolder, name: str, encodings: Mapping[str, TensorEncoding]) -> Array:
    """The numbers of a target file: stored integers become real by their encoding, where that is known."""
    array = target.read(name)
    said = encodings.get(qnn_name(name))
    if array.dtype.kind == "f" or said is None or len(said.scales) != 1:
        return array.astype(np.float32)
    offset = said.unsigned_offsets[0] if array.dtype.kind == "u" else said.as_signed().offsets[0]
    return ((array.astype(np.float64) + offset) * said.scales[0]).astype(np.float32)


def inspect_tensor(
    name: str, golden: Array, target: Array, verifiers: Sequence[ChosenVerifier],
    encodings: Mapping[str, TensorEncoding], folder: Path,
) -> Inspected:  # fmt: skip
    """The plots and tables of one tensor."""
    if golden.size != target.size:
        raise InputError(f"'{name}' has {target.size:,} numbers, golden {golden.size:,}")
    place = folder / safe_path(name)
    place.mkdir(parents=True, exist_ok=True)
    said = encodings.get(qnn_name(name))
    ends = said.limits() if said is not None and not said.is_float else []
    calibrated = (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None
    values = {v.name.lower(): v([golden], [target]) for v in verifiers if v.verifier.tensors == 1}
    found = Inspected(name, _ends(golden), _ends(target), calibrated, values)
    for file, plots in _plots(name, golden, target, found):
        with replacing(place / file) as out:
            out.write(draw_png(plots))
    for file, array in (("golden_data.csv", golden), ("target_data.csv", target)):
        with replacing(place / file) as out:
            out.write("".join(f"{v:.9g}\n" for v in array[:MOST_ROWS].tolist()).encode())
    return found


def _ends(array: Array) -> tuple[float, float]:
    good = array[np.isfinite(array)]
    return (float(good.min()), float(good.max())) if good.size else (0.0, 0.0)


def _plots(name: str, golden: Array, target: Array, found: Inspected) -> Iterator[tuple[str, list[Plot]]]:
    low, high = min(found.golden[0], found.target[0]), max(found.golden[1], found.target[1])
    sides = (("golden", golden), ("target", target))
    counted = {side: _histogram(a, low, high) for side, a in sides}
    bars = [Plot(f"{name}: {side}", [Series(side, *counted[side], kind="bars")]) for side, _ in sides]
    yield "Histograms.png", bars
    some = _some(golden.size)
    gap = golden[some].astype(np.float64) - target[some]
    yield (
        "Diff_plots.png",
        [
            Plot(
                f"{name}: golden - target",
                [Series("difference", some.astype(np.float64), gap)],
                xlabel="element",
            ),
            Plot(
                f"{name}: target over golden",
                [Series("target", golden[some], target[some], "dots")],
                xlabel="golden",
            ),
        ],
    )
    curves = [Series(side, x, np.cumsum(y) / max(float(y.sum()), 1.0)) for side, (x, y) in counted.items()]
    yield "CDF_plots.png", [Plot(f"{name}: cumulative distribution", curves)]
    if found.calibrated is not None:
        marks = [Mark("target min", found.target[0]), Mark("target max", found.target[1])]
        marks += [Mark("calibrated min", found.calibrated[0]), Mark("calibrated max", found.calibrated[1])]
        density = Series("density", *_density(*counted["target"]))
        yield "Distribution_min-max.png", [Plot(f"{name}: density of the target", [density], marks)]


def _some(size: int) -> Array:
    return np.arange(size) if size <= MOST_POINTS else np.linspace(0, size - 1, MOST_POINTS).astype(np.int64)


def _histogram(array: Array, low: float, high: float) -> tuple[Array, Array]:
    ends = (low, high) if high > low else (low - 0.5, low + 0.5)
    counts, edges = np.histogram(array[np.isfinite(array)], BINS, ends)
    return (edges[1:] + edges[:-1]) / 2, counts.astype(np.float64)


def _density(x: Array, counts: Array) -> tuple[Array, Array]:
    """A histogram smoothed by a normal kernel, by Scott's rule, with an area of 1."""
    total = max(float(counts.sum()), 1.0)
    mean = float((x * counts).sum()) / total
    spread = float(np.sqrt((counts * np.square(x - mean)).sum() / total))
    step = float(x[1] - x[0])
    width = max(1.06 * spread * total**-0.2, step)
    kernel = np.exp(-0.5 * np.square((x[:, None] - x[None, :]) / width))
    smooth = kernel @ counts
    return x, smooth / max(float(smooth.sum()) * step, 1e-30)


def write_inspection(path: Path, found: Sequence[Inspected]) -> None:
    records = [each.record() for each in found]
    columns = list(dict.fromkeys(key for record in records for key in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    with replacing(path) as file:
        file.write(text.getvalue().encode())
