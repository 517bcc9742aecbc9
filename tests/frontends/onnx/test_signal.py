"""Transforms against numpy, windows against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from tests.frontends.onnx.text_models import check, parsed


def run(body: str, x: np.ndarray, opset: int = 20) -> np.ndarray:
    with openqnn.Session(openqnn.convert(parsed(body, opset))) as session:
        return session.run({"x": x})["y"]


def as_complex(x: np.ndarray) -> np.ndarray:
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("length", [None, 4, 9])
@pytest.mark.parametrize("inverse", [0, 1])
def test_dft(axis: int, parts: int, length: int | None, inverse: int) -> None:
    x = np.random.default_rng(0).normal(size=(2, 6, 5, parts)).astype(np.float32)
    given = f", int64 n = {{{length}}}" if length else ""
    body = f"""(float[2,6,5,{parts}] x) => (float[a,b,c,d] y) <int64 axis = {{{axis}}}{given}>
        {{ y = DFT<inverse = {inverse}>(x, {"n" if length else ""}, axis) }}"""
    wanted = (np.fft.ifft if inverse else np.fft.fft)(as_complex(x), n=length, axis=axis)
    np.testing.assert_allclose(as_complex(run(body, x)), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", [8, 9])
def test_one_sided_transform_and_back(length: int) -> None:
    x = np.random.default_rng(1).normal(size=(2, length, 1)).astype(np.float32)
    half = run(f"(float[2,{length},1] x) => (float[a,b,c] y) {{ y = DFT<onesided = 1>(x) }}", x)
    np.testing.assert_allclose(as_complex(half), np.fft.rfft(x[..., 0]), rtol=1e-4, atol=1e-4)
    body = f"""(float[2,{half.shape[1]},2] x) => (float[a,b,c] y) <int64 n = {{{length}}}>
        {{ y = DFT<onesided = 1, inverse = 1>(x, n) }}"""
    np.testing.assert_allclose(run(body, half), x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["Hann", "Hamming", "Blackman"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(kind: str, periodic: int) -> None:
    body = f"""(float[10] x) => (float[10] y) <int64 n = {{10}}>
        {{ w = {kind}Window<periodic = {periodic}>(n)  y = Mul(x, w) }}"""
    check(parsed(body))


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("shape", ["1,64,1", "2,70"])
def test_stft(onesided: int, shape: str) -> None:
    body = f"""(float[{shape}] x, float[16] w) => (float[a,b,c,d] y) <int64 step = {{8}}>
        {{ y = STFT<onesided = {onesided}>(x, step, w) }}"""
    check(parsed(body))
