"""Data types and encodings."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from openqnn.ir import DType, Encoding, Given, dtype_of

SCALES = st.floats(1e-6, 1e3, allow_nan=False)
FIXED = [d for d in DType if d.is_fixed]


@pytest.mark.parametrize("dtype", DType, ids=lambda d: d.name)
def test_every_type_is_found_by_its_label_and_holds_its_bits(dtype: DType) -> None:
    assert dtype_of(dtype.label) is dtype
    assert dtype_of(dtype) is dtype
    if dtype is not DType.STRING:
        assert dtype.numpy.itemsize * 8 >= dtype.bits
    assert [dtype.is_float, dtype.is_fixed, dtype.is_integer].count(True) <= 1


@pytest.mark.parametrize("dtype", [d for d in DType if not d.is_fixed], ids=lambda d: d.name)
def test_every_plain_type_is_found_by_its_array_type(dtype: DType) -> None:
    assert dtype_of(dtype.numpy) is dtype


def test_types_that_qnn_lacks_are_refused() -> None:
    for unknown in (np.complex64, "datetime64[s]", ml_dtypes.float8_e4m3fn):
        with pytest.raises(ValueError, match="QNN has no data type"):
            dtype_of(unknown)


def _limits(dtype: DType) -> tuple[int, int]:
    low = -(1 << (dtype.bits - 1)) if dtype.signed else 0
    return low, low + (1 << dtype.bits) - 1


@given(st.data(), st.sampled_from(FIXED), SCALES)
def test_stored_numbers_survive_a_round_trip(data: st.DataObject, dtype: DType, scale: float) -> None:
    """Dequantized and quantized again, every number comes back (as far as float32 tells them apart)."""
    low, high = _limits(dtype)
    edge = min(high, 1 << 20)
    stored = data.draw(npst.arrays(np.int64, 5, elements=st.integers(max(low, -edge), edge)))
    offset = data.draw(st.integers(-100, 100))
    encoding = Encoding.per_tensor(scale, offset, dtype.bits)
    assert np.array_equal(encoding.quantize(encoding.dequantize(stored), dtype.signed), stored)


@given(st.sampled_from(FIXED), SCALES, npst.arrays(np.float32, 6, elements=st.floats(-1e4, 1e4, width=32)))
@example(DType.SFIXED_16, 134.7265625, np.full(6, 4109, np.float32))
@example(DType.UFIXED_32, 1e-06, np.full(6, 4096.711, np.float32))
def test_quantizing_rounds_to_the_nearest_and_saturates(
    dtype: DType, scale: float, real: np.ndarray[tuple[int], np.dtype[np.float32]]
) -> None:
    low, high = _limits(dtype)
    encoding = Encoding.per_tensor(scale, 0, dtype.bits)
    stored = encoding.quantize(real, dtype.signed)
    assert stored.min() >= low and stored.max() <= high
    inside = (stored > low) & (stored < high)
    error = np.abs(stored[inside] * scale - real[inside].astype(np.float64))
    # in float32, three times, among the numbers of 16 bits; in float64 among those of 32
    rounding = 2**-7 if dtype.bits <= 16 else 2**-18
    assert (error <= scale * (0.5 + rounding)).all()


@given(st.permutations(range(3)), st.integers(0, 2))
def test_an_axis_follows_its_tensor(perm: list[int], axis: int) -> None:
    shape = (2, 3, 4)
    encoding = Encoding(tuple(0.5 + i for i in range(shape[axis])), (0,) * shape[axis], axis=axis)
    stored = np.arange(24).reshape(shape)
    moved = encoding.permuted(tuple(perm)).dequantize(stored.transpose(perm))
    assert np.array_equal(moved, encoding.dequantize(stored).transpose(perm))


@pytest.mark.parametrize(
    ("scale", "offset", "axis", "message"),
    [
        ((1.0,), (0, 0), None, "1 scales but 2 offsets"),
        ((), (), None, "0 scales but 0 offsets"),
        ((1.0, 2.0), (0, 0), None, "a whole-tensor encoding has one scale, not 2"),
        ((0.0,), (0,), None, "scales must be positive and finite"),
        ((float("nan"),), (0,), None, "scales must be positive and finite"),
        ((float("inf"),), (0,), None, "scales must be positive and finite"),
        ((-1.0, 1.0), (0, 0), 1, "scales must be positive and finite"),
    ],
)
def test_encodings_that_mean_nothing_are_refused(scale, offset, axis, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Encoding(scale, offset, axis=axis)


@given(SCALES, st.integers(-128, 127), st.sampled_from([4, 8, 16]))
def test_unsigned_storage_stands_for_the_same_numbers(scale: float, zero: int, bits: int) -> None:
    said = Given("model", bits, encoding=Encoding.per_tensor(scale, -zero, bits), signed=True)
    stored, half = np.arange(-8, 8), 1 << (bits - 1)
    moved = said.unsigned()
    assert said.encoding is not None and moved.encoding is not None and not moved.signed
    assert np.array_equal(moved.encoding.dequantize(stored + half), said.encoding.dequantize(stored))
    assert moved.unsigned() == moved
