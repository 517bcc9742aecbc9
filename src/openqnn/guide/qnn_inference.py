"""QNNInference: a model on one of Qualcomm's libraries, with the quantization of its inputs in plain view."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import numpy as np

from openqnn.api.session import Session
from openqnn.errors import UsageError
from openqnn.ir import Array, Value
from openqnn.targets.registry import target_of_library
from openqnn.vendor.trust import trusting

LIBRARIES = {"htp": "htp", "cpu": "libQnnCpu.so", "gpu": "libQnnGpu.so"}


class QNNInference:
    """A model library, DLC, context binary, .oqnn or source model on `backend`: "htp", "cpu" or "gpu".

    A model library is code, and naming it here runs it, as `qnn-net-run --model` does; `trust=False` refuses
    files that are code. Offsets have the sign of a zero point here: stored = real / scale + offset. A model
    with one input takes an array, one with several takes arrays by name; so it is with outputs.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str],
        backend: str = "htp",
        *,
        soc: str | int | None = None,
        timeout: float = 600.0,
        trust: bool = True,
    ) -> None:
        self.model_path = os.fspath(model_path)
        self.backend = backend
        self._soc, self._timeout, self._trust = soc, timeout, trust
        self.context: Session | None = None
        self._initialize()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process that the library runs in; so does the end of the object."""
        if self.context is not None:
            self.context.close()

    def _initialize(self) -> None:
        if self.backend not in LIBRARIES and "/" not in self.backend:
            raise UsageError(f"there is no backend {self.backend!r}", hint=f"one of {', '.join(LIBRARIES)}")
        library = LIBRARIES.get(self.backend, self.backend)
        soc = self._soc if target_of_library(library).compiles else None
        with trusting(self._trust):
            self.context = Session(self.model_path, backend=library, soc=soc, timeout=self._timeout)
        graph = self.context.graph
        self._inputs = {value.name: value for value in graph.inputs}
        self._outputs = {value.name: value for value in graph.outputs}
        first, last = graph.inputs[0], graph.outputs[0]
        self.is_quantized = _is_coded(first) or _is_coded(last)
        self.input_scale, self.input_offset = _numbers(first)
        self.output_scale, self.output_offset = _numbers(last)

    def inference(self, input_data: Any) -> Any:
        """Real numbers in, real numbers out."""
        processed = self.preprocess_input(input_data)
        return self.postprocess_output(self._run_inference(processed))

    def preprocess_input(self, data: Any) -> Any:
        """The integers that the model stores for real numbers, or float32 where it has floats."""
        if isinstance(data, Mapping):
            return {name: self._stored(name, array) for name, array in data.items()}
        return self._stored(next(iter(self._inputs)), data)

    def postprocess_output(self, output: Any) -> Any:
        """Real numbers from what the model stores."""
        if isinstance(output, Mapping):
            return {name: _real(self._outputs[name], array) for name, array in output.items()}
        return _real(next(iter(self._outputs.values())), output)

    def _stored(self, name: str, data: Any) -> Array:
        value = self._inputs.get(name)
        if value is None:
            names = ", ".join(map(repr, self._inputs))
            raise UsageError(f"the model has no input {name!r}", hint=f"its inputs: {names}")
        array = np.asarray(data)
        if _is_coded(value):
            assert value.encoding is not None
            return np.asarray(value.encoding.quantize(array, value.dtype.signed), value.dtype.numpy)
        return array.astype(value.dtype.numpy if value.dtype.is_float else array.dtype, copy=False)

    def _run_inference(self, processed: Any) -> Any:
        """Stored numbers in, stored numbers out."""
        named = processed if isinstance(processed, Mapping) else {next(iter(self._inputs)): processed}
        if self.context is None:
            raise UsageError("there is no model to run")
        found = self.context.run(named, native=True)
        return next(iter(found.values())) if len(found) == 1 else found


def _is_coded(value: Value) -> bool:
    return value.dtype.is_fixed and value.encoding is not None


def _numbers(value: Value) -> tuple[float, int]:
    if not _is_coded(value):
        return 1.0, 0
    assert value.encoding is not None
    return value.encoding.scale[0], -value.encoding.offset[0]


def _real(value: Value, array: Array) -> Array:
    if not _is_coded(value):
        return array
    assert value.encoding is not None
    return value.encoding.dequantize(array)
