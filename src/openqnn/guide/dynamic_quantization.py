"""DynamicQuantization: ranges of activations seen on data, as an encodings file for the quantizer."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from openqnn.api.files import open_graph
from openqnn.api.session import Session
from openqnn.errors import InputError, UsageError
from openqnn.ir import Array, Graph

Params: TypeAlias = dict[str, dict[str, Any]]
LEAST_RANGE = 1e-4
"""A tensor that is always zero gets this range, as QNN's own quantizer has it."""


class DynamicQuantization:
    """Collect statistics of every activation of a model, and make encodings of 8 or 16 bits of them.

    What `apply_quantization` gives is the content of a file for `--quantization_overrides`, in which offsets
    have the sign of a zero point, and `quantized` makes a graph with it.
    """

    def __init__(self, model_path: str | os.PathLike[str], bitwidth: int = 8) -> None:
        if bitwidth not in (8, 16):
            raise UsageError(f"activations have 8 or 16 bits, not {bitwidth}")
        self.model_path = os.fspath(model_path)
        self.bitwidth = bitwidth
        self.calibration_data: list[tuple[str, Array]] = []
        self._graph = open_graph(model_path)

    def collect_statistics(self, calibration_dataset: Iterable[Any]) -> None:
        """Run the model on each sample: an array, or arrays by the names of inputs. Only ranges are kept."""
        with Session(self._graph) as session:
            for data in calibration_dataset:
                seen = self._forward(session, data)
                self.calibration_data += [(name, _extent(array)) for name, array in seen.items()]

    def forward_hooks(self, data: Any) -> dict[str, Array]:
        """Every activation of the model on a sample, by name."""
        with Session(self._graph) as session:
            return self._forward(session, data)

    def compute_quantization_params(self) -> Params:
        """Scale, zero point and range of each tensor. Zero is always in the range, so that it is exact."""
        if not self.calibration_data:
            raise UsageError("there are no statistics", hint="call collect_statistics(dataset) first")
        ranges: dict[str, tuple[float, float]] = {}
        for name, seen in self.calibration_data:
            low, high = ranges.get(name, (0.0, 0.0))
            ranges[name] = min(low, float(np.min(seen))), max(high, float(np.max(seen)))
        return {name: self._params(*extent) for name, extent in ranges.items()}

    def apply_quantization(self, quantization_params: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The content of an encodings file."""
        entries = {
            name: {"bitwidth": self.bitwidth, **{k: each[k] for k in ("scale", "offset", "min", "max")}}
            for name, each in quantization_params.items()
        }
        return {"activation_encodings": entries, "param_encodings": {}}

    def quantized(self, quantization_params: Mapping[str, Mapping[str, Any]] | None = None) -> Graph:
        """The model in fixed point with these encodings, or with those of the statistics."""
        import json
        import tempfile
        from pathlib import Path

        from openqnn.api.quantize import quantize

        config = self.apply_quantization(quantization_params or self.compute_quantization_params())
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "encodings.json"
            file.write_text(json.dumps(config))
            return quantize(self._graph, overrides=file, act_bw=self.bitwidth, algorithms=())

    def _forward(self, session: Session, data: Any) -> dict[str, Array]:
        names = [v.name for node in self._graph.nodes for v in node.outputs if v.dtype.is_float]
        inputs = session.input_names
        if not isinstance(data, Mapping) and len(inputs) != 1:
            wanted = ", ".join(map(repr, inputs))
            raise InputError(f"the model has {len(inputs)} inputs: {wanted}", hint="give arrays by name")
        given = data if isinstance(data, Mapping) else {inputs[0]: data}
        found = session.run(given, list(dict.fromkeys([*names, *session.output_names])))
        floats = {name: np.asarray(array) for name, array in given.items()}
        return {n: a for n, a in (floats | found).items() if a.dtype.kind == "f" and a.size}

    def _params(self, low: float, high: float) -> dict[str, Any]:
        steps = (1 << self.bitwidth) - 1
        high = high if high - low > 0 else low + LEAST_RANGE
        scale = (high - low) / steps
        offset = round(-low / scale)
        return {"scale": scale, "offset": offset, "min": -offset * scale, "max": (steps - offset) * scale}


def _extent(array: Array) -> Array:
    if not np.isfinite(array).all():
        raise InputError("an activation has NaN or infinity on this data, which no range holds")
    return np.array([array.min(), array.max()])
