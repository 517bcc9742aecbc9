"""LiteRT on a TFLite model as it is: what a converted graph is compared with."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from openqnn.errors import BackendError, InputError, ModelError
from openqnn.ir import Array
from openqnn.runtime.runner import Outputs, chosen


class TfliteRunner:
    """A TFLite model, with its own names and types; a runner in the sense of `Runner`."""

    def __init__(self, model: str | os.PathLike[str]) -> None:
        try:
            with warnings.catch_warnings(action="ignore"):  # it says what keeping all tensors costs
                self._interpreter: Any = _interpreter()(
                    model_path=os.fspath(model), experimental_preserve_all_tensors=True
                )
            self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise ModelError(f"{model}: LiteRT does not run it: {error}") from error
        self._inputs = {d["name"]: d["index"] for d in self._interpreter.get_input_details()}
        self._own = {d["name"]: d["index"] for d in self._interpreter.get_output_details()}
        every = {d["name"]: d["index"] for d in self._interpreter.get_tensor_details() if d["name"]}
        self._tensors = {**self._own, **{n: i for n, i in every.items() if n not in self._inputs}}

    @property
    def tensor_names(self) -> list[str]:
        return list(self._tensors)

    def run(self, inputs: Mapping[str, Array], /, outputs: Outputs = None) -> dict[str, Array]:
        for name, array in inputs.items():
            if name not in self._inputs:
                raise InputError(f"the model has no input '{name}'", hint=f"it has {', '.join(self._inputs)}")
            self._interpreter.set_tensor(self._inputs[name], np.ascontiguousarray(array))
        self._interpreter.invoke()
        found: dict[str, Array] = {}
        for name in chosen(outputs, list(self._own), self.tensor_names):
            try:
                found[name] = np.array(self._interpreter.get_tensor(self._tensors[name]))
            except ValueError:  # a tensor that an optimization left without numbers
                continue
        return found

    def run_many(
        self, samples: Iterable[Mapping[str, Array]], /, outputs: Outputs = None
    ) -> Iterator[dict[str, Array]]:
        return (self.run(sample, outputs) for sample in samples)

    def close(self) -> None:
        self._interpreter = None


def _interpreter() -> Any:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        raise BackendError(
            "TFLite models are run by LiteRT, which is not installed", hint="pip install ai-edge-litert"
        ) from None
    return Interpreter
