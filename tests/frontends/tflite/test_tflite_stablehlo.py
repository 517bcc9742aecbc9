"""StableHLO operators inside of TFLite models, against numpy: LiteRT has kernels for few of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert")

import openqnn
from tests.frontends.tflite.build import T, single

A, B = (np.random.default_rng(seed).uniform(0.5, 2, (2, 3)).astype(np.float32) for seed in (1, 2))
COMPARE, TURN, JOIN = "StablehloCompareOptions", "StablehloTransposeOptions", "StablehloConcatenateOptions"
OPERATORS: list[tuple[str, Callable[..., Any], int, str, dict[str, Any]]] = [
    ("ADD", np.add, 2, "", {}),
    ("SUBTRACT", np.subtract, 2, "", {}),
    ("MULTIPLY", np.multiply, 2, "", {}),
    ("DIVIDE", np.divide, 2, "", {}),
    ("MAXIMUM", np.maximum, 2, "", {}),
    ("MINIMUM", np.minimum, 2, "", {}),
    ("POWER", np.power, 2, "", {}),
    ("ABS", np.abs, 1, "", {}),
    ("NEGATE", np.negative, 1, "", {}),
    ("TANH", np.tanh, 1, "", {}),
    ("EXPONENTIAL", np.exp, 1, "", {}),
    ("LOG", np.log, 1, "", {}),
    ("LOGISTIC", lambda a: 1 / (1 + np.exp(-a)), 1, "", {}),
    ("COSINE", np.cos, 1, "", {}),
    ("RSQRT", lambda a: 1 / np.sqrt(a), 1, "", {}),
    ("COMPARE", np.equal, 2, COMPARE, {"comparisonDirection": 0}),
    ("COMPARE", np.greater_equal, 2, COMPARE, {"comparisonDirection": 2}),
    ("COMPARE", np.less, 2, COMPARE, {"comparisonDirection": 5}),
    ("TRANSPOSE", np.transpose, 1, TURN, {"permutation": [1, 0]}),
    ("CONCATENATE", lambda a, b: np.concatenate([a, b], 1), 2, JOIN, {"dimension": 1}),
    ("CLAMP", lambda a, b, c: np.minimum(np.maximum(b, a), c), 3, "", {}),
    ("RESHAPE", lambda a: a.reshape(3, 2), 1, "", {}),
]


@pytest.mark.parametrize(("op", "function", "count", "kind", "options"), OPERATORS)
def test_it_computes_what_numpy_does(
    op: str, function: Callable[..., Any], count: int, kind: str, options: dict[str, Any]
) -> None:
    arrays = [A, B, A + B][:count]
    wanted = function(*arrays)
    result = T(wanted.shape, wanted.dtype.name, name="y")
    source = single(f"STABLEHLO_{op}", [T((2, 3))] * count, [result], kind, **options)
    with openqnn.Session(openqnn.convert(source)) as session:
        found = session.run({f"t{i}": a for i, a in enumerate(arrays)})["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("kind", "dtype"), [("CONVERT", "int32"), ("SELECT", "float32")])
def test_types_and_choices(kind: str, dtype: str) -> None:
    inputs = [T((2, 3))] if kind == "CONVERT" else [T((2, 3), "bool"), T((2, 3)), T((2, 3))]
    source = single(f"STABLEHLO_{kind}", inputs, [T((2, 3), dtype, name="y")])
    arrays = [A] if kind == "CONVERT" else [A > 1, A, B]
    with openqnn.Session(openqnn.convert(source)) as session:
        found = session.run({f"t{i}": a for i, a in enumerate(arrays)})["y"]
    np.testing.assert_array_equal(found, A.astype(np.int32) if kind == "CONVERT" else np.where(A > 1, A, B))
