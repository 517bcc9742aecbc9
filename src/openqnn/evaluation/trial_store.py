"""The store of trials: what was computed once is found again, by the content of all that it follows from.

Each inference has a folder, {work_dir}/infer/{label}: Result_{i}/{output}.raw for each sample,
qnn_ir/model.oqnn, and trial.json, which is written last and says what the results follow from.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import openqnn
from openqnn.errors import OutputError
from openqnn.evaluation.inference import Inference
from openqnn.evaluation.trial import TrialResult
from openqnn.formats.atomic import replacing
from openqnn.ir import Array

MARK = "trial.json"
KIND = "openqnn evaluation"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True, slots=True)
class TrialStore:
    """The folder of the inferences of one run, and the digest of what they share: model and samples."""

    folder: Path
    digest: str

    def place(self, inference: Inference) -> Path:
        return self.folder / _UNSAFE.sub("_", inference.label)

    def key(self, inference: Inference) -> str:
        record = {k: v for k, v in asdict(inference).items() if k not in ("label", "tag")}
        record["overrides"] = _file_digest(inference.variant.overrides) if inference.variant else ""
        text = json.dumps([openqnn.__version__, self.digest, record], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def load(self, inference: Inference) -> TrialResult | None:
        """The stored result, or None where there is none of just this inference."""
        place = self.place(inference)
        try:
            record = json.loads((place / MARK).read_text(encoding="utf-8"))
            if record.get("kind") != KIND or record["key"] != self.key(inference):
                return None
            outputs = [
                {n: _read(place, i, n, *kind) for n, kind in record["outputs"].items()}
                for i in range(record["samples"])
            ]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return TrialResult(outputs, None, record["cost"], record["seconds"], "", record["notes"])

    def save(self, inference: Inference, result: TrialResult) -> None:
        """Everything of a result; the mark comes last, so that half of one counts as none."""
        place = self.place(inference)
        if place.exists():
            if any(place.iterdir()) and not (place / MARK).exists() and not _is_ours(place):
                raise OutputError(
                    f"{place} exists and is not of an evaluation", hint="choose another -work_dir"
                )
            shutil.rmtree(place)
        place.mkdir(parents=True)
        for index, outputs in enumerate(result.outputs):
            for name, array in outputs.items():
                path = raw_file(place, index, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                np.ascontiguousarray(array).tofile(path)
        if result.graph is not None:
            (place / "qnn_ir").mkdir()
            (place / "qnn_ir" / "model.oqnn").write_bytes(result.graph.tobytes())
        self._mark(place, inference, result)

    def _mark(self, place: Path, inference: Inference, result: TrialResult) -> None:
        first = result.outputs[0] if result.outputs else {}
        record: dict[str, Any] = {
            "kind": KIND, "key": self.key(inference), "label": inference.label,
            "samples": len(result.outputs),
            "outputs": {name: [array.dtype.str, list(array.shape)] for name, array in first.items()},
            "cost": result.cost, "seconds": result.seconds, "notes": result.notes,
        }  # fmt: skip
        with replacing(place / MARK) as file:
            file.write(json.dumps(record).encode())


def raw_file(place: Path, index: int, name: str) -> Path:
    """Where an output is: names of tensors may have characters that file names cannot."""
    return place / f"Result_{index}" / f"{_UNSAFE.sub('_', name)}.raw"


def _read(place: Path, index: int, name: str, dtype: str, shape: Sequence[int]) -> Array:
    return np.fromfile(raw_file(place, index, name), np.dtype(dtype)).reshape(shape)


def _file_digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else ""


def _is_ours(place: Path) -> bool:
    """Whether a folder without its mark is what an interrupted run left."""
    return all(
        p.name.startswith("Result_") or p.name == "qnn_ir" or p.name.startswith(".") for p in place.iterdir()
    )
