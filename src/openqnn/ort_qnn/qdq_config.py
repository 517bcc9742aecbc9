"""Quantizing for ONNX Runtime's QNN provider, by the names that its own package has for the steps."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from openqnn.api.convert import convert
from openqnn.api.quantize import quantize as quantize_graph
from openqnn.errors import UsageError
from openqnn.ir import Graph
from openqnn.quant.recipe import Method, Recipe, Scheme


class QuantType(Enum):
    """Types of stored integers."""

    QInt8 = 0
    QUInt8 = 1
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6


class CalibrationDataReader:
    """A source of samples: `get_next` gives arrays by name, and None at the end. One to derive from."""

    def get_next(self) -> Any:
        raise NotImplementedError

    def rewind(self) -> None:
        """Back to the first sample, where that can be."""


@dataclass(frozen=True, slots=True)
class QdqConfig:
    """What `quantize` needs to know besides the model: data, and the recipe that the types stand for."""

    reader: Any
    recipe: Recipe


def qnn_preprocess_model(model_input: str | os.PathLike[str], model_output: str | os.PathLike[str]) -> bool:
    """Write the model with its patterns fused and its constants folded; False where nothing would change.

    Gelu, layer norms and the like, which exporters take apart, become nodes of their own again.
    """
    if os.path.abspath(model_input) == os.path.abspath(model_output):
        raise UsageError(f"{model_output} is the source model itself", hint="give another file")
    import onnx

    from openqnn.emit.qdq_model import qdq_model, save_qdq_model

    graph = convert(model_input)
    before = Counter(node.op_type for node in onnx.load(model_input, load_external_data=False).graph.node)
    after = Counter(node.op_type for node in qdq_model(graph).graph.node)
    for same in (before, after):
        del same["Identity"], same["Constant"]
    if before == after:
        return False
    save_qdq_model(graph, model_output)
    return True


def get_qnn_qdq_config(
    model_input: str | os.PathLike[str],
    calibration_data_reader: Any,
    calibrate_method: Any = "MinMax",
    activation_type: Any = QuantType.QUInt8,
    weight_type: Any = QuantType.QUInt8,
    per_channel: bool = False,
    **others: Any,
) -> QdqConfig:
    """A recipe for the provider: unsigned activations of 8 or 16 bits, weights of 4, 8 or 16.

    Types may be those of onnxruntime.quantization, too. Activations that QNN wants in a range of its own, as
    those of a Sigmoid, get it; options of ONNX Runtime's function that say that in detail are refused.
    """
    if not Path(model_input).is_file():
        raise UsageError(f"{model_input}: no such file")
    if others:
        raise UsageError(
            f"get_qnn_qdq_config has no {next(iter(others))!r} here",
            hint="openqnn.quantize has overrides, widths of single nodes and targets to reach",
        )
    act, weight = _type("activation_type", activation_type), _type("weight_type", weight_type)
    method = _METHODS.get(str(getattr(calibrate_method, "name", calibrate_method)))
    if method is None:
        raise UsageError(f"there is no calibration {calibrate_method!r}", hint=", ".join(_METHODS))
    if act.name.startswith("QInt"):
        raise UsageError(f"activation_type {act.name}: HTP has unsigned activations", hint="QUInt8, QUInt16")
    symmetric = weight.name.startswith("QInt") or per_channel
    recipe = Recipe().told({"act_bw": _width(act), "weight_bw": _width(weight), "per_channel": per_channel})
    recipe = recipe.told(
        {"per_row": per_channel, "act": Scheme(method), "param": Scheme(symmetric=symmetric)}
    )
    return QdqConfig(calibration_data_reader, recipe)


def quantize(
    model_input: str | os.PathLike[str] | Graph, model_output: str | os.PathLike[str], quant_config: QdqConfig
) -> None:
    """Write the QDQ model."""
    if Path(model_output).suffix != ".onnx":
        raise UsageError(f"{model_output}: a QDQ model is an .onnx file")
    if not isinstance(model_input, Graph) and os.path.abspath(model_input) == os.path.abspath(model_output):
        raise UsageError(f"{model_output} is the source model itself", hint="give another file")
    made = quantize_graph(model_input, quant_config.reader, recipe=quant_config.recipe, algorithms=())
    made.save(model_output)


_METHODS = {"MinMax": Method.MIN_MAX, "Entropy": Method.ENTROPY, "Percentile": Method.PERCENTILE}


def _type(what: str, given: Any) -> QuantType:
    name = str(getattr(given, "name", given))
    if name not in QuantType.__members__:
        raise UsageError(f"{what} is {name}, and must be one of {', '.join(QuantType.__members__)}")
    return QuantType[name]


def _width(kind: QuantType) -> int:
    return int("".join(letter for letter in kind.name if letter.isdigit()))
