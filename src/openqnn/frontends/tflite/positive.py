"""Results whose integers cannot be negative while real numbers could: they get the Relu that was left out.

A quantizer that finds zero at the lower end of a range needs no Relu in front: integers saturate there. In
floating point it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from openqnn.frontends.tflite.encodings import given_of
from openqnn.frontends.tflite.model import Tensor
from openqnn.frontends.tflite.translation import TfliteTranslation
from openqnn.ir import Given, Value
from openqnn.ops import schema_of

_ANY_SIGN = {
    "CONV_2D", "CONV_3D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "SUB", "BATCH_MATMUL",
}  # fmt: skip
_KEEP_SIGN = {"ADD", "MUL", "DIV", "MEAN", "SUM", "AVERAGE_POOL_2D"}
_SIX = 6.0  # the upper end of Relu6


def positive_result(t: TfliteTranslation, value: Value, tensor: Tensor, given: Mapping[str, Given]) -> Value:
    said = given_of(tensor)
    encoding = said.unsigned().encoding if said is not None else None
    if encoding is None or encoding.offset != (0,) or not _may_be_negative(t, value, given):
        return value
    top = encoding.scale[0] * ((1 << encoding.bitwidth) - 1)
    return t.relu6(value) if abs(top - _SIX) < _SIX * 1e-5 else t.relu(value)


def _may_be_negative(t: TfliteTranslation, value: Value, given: Mapping[str, Given]) -> bool:
    node = value.producer
    if node is None or schema_of(node).clips or t.operator.op not in _ANY_SIGN | _KEEP_SIGN:
        return False
    return t.operator.op in _ANY_SIGN or not all(_is_positive(v, given) for v in node.inputs if v is not None)


def _is_positive(value: Value, given: Mapping[str, Given]) -> bool:
    if value.data is not None:
        return bool(np.all(value.data >= 0))
    said = given.get(value.name)
    return said is not None and said.encoding is not None and said.encoding.offset == (0,)
