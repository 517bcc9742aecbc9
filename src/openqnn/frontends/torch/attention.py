"""Attention of ATen: kept whole until here, and put together from products and a softmax."""

from __future__ import annotations

from math import sqrt

import numpy as np

from openqnn.frontends.onnx.shape import tiled
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.ir import DType, Value


@translates("scaled_dot_product_attention")
def attention(
    t: TorchTranslation, query: Value, key: Value, value: Value, attn_mask: Value | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Value:  # fmt: skip
    """softmax(q k' * scale + mask) v. Nobody looks ahead where it is causal."""
    if dropout_p:
        t.refuse("attention with dropout", hint="export the model for inference: eval()")
    if enable_gqa:
        key, value = (_repeated_heads(t, v, query.shape[-3]) for v in (key, value))
    factor = 1 / sqrt(query.shape[-1]) if scale is None else scale
    scores = t.matmul(t.mul(query, factor), key, turn_b=True)
    if is_causal:
        rows, columns = query.shape[-2], key.shape[-2]
        ahead = np.arange(columns)[None] > np.arange(rows)[:, None]
        scores = t.add(scores, t.constant(np.where(ahead, _lowest(query), 0).astype(query.dtype.numpy)))
    if attn_mask is not None and attn_mask.dtype is DType.BOOL_8:
        scores = t.select(attn_mask, scores, t.scalar(_lowest(query), query))
    elif attn_mask is not None:
        bias = t.cast(attn_mask, query.dtype)
        if bias.data is not None and not np.isfinite(bias.data).all():
            bias = t.constant(np.maximum(bias.data, _lowest(query)).astype(query.dtype.numpy), bias.name)
        scores = t.add(scores, bias)
    return t.matmul(t.softmax(scores, axis=scores.rank - 1), value)


def _lowest(x: Value) -> float:
    """What stands for minus infinity: a number that quantizers can live with."""
    return float(np.finfo(x.dtype.numpy).min) / 2


def _repeated_heads(t: TorchTranslation, x: Value, count: int) -> Value:
    """Every head as often as queries share it."""
    *outer, heads, length, width = x.shape
    if heads == count:
        return x
    apart = t.reshape(x, (*outer, heads, 1, length, width))
    many = tiled(t, apart, [count // heads if i == len(outer) + 1 else 1 for i in range(apart.rank)])
    return t.reshape(many, (*outer, count, length, width))


@translates("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
            "_scaled_dot_product_attention_math")  # fmt: skip
def flash_attention(
    t: TorchTranslation, query: Value, key: Value, value: Value, dropout_p: float = 0.0,
    is_causal: bool = False, attn_mask: Value | None = None, *, scale: float | None = None, **unused: object,
) -> list[Value]:  # fmt: skip
    if t.is_read(1):
        t.refuse("the log of the sums of the softmax (second output)")
    return [attention(t, query, key, value, attn_mask, dropout_p, is_causal, scale=scale)]
