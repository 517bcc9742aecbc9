"""The arc sine of 16 bits is HTP's to the last bit, with what a number's neighbour does to it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest

from openqnn.ir import Array, DType, Encoding, Graph
from openqnn.ops import Builder
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.vendor.library_worker import LibraryWorker
from tests.htp.simulation import run_htp
from tests.qnn.nets import needs_htp

# Of input and output; in the last two are numbers of 1 and more, of which HTP takes what is behind the point.
ENCODINGS = [
    ((3.0e-5, -32768), (4.6e-5, -32768)),
    ((1.37e-5, -2100), (2.3e-5, -9000)),
    ((1 / 32768, -32768), (1 / 16384, -32768)),
    ((1.7e-4, -21000), (4.9e-5, -31000)),
]

Coding: TypeAlias = tuple[float, int]

pytestmark = needs_htp


def check(stored: Array, taken: Coding, given: Coding, perm: tuple[int, ...] = ()) -> None:
    graph = Graph("arcs")
    b, x = Builder(graph), graph.add_input("x", DType.UFIXED_16, stored.shape)
    x.encoding = Encoding.per_tensor(*taken, 16)
    data = b("Transpose", x, perm=perm) if perm else x
    data.encoding = x.encoding
    y = b("ElementWiseAsin", data)
    y.dtype, y.encoding = DType.UFIXED_16, Encoding.per_tensor(*given, 16)
    graph.add_output(y)
    with LibraryWorker() as worker:
        theirs = run_htp(worker, graph, [{"x": stored}])[0][y.name]
    np.testing.assert_array_equal(CpuExecutable(graph, threads=1).run({"x": stored})[y.name], theirs)


@pytest.mark.parametrize(("taken", "given"), ENCODINGS)
def test_all_numbers_beside_any_other(taken: Coding, given: Coding) -> None:
    stored = np.random.default_rng(7).permutation(1 << 16).astype(np.uint16).reshape(1, 64, 64, 16)
    check(stored, taken, given)


@pytest.mark.parametrize("shape", [(700,), (31, 20), (5, 6, 7), (2, 5, 9, 40), (1, 12, 1, 30)])
def test_neighbours_are_those_along_the_last_axis_but_one(shape: tuple[int, ...]) -> None:
    """Next to 1, where a number grows by half of its last bit, the result does by some."""
    check(
        np.random.default_rng(7).integers(63000, 65500, shape).astype(np.uint16), (2.0**-16, 0), (2.4e-5, 0)
    )


def test_neighbours_are_those_of_the_op_where_its_data_is_in_another_order() -> None:
    stored = np.random.default_rng(7).integers(63000, 65500, (1, 8, 10, 12)).astype(np.uint16)
    check(stored, (2.0**-16, 0), (2.4e-5, 0), perm=(0, 3, 1, 2))
