"""Attention and what stands around it in transformers; most of it are ONNX Runtime's own ops.

ONNX's own Attention is translated by the function that ONNX defines it with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np

from openqnn.errors import ShapeError
from openqnn.frontends.onnx.conv import conv
from openqnn.frontends.onnx.gather import positions
from openqnn.frontends.onnx.norm import Norm
from openqnn.frontends.onnx.shape import parts_of
from openqnn.frontends.onnx.table import MICROSOFT, translates
from openqnn.frontends.translation import Translation
from openqnn.ir import Value

# -- normalisation of a sum ---------------------------------------------------------------------------------


def _normed_sum(
    t: Translation,
    norm: Norm,
    x: Value,
    skip: Value,
    gamma: Value,
    beta: Value | None,
    bias: Value | None,
    epsilon: float,
) -> list[Value | None]:
    """Output, mean, deviation and the sum itself; the statistics are for training."""
    if t.is_read(1) or t.is_read(2):
        t.refuse("mean and deviation as outputs are for training")
    total = t.add(x, skip)
    total = total if bias is None else t.add(total, bias)
    return [norm(total, gamma, beta, (total.rank - 1,), epsilon), None, None, total]


@translates("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(
    t: Translation, x: Value, skip: Value, gamma: Value, beta: Value | None = None,
    bias: Value | None = None, *, epsilon: float = 1e-12,
) -> list[Value | None]:  # fmt: skip
    return _normed_sum(t, t.layer_norm, x, skip, gamma, beta, bias, epsilon)


@translates("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_normalization(
    t: Translation, x: Value, skip: Value, gamma: Value, bias: Value | None = None, *, epsilon: float = 1e-12
) -> list[Value | None]:
    return _normed_sum(t, t.rms_norm, x, skip, gamma, None, bias, epsilon)


@translates("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(
    t: Translation, ids: Value, segments: Value | None, words: Value, places: Value, kinds: Value | None,
    gamma: Value, beta: Value, mask: Value | None = None, position_ids: Value | None = None, *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
) -> list[Value | None]:  # fmt: skip
    if t.is_read(1) and mask_index_type:
        t.refuse("a mask index as output has no QNN equivalent")
    if ids.rank != 2 or words.rank != 2 or places.rank != 2 or ids.shape[1] > places.shape[0]:
        raise ShapeError(
            f"ids {list(ids.shape)} do not fit the embeddings {list(words.shape)}, {list(places.shape)}"
        )
    total = t.gather(words, positions(t, ids, words.shape[0]), axis=0)
    if position_ids is None:
        position_ids = t.constant(np.arange(ids.shape[1], dtype=np.int32))
    total = t.add(total, t.gather(places, positions(t, position_ids, places.shape[0]), axis=0))
    if segments is not None and kinds is not None:
        total = t.add(total, t.gather(kinds, positions(t, segments, kinds.shape[0]), axis=0))
    y = t.layer_norm(total, gamma, beta, (2,), epsilon)
    return [y, t.constant(np.zeros(ids.shape[0], np.int32)), total]


# -- attention -----------------------------------------------------------------------------------------------


def heads(t: Translation, x: Value, count: int) -> Value:
    """[batch, sequence, heads * size] to [batch, heads, sequence, size]."""
    if x.rank == 4:
        return x
    if x.rank != 3 or count < 1 or x.shape[2] % count:
        raise ShapeError(f"{list(x.shape)} does not split into {count} heads")
    batch, length, width = x.shape
    return t.transpose(t.reshape(x, (batch, length, count, width // count)), (0, 2, 1, 3))


def attend(
    t: Translation, q: Value, k: Value, v: Value, biases: Sequence[Value | None], scale: float
) -> Value:
    """softmax(q k' * scale + biases) v, the heads side by side again."""
    scores = t.matmul(t.mul(q, scale or 1 / sqrt(q.shape[-1])), k, turn_b=True)
    for bias in biases:
        scores = scores if bias is None else t.add(scores, bias)
    y = t.matmul(t.softmax(scores, axis=3), v)
    batch, count, length, size = y.shape
    return t.reshape(t.transpose(y, (0, 2, 1, 3)), (batch, length, count * size))


def causal_bias(t: Translation, q: Value, k: Value, value: float) -> Value:
    """Nobody looks ahead; the queries are the last of the keys."""
    rows, columns = q.shape[2], k.shape[2]
    ahead = np.arange(columns)[None] > np.arange(rows)[:, None] + columns - rows
    return t.constant((ahead * value).astype(q.dtype.numpy))


def padding_bias(t: Translation, mask: Value | None, q: Value, k: Value, value: float) -> Value | None:
    """A mask of ones and zeros per key, or per query and key, as something to add."""
    if mask is None:
        return None
    batch, rows, columns = q.shape[0], q.shape[2], k.shape[2]
    shapes = {(batch, columns): (batch, 1, 1, columns), (batch, rows, columns): (batch, 1, rows, columns)}
    if mask.shape not in shapes:
        t.refuse(f"a mask of shape {list(mask.shape)} is not supported; {' or '.join(map(str, shapes))} is")
    ones = t.cast(t.reshape(mask, shapes[mask.shape]), q.dtype)
    return t.mul(t.sub(1.0, ones), value)


def _checked(q: Value, k: Value, v: Value) -> None:
    same = q.shape[:2] == k.shape[:2] == v.shape[:2] and q.shape[3] == k.shape[3] and k.shape[2] == v.shape[2]
    if not same:
        raise ShapeError(
            f"query {list(q.shape)}, key {list(k.shape)} and value {list(v.shape)} do not fit together"
        )


@translates("Attention", domain=MICROSOFT)
def packed_attention(
    t: Translation, x: Value, weights: Value, bias: Value | None = None, mask: Value | None = None,
    past: Value | None = None, extra: Value | None = None, past_length: Value | None = None, *,
    num_heads: int, unidirectional: int = 0, qkv_hidden_sizes: list[int] | None = None, scale: float = 0.0,
    mask_filter_value: float = -10000.0, do_rotary: int = 0, rotary_embedding_dim: int = 0,
    past_present_share_buffer: int = 0,
) -> list[Value]:  # fmt: skip
    if do_rotary or past_length is not None or past_present_share_buffer:
        t.refuse("rotary embedding or a shared cache inside the op is not supported")
    projected = t.matmul(x, weights, bias)
    sizes = qkv_hidden_sizes or [projected.shape[-1] // 3] * 3
    q, k, v = (heads(t, part, num_heads) for part in parts_of(t, projected, projected.rank - 1, sizes))
    if past is not None:
        if past.rank != 5 or past.shape[0] != 2:
            raise ShapeError(
                f"the cache has shape {list(past.shape)}, [2, batch, heads, length, size] is expected"
            )
        old = [t.reshape(p, past.shape[1:]) for p in parts_of(t, past, 0, (1, 1))]
        k, v = t.concat([old[0], k], 2), t.concat([old[1], v], 2)
    _checked(q, k, v)
    causal = causal_bias(t, q, k, mask_filter_value) if unidirectional else None
    biases = (padding_bias(t, mask, q, k, mask_filter_value), causal, extra)
    y = attend(t, q, k, v, biases, scale)
    return [y, t.pack([k, v], axis=0)] if t.is_read(1) else [y]


def _with_biases(t: Translation, parts: Sequence[Value], bias: Value) -> list[Value]:
    """Query, key and value, each with its part of the bias where it is not split into heads already."""
    sizes = [p.shape[-1] if p.rank == 3 else p.shape[1] * p.shape[3] for p in parts if p.rank in (3, 4)]
    pieces = parts_of(t, bias, 0, sizes if len(sizes) == 3 else ())
    return [t.add(p, b) if p.rank == 3 else p for p, b in zip(parts, pieces, strict=True)]


@translates("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(
    t: Translation, query: Value, key: Value | None = None, value: Value | None = None,
    bias: Value | None = None, mask: Value | None = None, extra: Value | None = None,
    past_key: Value | None = None, past_value: Value | None = None, past_length: Value | None = None,
    cache_indirection: Value | None = None, *, num_heads: int, scale: float = 0.0,
    mask_filter_value: float = -10000.0, unidirectional: int = 0,
) -> list[Value]:  # fmt: skip
    if (
        key is None
        or value is None
        or query.rank != 3
        or past_length is not None
        or cache_indirection is not None
    ):
        t.refuse("packed query, key and value or a shared cache are not supported")
    parts = [query, key, value]
    if bias is not None:
        parts = _with_biases(t, parts, bias)
    q, k, v = (heads(t, p, num_heads) for p in parts)
    if past_key is not None and past_value is not None:
        k, v = t.concat([past_key, k], 2), t.concat([past_value, v], 2)
    _checked(q, k, v)
    causal = causal_bias(t, q, k, mask_filter_value) if unidirectional else None
    if t.is_read(3):
        t.refuse("the scores as an output are not supported")
    biases = (padding_bias(t, mask, q, k, mask_filter_value), causal, extra)
    return [attend(t, q, k, v, biases, scale), k, v]


# -- rotary embedding ---------------------------------------------------------------------------------------


def _rotated(
    t: Translation, x: Value, cos: Value, sin: Value, count: int, interleaved: bool, dim: int
) -> Value:
    """Tables of [batch, sequence, half] on data with or without the heads apart."""
    flat = x.rank == 3
    apart = heads(t, x, count) if flat else x
    if apart.rank != 4 or apart.shape[3] < 2:
        raise ShapeError(f"{list(x.shape)} has no features to turn")
    turned = dim or apart.shape[3]
    y = t("RotaryEmbedding", apart, cos, sin, interleaved=interleaved, rotary_embedding_dim=turned)
    return t.reshape(t.transpose(y, (0, 2, 1, 3)), x.shape) if flat else y


@translates("RotaryEmbedding", since=23)
def rotary_embedding(
    t: Translation, x: Value, cos: Value, sin: Value, position_ids: Value | None = None, *,
    num_heads: int = 0, rotary_embedding_dim: int = 0, interleaved: int = 0,
) -> Value:  # fmt: skip
    if position_ids is not None:
        cos, sin = (_at(t, table, position_ids) for table in (cos, sin))
    return _rotated(t, x, cos, sin, num_heads, bool(interleaved), rotary_embedding_dim)


def _at(t: Translation, table: Value, position_ids: Value) -> Value:
    if table.rank != 2:
        raise ShapeError(f"the table has shape {list(table.shape)}, [positions, features] is expected")
    return t.gather(table, positions(t, position_ids, table.shape[0]), axis=0)


@translates("RotaryEmbedding", domain=MICROSOFT)
def contrib_rotary_embedding(
    t: Translation, x: Value, position_ids: Value, cos: Value, sin: Value, *, interleaved: int = 0,
    is_packed_batching: int = 0, num_heads: int = 0, rotary_embedding_dim: int = 0, scale: float = 1.0,
) -> Value:  # fmt: skip
    """The tables have half the features; a single position is that of the first element."""
    if is_packed_batching or scale != 1.0 or cos.rank != 2:
        t.refuse("packed batches, scaled positions or tables of another rank are not supported")
    batch, length = x.shape[0], x.shape[2] if x.rank == 4 else x.shape[1] if x.rank == 3 else 0
    if position_ids.shape == (1,):
        steps = t.constant(np.broadcast_to(np.arange(length, dtype=np.int32), (batch, length)))
        position_ids = t.add(t.cast(position_ids, steps.dtype), steps)
    features = 2 * cos.shape[1]
    count = num_heads or (x.shape[2] // features if x.rank == 3 and features else 0)
    turn_by = _at(t, cos, position_ids), _at(t, sin, position_ids)
    return _rotated(t, x, *turn_by, count, bool(interleaved), rotary_embedding_dim)


# -- fused convolution ---------------------------------------------------------------------------------------


@translates("FusedConv", domain=MICROSOFT)
def fused_conv(
    t: Translation, x: Value, w: Value, bias: Value | None = None, extra: Value | None = None, *,
    activation: str = "", activation_params: list[float] | None = None, auto_pad: str = "NOTSET",
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Value:  # fmt: skip
    y = conv(
        t, x, w, bias, auto_pad=auto_pad, dilations=dilations, group=group, kernel_shape=kernel_shape,
        pads=pads, strides=strides,
    )  # fmt: skip
    y = y if extra is None else t.add(y, extra)
    first, second = [*(activation_params or ()), 0.0, 0.0][:2]
    known: dict[str, Callable[[], Value]] = {
        "": lambda: y,
        "Relu": lambda: t.relu(y),
        "Tanh": lambda: t.tanh(y),
        "Sigmoid": lambda: t.sigmoid(y),
        "LeakyRelu": lambda: t.prelu(y, t.constant(np.full((1,) * y.rank, first, y.dtype.numpy))),
        "Clip": lambda: t.clip(y, first, second),
        "HardSigmoid": lambda: t.hard_sigmoid(y, first, second),
    }
    if activation not in known:
        t.refuse(f"activation '{activation}' is not known")
    return known[activation]()
