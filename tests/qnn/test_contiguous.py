from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from openqnn.qnn.contiguous import contiguous


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_view_is_put_in_order(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 5))
    sizes = st.sampled_from([1, 2, 3, 7, 30, 130, 300])
    shape = data.draw(st.lists(sizes, min_size=rank, max_size=rank).filter(lambda s: np.prod(s) < 2_000_000))
    dtype = data.draw(st.sampled_from([np.float32, np.float16, np.int8, np.int64]))
    base = (np.arange(np.prod(shape)) % 101).astype(dtype).reshape(shape)
    view = base.transpose(data.draw(st.permutations(range(rank))))
    if data.draw(st.booleans()):
        view = view[::2]
    made = contiguous(view)
    assert made.flags.c_contiguous
    assert made.shape == view.shape and made.dtype == view.dtype
    np.testing.assert_array_equal(made, view)


def test_weights_in_order_are_not_copied() -> None:
    weights = np.ones((300, 300), np.float32)
    assert contiguous(weights) is weights


def test_filters_of_a_convolution() -> None:
    source = np.arange(300 * 200 * 9, dtype=np.float32).reshape(300, 200, 3, 3)
    view = source.transpose(2, 3, 1, 0)
    np.testing.assert_array_equal(contiguous(view), view)


def test_large_filters() -> None:
    """Beyond some size, memory is not numpy's."""
    source = np.arange(500 * 301 * 9, dtype=np.float32).reshape(500, 301, 3, 3)
    made = contiguous(source.transpose(2, 3, 1, 0))
    assert made.nbytes > 1 << 22 and made.flags.c_contiguous and made.flags.writeable
    np.testing.assert_array_equal(made, source.transpose(2, 3, 1, 0))
    matrix = contiguous(source.reshape(1, 1, 500, -1).transpose(0, 1, 3, 2))
    np.testing.assert_array_equal(matrix[0, 0], source.reshape(500, -1).T)
