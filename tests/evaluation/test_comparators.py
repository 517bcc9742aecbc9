"""Comparators against scipy, scikit-learn and sums by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cosine
from scipy.stats import entropy
from sklearn.metrics import (
    max_error,
    mean_absolute_error,
    mean_squared_error,
    root_mean_squared_error,
    top_k_accuracy_score,
)

from openqnn.errors import InputError, UsageError
from openqnn.evaluation.comparators import COMPARATORS, comparator_named
from openqnn.evaluation.match_boxes import BoxOutputs, match_boxes, overlaps, read_box_outputs
from openqnn.ir import Array

CHANCE = np.random.default_rng(5)
X = CHANCE.normal(2.0, 3.0, (4, 50))
Y = X + CHANCE.normal(0.0, 0.4, X.shape)


def histogram_divergence(x: Array, y: Array) -> float:
    ends = min(x.min(), y.min()), max(x.max(), y.max())
    p, q = (np.histogram(a, 128, ends)[0] + 1e-9 for a in (x, y))
    return float(entropy(p, q))


EXPECTED: dict[str, Callable[[Array, Array], float]] = {
    "abs": lambda x, y: 100 * sum(abs(b - a) <= 0.1 * abs(a) for a, b in zip(x, y, strict=True)) / len(x),
    "cos": lambda x, y: 100 * (1 - cosine(x, y)),
    "avg": lambda x, y: 100 * (1 - mean_absolute_error(x, y) / np.abs(x).max()),
    "l1norm": lambda x, y: 100 * (1 - np.linalg.norm(x - y, 1) / np.linalg.norm(x, 1)),
    "l2norm": lambda x, y: 100 * (1 - np.linalg.norm(x - y) / np.linalg.norm(x)),
    "std": lambda x, y: 100 * (1 - abs(np.std(x) - np.std(y)) / np.std(x)),
    "rme": lambda x, y: 100 * (1 - root_mean_squared_error(x, y) / (x.max() - x.min())),
    "snr": lambda x, y: 10 * np.log10(np.mean(x**2) / mean_squared_error(x, y)),
    "maxerror": lambda x, y: max_error(x, y),
    "kld": histogram_divergence,
    "pixelbypixel": lambda x, y: mean_absolute_error(x, y),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_values_are_those_of_other_libraries(name: str) -> None:
    found = COMPARATORS[name].measure(X, Y, 0.1)
    assert found == pytest.approx(EXPECTED[name](X.ravel(), Y.ravel()), abs=1e-6)


@pytest.mark.parametrize("name", [n for n in COMPARATORS if n != "box"])
def test_equal_tensors_match_best(name: str) -> None:
    comparator = COMPARATORS[name]
    best, other = (comparator.measure(X, y, comparator.tolerance) for y in (X, Y))
    assert comparator.rank(best) <= comparator.rank(other)
    assert best == pytest.approx(
        {"percentage": 100.0}.get(comparator.unit, np.inf if name == "snr" else 0.0), abs=1e-9
    )


def test_top_k_is_that_of_scikit_learn() -> None:
    """With one right entry in each row, the share of rows that keep it."""
    labels = X.argmax(axis=1)
    expected = 100 * top_k_accuracy_score(labels, Y, k=1, labels=range(X.shape[1]))
    assert COMPARATORS["topk"].measure(X, Y, 1) == pytest.approx(expected)
    reference, found = np.array([[4.0, 3, 2, 1]]), np.array([[4.0, 1, 2, 3]])
    assert COMPARATORS["topk"].measure(reference, found, 2) == 50


@pytest.mark.parametrize("name", EXPECTED)
def test_nan_and_infinity_in_the_other_tensor_are_no_match(name: str) -> None:
    comparator = COMPARATORS[name]
    bad = X.copy()
    bad[0, 0] = np.nan
    good, found = (comparator.measure(X, y, 0.1) for y in (Y, bad))
    if name == "abs":
        assert found == 100 * (1 - 1 / X.size)
    else:
        assert comparator.rank(found) > comparator.rank(good)


def test_an_unknown_comparator_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match="there is no comparator 'l2nrm'") as caught:
        comparator_named("l2nrm")
    assert "l2norm" in caught.value.hint


def test_overlaps_of_boxes() -> None:
    boxes = np.array([[0.0, 0, 2, 2], [1, 1, 3, 3], [5, 5, 6, 6]])
    assert overlaps(boxes, boxes)[0] == pytest.approx([1, 1 / 7, 0])


def detections(*rows: tuple[float, ...]) -> dict[str, Array]:
    table = np.array(rows, np.float32).reshape(-1, 6)
    return {"boxes": table[None, :, :4], "classes": table[None, :, 4], "scores": table[None, :, 5]}


def test_boxes_that_are_found_again() -> None:
    names = BoxOutputs("boxes", "classes", "scores")
    first = detections((0, 0, 10, 10, 1, 0.9), (20, 20, 30, 30, 2, 0.8), (50, 50, 60, 60, 1, 0.01))
    moved = detections((0, 0, 10, 9, 1, 0.9), (20, 20, 30, 30, 3, 0.8))
    assert match_boxes(first, first, names, 0.5) == 100
    assert match_boxes(first, moved, names, 0.5) == 50  # the second has another class, the third no score
    assert match_boxes(first, moved, names, 0.95) == 0
    nothing = detections((0, 0, 1, 1, 1, 0.0))
    assert match_boxes(nothing, nothing, names, 0.5) == 100


def test_the_file_that_names_boxes(tmp_path: Path) -> None:
    path = tmp_path / "box.json"
    said = {"box": "Result_0/boxes_0.raw", "class": "Result_0/classes_0.raw", "score": "Result_0/scores.raw"}
    path.write_text(json.dumps(said))
    assert read_box_outputs(str(path), ["boxes", "classes", "scores"]) == BoxOutputs(
        "boxes", "classes", "scores"
    )
    with pytest.raises(InputError, match="no output is called 'scores'"):
        read_box_outputs(str(path), ["boxes", "classes"])
    path.write_text('{"box": "a.raw"}')
    with pytest.raises(InputError, match="it needs box, class, score"):
        read_box_outputs(str(path), ["a"])
