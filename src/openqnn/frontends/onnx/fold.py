"""ONNX nodes whose inputs are all known: computed on the spot, as shape arithmetic must be.

Common ops have a numpy row, for speed; every other one is computed by ONNX's own reference implementation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import onnx
from onnx import helper

from openqnn.ir import Array, Value

SMALL = 4096  # elements; larger constants stay nodes and are folded together by a pass
_NEVER = {
    "If", "Loop", "Scan", "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike",
    "Bernoulli", "Multinomial", "Dropout",
    "QuantizeLinear", "DequantizeLinear",  # folded to floats they would lose their encodings
}  # fmt: skip


def _divide(a: Array, b: Array) -> Array:
    """ONNX divides integers towards zero."""
    if a.dtype.kind not in "iu":
        return a / b
    quotient = np.abs(a) // np.abs(b)
    return (quotient * np.sign(a) * np.sign(b)).astype(a.dtype)


def _cast(x: Array, *, to: int, **_: Any) -> Array:
    return x.astype(helper.tensor_dtype_to_np_dtype(to))


def _gather(x: Array, indices: Array, *, axis: int = 0) -> Array:
    return np.take(x, indices, axis=axis)


class TooLargeError(ValueError):
    """A few bytes ask for more memory than is worth spending on the spot."""


def _tile(x: Array, repeats: Array) -> Array:
    if x.size * math.prod(max(int(n), 0) for n in repeats.reshape(-1)) > SMALL * 256:
        raise TooLargeError
    return np.tile(x, repeats.tolist())


def _range(start: Array, limit: Array, delta: Array) -> Array:
    count = max(0, int(np.ceil((limit.item() - start.item()) / delta.item())))
    if count > SMALL * 256:
        raise TooLargeError
    return start.reshape(()) + delta.reshape(()) * np.arange(count).astype(start.dtype)


_ROWS: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": np.add,
    "And": np.logical_and,
    "Cast": _cast,
    "Ceil": np.ceil,
    "Concat": lambda *xs, axis: np.concatenate(xs, axis=axis),
    "Div": _divide,
    "Equal": np.equal,
    "Floor": np.floor,
    "Gather": _gather,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Max": lambda *xs: reduce(np.maximum, xs),
    "Min": lambda *xs: reduce(np.minimum, xs),
    "Mul": np.multiply,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Range": lambda start, limit, delta: _range(start, limit, delta),
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Tile": _tile,
    "Where": np.where,
}
# Their translators take constants as views of the data.
_VIEWS = {
    "ConstantOfShape", "Expand", "Flatten", "Identity", "Reshape", "Shape", "Size", "Slice", "Split",
    "Squeeze", "Transpose", "Unsqueeze",
}  # fmt: skip


# A few numbers describe results of any size; who refused to make them here had a reason.
_DESCRIBED = {"ConstantOfShape", "Expand", "Range", "Tile"}


def _arrays(inputs: Sequence[Any]) -> list[Array | None] | None:
    """The inputs as arrays when all are known."""
    found: list[Array | None] = []
    for value in inputs:
        if value is None:
            found.append(None)
        elif isinstance(value, Value) and value.data is not None:
            found.append(value.data)
        else:
            return None
    return found


def small(node: onnx.NodeProto, inputs: Sequence[Any], opset: int) -> list[Array] | None:
    """The results of a node on small constants; None when it has to be translated."""
    arrays = _arrays(inputs)
    if not arrays or node.op_type in _NEVER | _VIEWS or node.domain not in ("", "ai.onnx"):
        return None
    if sum(a.size for a in arrays if a is not None) > SMALL:
        return None
    row = _ROWS.get(node.op_type)
    try:
        if row is not None and all(a is not None for a in arrays):
            with np.errstate(all="ignore"):
                result = row(*arrays, **{a.name: helper.get_attribute_value(a) for a in node.attribute})
            return [np.asarray(result)]
    except TooLargeError:
        return None
    except Exception:  # odd attributes or shapes: the reference implementation decides
        return anything(node, inputs, opset)
    return anything(node, inputs, opset)


def anything(node: onnx.NodeProto, inputs: Sequence[Any], opset: int) -> list[Array] | None:
    """Evaluates a node by ONNX's reference implementation; None when that does not know or refuses the
    node."""
    arrays = _arrays(inputs)
    if not arrays or node.op_type in _NEVER | _DESCRIBED or node.domain not in ("", "ai.onnx"):
        return None
    from onnx.reference import ReferenceEvaluator  # slow to import and rarely needed

    feeds = {n: a for n, a in zip(node.input, arrays, strict=True) if n}
    names = [output for output in node.output if output]
    try:
        with np.errstate(all="ignore"):
            made = ReferenceEvaluator(_model_of(node, feeds, names, opset)).run(None, feeds)
    except Exception:  # it raises whatever numpy raises; the translator then gives the reason
        return None
    found = dict(zip(names, made, strict=True))
    results = [found.get(output) for output in node.output]
    if not all(isinstance(result, np.ndarray | np.generic) for result in results):
        return None
    return [np.asarray(result) for result in results]


def _model_of(
    node: onnx.NodeProto, inputs: Iterable[str], outputs: Iterable[str], opset: int
) -> onnx.ModelProto:
    """A model of one node, with inputs and outputs of unknown types."""
    untyped = onnx.TypeProto()
    ins, outs = ([helper.make_value_info(name, untyped) for name in names] for names in (inputs, outputs))
    graph = helper.make_graph([node], "one", ins, outs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
