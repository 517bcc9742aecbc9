"""python -m benchmarks chip_fits LATENCIES.csv MODELS_DIR [--cycles FILE.json]

Fits milliseconds on chips to the figures of libQnnHtp's cost model, and tells how well networks are predicted
that were not fitted: the table of docs/estimate.md and the numbers of `openqnn.analysis.chip_fits`. The file
of latencies has the columns model, precision, runtime, device and ms; the folder has MODEL.onnx for each.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

DEVICES = {
    "QCS9100": "Dragonwing IQ-9075 EVK", "SM8550": "QCS8550 (Proxy)", "SM8650": "Samsung Galaxy S24",
    "SM8750": "Samsung Galaxy S25", "SM8850": "Snapdragon 8 Elite Gen 5 QRD",
    "SC8380XP": "Snapdragon X Elite CRD", "SM8450": "QCS8450 (Proxy)", "QCS8275": "QCS8275 (Proxy)",
    "SA8775P": "SA8775P ADP",
}  # fmt: skip
PRECISIONS = {8: "w8a8", 16: "w8a16", 32: "float"}
LASTS = {8: ("moved", "alive"), 16: ("read",), 32: ("read",)}
"""What may stand behind the cycles, by width."""
FEWEST = 5
Array = np.ndarray[Any, Any]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks chip_fits")
    parser.add_argument("latencies", type=Path)
    parser.add_argument("models", type=Path)
    parser.add_argument("--cycles", type=Path, help="where cost figures are kept between runs")
    options = parser.parse_args(arguments)
    with options.latencies.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["runtime"] == "qnn_dlc"]
    for width, precision in PRECISIONS.items():
        published = [row for row in rows if row["precision"] == precision]
        figures = _figures(options.models, {row["model"] for row in published}, width, options.cycles)
        print(f"{precision}: {', '.join(figures)}")
        for chip, device in DEVICES.items():
            _tell(chip, [row for row in published if row["device"] == device], figures, width)
    return 0


def _figures(folder: Path, names: set[str], width: int, kept: Path | None) -> dict[str, dict[str, Any]]:
    """What the cost model says of each network of the folder that has latencies."""
    from openqnn import convert, quantize
    from openqnn.analysis.estimate import estimate_graph
    from openqnn.runtime.boundary import random_inputs

    known = json.loads(kept.read_text()) if kept and kept.exists() else {}
    for path in sorted(folder.glob("*.onnx")):
        key = f"{path.stem}/{width}"
        if path.stem in names and key not in known:
            graph = convert(path)
            if width < 32:
                samples = [random_inputs(graph, seed) for seed in range(2)]
                graph = quantize(graph, samples, algorithms=(), act_bw=width, judge=False)
            known[key] = asdict(estimate_graph(graph))
            if kept:
                kept.write_text(json.dumps(known))
    return {key.partition("/")[0]: found for key, found in known.items() if key.endswith(f"/{width}")}


def _tell(chip: str, rows: Sequence[dict[str, str]], figures: dict[str, dict[str, Any]], width: int) -> None:
    measured = {row["model"]: float(row["ms"]) for row in rows if row["model"] in figures}
    if len(measured) < FEWEST:
        return
    names = list(measured)
    times = np.array([measured[name] for name in names])
    tables = {last: np.array([_features(figures[name], last) for name in names]) for last in LASTS[width]}
    chosen = _best(tables, times)
    features = tables[chosen]
    guesses = _left_out(features, times)
    errors = np.abs(guesses / times - 1)
    worst = int(np.argmax(errors))
    numbers = ", ".join(f"{value:.4f}" for value in fit(features, times))
    blind = _left_out_twice(tables, times)
    print(
        f"  {chip:9} {numbers} ({chosen}): median {np.median(errors):.3f}, largest {errors[worst]:.2f}"
        f" ({names[worst]}), Spearman {_spearman(guesses, times):.3f}, {len(names)} networks; with the choice"
        f" left out too: {np.median(np.abs(blind / times - 1)):.3f}, {_spearman(blind, times):.3f}"
    )


def _features(found: dict[str, Any], last: str) -> list[float]:
    """Of 8 bits, bytes that are read tell nothing beyond the cycles; of 16, bytes that are spilled do not."""
    counts = {"moved": found["spilled"] + found["filled"], "alive": found["live"], "read": found["read"]}
    return [1.0, found["cycles"] / 1e6, counts[last] / 1e6]


def _left_out(features: Array, times: Array) -> Array:
    """Each network by a fit without it."""
    return np.array([
        features[i] @ fit(np.delete(features, i, 0), np.delete(times, i)) for i in range(len(times))
    ])  # fmt: skip


def _best(tables: dict[str, Array], times: Array) -> str:
    """The form with the lower median error on networks that were not fitted."""
    error = lambda last: float(np.median(np.abs(_left_out(tables[last], times) / times - 1)))
    return min(tables, key=error)


def _left_out_twice(tables: dict[str, Array], times: Array) -> Array:
    """Each network by a fit whose form was chosen without it, too."""
    guesses: list[float] = []
    for i in range(len(times)):
        others = {last: np.delete(table, i, 0) for last, table in tables.items()}
        left = np.delete(times, i)
        last = _best(others, left)
        guesses.append(float(tables[last][i] @ fit(others[last], left)))
    return np.array(guesses)


def fit(features: Array, times: Array) -> Array:
    """The least absolute relative error, with no coefficient below zero: least squares, weighted anew."""
    scaled = features / times[:, None]
    weights, found = np.ones(len(times)), np.zeros(features.shape[1])
    for _ in range(60):
        gram = scaled.T @ (scaled * weights[:, None]) + 1e-12 * np.eye(len(found))
        goal = scaled.T @ weights
        for _ in range(300):
            before = found.copy()
            for j in range(len(found)):
                found[j] = max(0.0, (goal[j] - gram[j] @ found + gram[j, j] * found[j]) / gram[j, j])
            if np.allclose(found, before, rtol=1e-7, atol=1e-9):
                break
        weights = 1 / np.maximum(np.abs(scaled @ found - 1), 0.03)
    return found


def _spearman(first: Array, second: Array) -> float:
    ranks = [np.argsort(np.argsort(values)) for values in (first, second)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])
