"""TFLite reductions."""

from __future__ import annotations

from openqnn.frontends.tflite.table import translates
from openqnn.frontends.tflite.translation import TfliteTranslation as Translation
from openqnn.ir import DType, Value


def _axes(t: Translation, x: Value, axes: Value) -> list[int]:
    return sorted({t.axis(a, x.rank) for a in t.ints(axes, "the axes")})


@translates("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN")
def reduce(t: Translation, x: Value, axes: Value, *, keep_dims: bool = False) -> Value:
    over = _axes(t, x, axes)
    reduced = {
        "MEAN": t.reduce_mean, "SUM": t.reduce_sum, "REDUCE_PROD": t.reduce_prod,
        "REDUCE_MAX": t.reduce_max, "REDUCE_MIN": t.reduce_min,
    }[t.op]  # fmt: skip
    return reduced(x, over, keep_dims) if over else t.copy(x)


@translates("REDUCE_ANY", "REDUCE_ALL")
def reduce_bool(t: Translation, x: Value, axes: Value, *, keep_dims: bool = False) -> Value:
    number = t.cast(x, DType.INT_32)
    reduced = t.reduce_max if t.op == "REDUCE_ANY" else t.reduce_min
    over = _axes(t, x, axes)
    return t.cast(reduced(number, over, keep_dims), DType.BOOL_8) if over else t.copy(x)
