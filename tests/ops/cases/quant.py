"""Between real numbers and stored integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from openqnn.ir import DType, Encoding
from tests.ops.database import Case, Given, case, f, fixed, given

U8 = Encoding.per_tensor(0.02, -100)
U16 = Encoding.per_tensor(0.0001, -30000, 16)
S8 = Encoding.per_tensor(0.02, 0)
U4 = Encoding.per_tensor(0.25, -8, 4)
S32 = Encoding.per_tensor(0.001, 0, 32)
CHANNELS = Encoding((0.02, 0.01, 0.03), (0, 0, 0), 8, 1)
NARROW = "the vendor's CPU library quantizes to 8 bits without sign only"
COPIES = "Convert copies the stored integers and does not rescale them"


def to(encoding: Encoding, signed: bool = False) -> Any:
    return lambda x: encoding.quantize(x, signed)


def convert(source: Encoding, target: Encoding) -> Any:
    return lambda x: target.quantize(source.dequantize(x), signed=False)


BYTES = np.arange(0, 240, 20).reshape(3, 4)

CASES: list[Case] = [
    case("Quantize", f(2, 3, 4), dtype=DType.UFIXED_8, encoding=U8),
    case(
        "Quantize",
        given([-9, -2.01, -1.99, 0.031, 0.051, 3, 9]),
        dtype=DType.UFIXED_8,
        encoding=U8,
        label="limits",
    ),
    case(
        "Quantize",
        given([0.5, 1.5, 2.5]),
        dtype=DType.UFIXED_8,
        encoding=Encoding.per_tensor(1, -9),
        label="halves",
        xfail="Quantize rounds halves away from zero; HTP and ONNX to even",
        expect=lambda x: np.array([9, 11, 11]),
    ),
    case("Quantize", f(2, 3), dtype=DType.SFIXED_8, encoding=S8, label="signed"),
    case("Quantize", f(2, 3), dtype=DType.UFIXED_16, encoding=U16, label="bits16"),
    case(
        "Quantize",
        f(2, 3),
        dtype=DType.SFIXED_32,
        encoding=S32,
        xfail=NARROW,
        expect=to(S32, True),
        label="bits32",
    ),
    case(
        "Quantize",
        f(2, 5, low=-4, high=4),
        dtype=DType.UFIXED_8,
        encoding=U4,
        xfail=NARROW,
        expect=to(U4),
        label="bits4_in_8",
    ),
    case("Quantize", f(2, 3), dtype=DType.SFIXED_8, encoding=CHANNELS, label="per_channel"),
    case("Dequantize", fixed(BYTES, 0.02, -100), dtype=DType.FLOAT_32),
    case(
        "Dequantize", fixed(BYTES * 200, 0.001, -20000, DType.UFIXED_16), dtype=DType.FLOAT_32, label="bits16"
    ),
    case(
        "Dequantize", fixed(BYTES * 2000 - 7, 0.001, 0, DType.SFIXED_32), dtype=DType.FLOAT_32, label="bits32"
    ),
    case(
        "Convert",
        fixed(BYTES, 0.02, -100),
        dtype=DType.UFIXED_8,
        encoding=Encoding.per_tensor(0.02, -100),
        label="same",
    ),
    case(
        "Convert",
        fixed(BYTES, 0.02, -100),
        dtype=DType.UFIXED_16,
        encoding=U16,
        xfail=COPIES,
        expect=convert(U8, U16),
        label="widen",
    ),
    case(
        "Convert",
        fixed(BYTES, 0.02, -100),
        dtype=DType.UFIXED_8,
        encoding=Encoding.per_tensor(0.05, -40),
        xfail=COPIES,
        expect=convert(U8, Encoding.per_tensor(0.05, -40)),
        label="rescale",
    ),
    case(
        "Convert",
        Given(f(2, 3).data),
        dtype=DType.UFIXED_8,
        encoding=U8,
        xfail=COPIES,
        expect=to(U8),
        label="real",
    ),
]
