"""TensorFlow on a model as it is, in a process of its own: what a converted graph is compared with."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from openqnn.errors import ModelError
from openqnn.frontends.tensorflow.kinds import SAVED_MODEL_FILES, kind_of
from openqnn.frontends.tensorflow.run_tensorflow import TensorflowRequest, ask, check_answer
from openqnn.frontends.tensorflow.show_tensors import TENSORS
from openqnn.ir import Array
from openqnn.runtime.runner import Outputs, chosen

SCRIPT = Path(__file__).with_name("show_tensors.py")


class TensorflowRunner:
    """A TensorFlow model, with its own names; a runner in the sense of `Runner`.

    Which tensors it has is known behind the first run. Results of nodes have the names of these, the others
    `name:1`, and the outputs of signatures the names that users know.
    """

    def __init__(self, model: str | os.PathLike[str], outputs: Sequence[str] = ()) -> None:
        kind = kind_of(model)
        if not kind:
            missing = "" if Path(model).exists() else ": no such file"
            raise ModelError(
                f"{model}{missing or ': not a TensorFlow model'}",
                hint="give a frozen graph (.pb), a checkpoint (.meta), a Keras model or a SavedModel",
            )
        path = Path(model)
        whole = str(path.parent if path.name in SAVED_MODEL_FILES else path)
        self._request = TensorflowRequest(whole, kind, outputs=[o.removesuffix(":0") for o in outputs])
        self._names: list[str] = []

    @property
    def tensor_names(self) -> list[str]:
        return self._names

    def run(self, inputs: Mapping[str, Array], /, outputs: Outputs = None) -> dict[str, Array]:
        with tempfile.TemporaryDirectory(prefix="openqnn-tensorflow-") as place:
            folder = Path(place)
            np.savez(folder / "inputs.npz", allow_pickle=False, **inputs)
            answer = ask(self._request, folder, SCRIPT, {"inputs": str(folder / "inputs.npz")})
            check_answer(answer, self._request)
            self._names = list(answer["names"])
            with np.load(folder / TENSORS) as file:
                found = {name: file[str(i)] for i, name in enumerate(self._names)}
        own = [o for o in self._request.outputs if o in found] or self._names[-1:]
        return {name: found[name] for name in chosen(outputs, own, self._names)}

    def run_many(
        self, samples: Iterable[Mapping[str, Array]], /, outputs: Outputs = None
    ) -> Iterator[dict[str, Array]]:
        return (self.run(sample, outputs) for sample in samples)

    def close(self) -> None:
        """Nothing is kept between runs."""
