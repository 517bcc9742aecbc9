"""Metrics of classifiers and of readers of text: topk and precision."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from openqnn.errors import InputError
from openqnn.evaluation.plugins.batches import MEMBERS
from openqnn.evaluation.plugins.parameter_kinds import kind_counts, kind_int
from openqnn.evaluation.plugins.plugin import Context, MetricPlugin, Result, param, plugin


def read_truth(path: Path) -> dict[str, str]:
    """`file truth` in each line: the truth by the file's name, with and without its folders."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        name, sign, truth = line.strip().partition(" ")
        if not sign:
            name, sign, truth = line.strip().partition(",")
        if not sign:
            raise InputError(f"{path}, line {number}: '{line}' is not FILE TRUTH")
        found[name] = truth.strip()
        found.setdefault(Path(name).name, truth.strip())
    if not found:
        raise InputError(f"{path} has no lines")
    return found


def truth_of(truths: dict[str, str], files: Sequence[str], index: int, path: Path) -> str:
    if index >= len(files):
        raise InputError(f"input_image_index {index}: a line of the input list has {len(files)} files")
    name = files[index]
    for key in (name, Path(name).name, Path(name).stem):
        if key in truths:
            return truths[key]
    raise InputError(f"{path} says nothing of '{name}'")


@plugin("topk")
class TopK(MetricPlugin):
    """The share of items whose label is among the k highest scores, for each k."""

    kval: tuple[int, ...] = param(kind_counts, (5,), in_memory=(1, 5))
    softmax_index: int = param(kind_int, 0)
    label_offset: int = param(kind_int, 0)
    round: int = param(kind_int, 3)
    input_image_index: int = param(kind_int, 0)

    def evaluate(self, results: Sequence[Result], context: Context) -> dict[str, float]:
        path = context.dataset.annotation_file("topk")
        truths, hits = read_truth(path), []
        for result in results:
            if self.softmax_index >= len(result.arrays):
                raise InputError(
                    f"topk: softmax_index {self.softmax_index}, and there are {len(result.arrays)} outputs"
                )
            scores = np.asarray(result.arrays[self.softmax_index], np.float64)
            members = result.item.notes.get(MEMBERS, (result.item,))
            for row, member in zip(scores.reshape(max(1, scores.shape[0]), -1), members, strict=False):
                truth = truth_of(truths, member.files, self.input_image_index, path)
                order = np.argsort(-row, kind="stable")
                hits.append(self._place(order, truth, path))
        return {f"top{k}": round(float(np.mean([h < k for h in hits])), self.round) for k in self.kval}

    def _place(self, order: np.ndarray, truth: str, path: Path) -> int:
        """How many scores are above that of the right class."""
        try:
            label = int(truth.split(maxsplit=1)[0]) + self.label_offset
        except (ValueError, IndexError):
            raise InputError(f"{path}: '{truth}' is no number of a class") from None
        found = np.flatnonzero(order == label)
        return int(found[0]) if len(found) else len(order)


@plugin("precision")
class Precision(MetricPlugin):
    """The share of items whose text is exactly the truth."""

    round: int = param(kind_int, 7)
    input_image_index: int = param(kind_int, 0)

    def evaluate(self, results: Sequence[Result], context: Context) -> dict[str, float]:
        path = context.dataset.annotation_file("precision")
        truths = read_truth(path)
        right = [
            str(r.value) == truth_of(truths, r.item.files, self.input_image_index, path) for r in results
        ]
        return {"precision": round(float(np.mean(right)), self.round)}
