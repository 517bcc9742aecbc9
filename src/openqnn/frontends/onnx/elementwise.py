"""ONNX ops that work on each element by itself."""

from __future__ import annotations

from openqnn.frontends.onnx.registry import rows

rows({
    "Abs": "ElementWiseAbs",
    "Add": "ElementWiseAdd",
    "Relu": "Relu",
    "Mul": "ElementWiseMultiply",
})  # fmt: skip
