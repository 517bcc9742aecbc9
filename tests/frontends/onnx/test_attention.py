"""ONNX Runtime's own transformer ops."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.errors import UnsupportedError
from tests.frontends.onnx.text_models import check, ops, parsed

M = "com.microsoft"
RIGHT = {
    "skip layer norm": f"""(float[2,3,8] x, float[2,3,8] s, float[8] g, float[8] b, float[8] c)
        => (float[2,3,8] y, float[2,3,8] sum)
        {{ y, , , sum = {M}.SkipLayerNormalization<epsilon = 0.001>(x, s, g, b, c) }}""",
    "skip rms norm": f"""(float[2,3,8] x, float[2,3,8] s, float[8] g) => (float[2,3,8] y)
        {{ y = {M}.SkipSimplifiedLayerNormalization<epsilon = 0.00001>(x, s, g) }}""",
    "embed": f"""(int32[2,4] i, int32[2,4] k, float[9,8] w, float[6,8] p, float[2,8] s, float[8] g,
        float[8] b) => (float[2,4,8] y) {{
        y, m = {M}.EmbedLayerNormalization<epsilon = 0.00001>(i, k, w, p, s, g, b) }}""",
    "attention": f"""(float[2,3,8] x, float[8,24] w, float[24] b) => (float[2,3,8] y)
        {{ y = {M}.Attention<num_heads = 2>(x, w, b) }}""",
    "causal attention": f"""(float[2,3,8] x, float[8,24] w, float[24] b) => (float[2,3,8] y)
        {{ y = {M}.Attention<num_heads = 2, unidirectional = 1>(x, w, b) }}""",
    "masked attention": f"""(float[2,3,8] x, float[8,24] w, float[24] b, int32[2,3] m) => (float[2,3,8] y)
        {{ y = {M}.Attention<num_heads = 2>(x, w, b, m) }}""",
    "attention with a past": f"""(float[2,1,8] x, float[8,24] w, float[24] b, float[2,2,2,3,4] p)
        => (float[2,1,8] y, float[2,2,2,4,4] q)
        {{ y, q = {M}.Attention<num_heads = 2, unidirectional = 1>(x, w, b, , p) }}""",
    "multi head": f"""(float[2,3,8] q, float[2,5,8] k, float[2,5,8] v, float[24] b) => (float[2,3,8] y)
        {{ y = {M}.MultiHeadAttention<num_heads = 2, scale = 0.3>(q, k, v, b) }}""",
    "multi head with a mask": f"""(float[2,3,8] q, float[2,5,8] k, float[2,5,8] v, int32[2,5] m)
        => (float[2,3,8] y)
        {{ y = {M}.MultiHeadAttention<num_heads = 2>(q, k, v, , m) }}""",
    "rotary": f"""(float[2,3,16] x, int64[2,3] p, float[10,4] c, float[10,4] s) => (float[2,3,16] y)
        {{ y = {M}.RotaryEmbedding(x, p, c, s) }}""",
    "rotary from one place": f"""(float[2,2,3,8] x, int64[1] p, float[10,4] c, float[10,4] s)
        => (float[2,2,3,8] y)
        {{ y = {M}.RotaryEmbedding<interleaved = 1>(x, p, c, s) }}""",
    "rms norm": """(float[2,3,8] x, float[8] g) => (float[2,3,8] y)
        { y = SimplifiedLayerNormalization<epsilon = 0.001>(x, g) }""",
}  # fmt: skip


@pytest.mark.parametrize("case", RIGHT)
def test_same_as_onnx_runtime(case: str) -> None:
    check(
        parsed(RIGHT[case]), {"m": np.array([[1, 1, 0], [1, 0, 0]], np.int32)} if "masked" in case else None
    )


@pytest.mark.parametrize("activation", [
    'activation = "Relu"',
    'activation = "LeakyRelu", activation_params = [0.1]',
    'activation = "Clip", activation_params = [0.1, 0.4]',
    'activation = "HardSigmoid", activation_params = [0.3, 0.4]',
])  # fmt: skip
def test_fused_conv(activation: str) -> None:
    body = f"""(float[1,3,6,6] x, float[4,3,3,3] w, float[4] b) => (float[1,4,6,6] y)
        {{ y = {M}.FusedConv<pads = [1, 1, 1, 1], {activation}>(x, w, b) }}"""
    check(parsed(body))


def test_rotary_embedding_is_one_op() -> None:
    body = """(float[2,2,3,8] x, float[10,4] c, float[10,4] s, int64[2,3] p) => (float[2,2,3,8] y)
        { y = RotaryEmbedding(x, c, s, p) }"""
    assert ops(openqnn.convert(parsed(body, 23))).count("RotaryEmbedding") == 1


def test_packed_weights_are_refused() -> None:
    body = f"""(float[2,32] x, uint8[4,2,8] w, float[8] s) => (float[2,4] y)
        {{ y = {M}.MatMulNBits<K = 32, N = 4, bits = 4, block_size = 16>(x, w, s) }}"""
    with pytest.raises(UnsupportedError, match="packed weights are not known"):
        openqnn.convert(parsed(body))
