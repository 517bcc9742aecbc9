"""Signals: transforms of a known length are products with a constant matrix, windows are constants."""

from __future__ import annotations

import numpy as np

from openqnn.errors import ShapeError
from openqnn.frontends.onnx.element_types import onnx_dtype
from openqnn.frontends.onnx.table import translates
from openqnn.frontends.translation import Translation
from openqnn.ir import Array, Value

MAX_MATRIX = 1 << 26  # elements: 256 MB


def dft_matrix(
    t: Translation, rows: int, length: int, bins: int, parts: tuple[int, int], inverse: bool
) -> Array:
    """[rows, parts in, bins, parts out] of a transform; a part is the real or the imaginary one."""
    if rows * bins * 4 > MAX_MATRIX:
        t.refuse(
            f"a transform of {length} samples needs a matrix of {rows} x {bins}, too large for a constant"
        )
    turns = np.outer(np.arange(rows), np.arange(bins)) % length * (2 * np.pi / length)
    real, imaginary = np.cos(turns), np.sin(turns) * (1 if inverse else -1)
    whole = np.stack([np.stack([real, imaginary], -1), np.stack([-imaginary, real], -1)], 1)
    scaled = whole / length if inverse else whole
    return scaled[:, : parts[0], :, : parts[1]].astype(np.float32)


def half_matrix(t: Translation, rows: int, length: int, parts: int) -> Array:
    """The inverse of a one-sided transform: the half that was left out is the conjugate of the other."""
    full = dft_matrix(t, length, length, length, (2, 1), True)
    matrix = full[:rows].copy()
    for k in range(1, rows):
        mirror = length - k
        if mirror >= rows and mirror < length:
            matrix[k, 0] += full[mirror, 0]
            matrix[k, 1] -= full[mirror, 1]
    return matrix[:, :parts]


def _dft(t: Translation, x: Value, length: int | None, axis: int, inverse: bool, onesided: bool) -> Value:
    if x.rank < 2 or x.shape[-1] not in (1, 2) or not x.size:
        raise ShapeError(f"the signal {list(x.shape)} should end with an axis of 1 (real) or 2 (complex)")
    axis = t.axis(axis, x.rank)
    if axis == x.rank - 1:
        t.refuse("the last axis holds real and imaginary parts, it cannot be transformed")
    size, parts = x.shape[axis], x.shape[-1]
    if onesided and inverse:
        length = _positive(t, 2 * (size - 1) if length is None else length)
        rows = min(size, length // 2 + 1)
        matrix = half_matrix(t, rows, length, parts)
    else:
        length = _positive(t, size if length is None else length)
        rows, bins = min(size, length), length // 2 + 1 if onesided else length
        matrix = dft_matrix(t, rows, length, bins, (parts, 2), inverse)
    return _applied(t, x, matrix, axis)


def _positive(t: Translation, length: int) -> int:
    if length < 1:
        t.refuse(f"a transform of {length} samples has no result")
    return length


def _applied(t: Translation, x: Value, matrix: Array, axis: int) -> Value:
    """The matrix on one axis and the parts."""
    rows, parts, bins, parts_out = matrix.shape
    others = [i for i in range(x.rank - 1) if i != axis]
    order = [*others, axis, x.rank - 1]
    data = t.transpose(x, order)
    if rows < x.shape[axis]:
        ranges = [[0, d, 1] for d in data.shape[:-2]] + [[0, rows, 1], [0, parts, 1]]
        data = t.strided_slice(data, ranges=ranges)
    lead = data.shape[:-2]
    flat = t.reshape(data, (int(np.prod(lead, dtype=np.int64)), rows * parts))
    weight = t.constant(matrix.reshape(rows * parts, bins * parts_out).astype(x.dtype.numpy))
    y = t.reshape(t.matmul(flat, weight), (*lead, bins, parts_out))
    return t.transpose(y, [order.index(i) for i in range(x.rank)])


@translates("DFT")
def dft_17(
    t: Translation,
    x: Value,
    length: Value | None = None,
    *,
    axis: int = 1,
    inverse: int = 0,
    onesided: int = 0,
) -> Value:
    count = None if length is None else t.ints(length, "dft_length")[0]
    return _dft(t, x, count, axis, bool(inverse), bool(onesided))


@translates("DFT", since=20)
def dft(
    t: Translation, x: Value, length: Value | None = None, axis: Value | None = None, *, inverse: int = 0,
    onesided: int = 0,
) -> Value:  # fmt: skip
    count = None if length is None else t.ints(length, "dft_length")[0]
    where = -2 if axis is None else t.ints(axis, "the axis")[0]
    return _dft(t, x, count, where, bool(inverse), bool(onesided))


def _frame_length(t: Translation, x: Value, window: Value | None, length: Value | None) -> int:
    if length is not None:
        return t.ints(length, "frame_length")[0]
    if window is not None:
        return window.size
    return x.shape[1] if x.rank == 3 else 0


def _is_of_length(window: Value | None, frame: int) -> bool:
    return window is None or window.shape == (frame,)


@translates("STFT")
def stft(
    t: Translation, x: Value, step: Value, window: Value | None = None, length: Value | None = None, *,
    onesided: int = 1,
) -> Value:  # fmt: skip
    hop = t.ints(step, "frame_step")[0] if step.size else 0
    if x.rank == 2:  # real numbers without an axis for it, which ONNX Runtime takes too
        x = t.reshape(x, (*x.shape, 1))
    frame = _frame_length(t, x, window, length)
    if x.rank != 3 or hop < 1 or not 0 < frame <= x.shape[1] or not _is_of_length(window, frame):
        raise ShapeError(f"frames of {frame} at steps of {hop} do not fit the signal {list(x.shape)}")
    if x.shape[2] == 1:
        return t("Stft", x, window, frame_step=hop, frame_length=frame, onesided=bool(onesided))
    starts = np.arange(0, x.shape[1] - frame + 1, hop, dtype=np.int32)
    frames = t.gather(x, t.constant(starts[:, None] + np.arange(frame, dtype=np.int32)), axis=1)
    if window is not None:
        frames = t.mul(frames, t.reshape(window, (frame, 1)))
    return _dft(t, frames, None, 2, False, bool(onesided))


# -- windows --------------------------------------------------

_COSINES = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (25 / 46, 21 / 46, 0.0),
    "BlackmanWindow": (0.42, 0.5, 0.08),
}


@translates(*_COSINES)
def window(t: Translation, size: Value, *, output_datatype: int = 1, periodic: int = 1) -> Value:
    stated = t.output_shape()
    count = (
        stated[0]
        if size.data is None and stated is not None and len(stated) == 1
        else t.ints(size, "the size")[0]
    )
    if not 0 <= count < MAX_MATRIX:
        t.refuse(f"a window of {count} samples")
    turns = np.arange(count) * (2 * np.pi / max(1, count if periodic else count - 1))
    a, b, c = _COSINES[t.op]
    samples = a - b * np.cos(turns) + c * np.cos(2 * turns)
    return t.constant(samples.astype(onnx_dtype(output_datatype, "the window").numpy))


@translates("MelWeightMatrix")
def mel_weight_matrix(t: Translation, *inputs: Value, output_datatype: int = 1) -> Value:
    t.refuse("its inputs are computed at run time; QNN needs the matrix when the graph is built")
