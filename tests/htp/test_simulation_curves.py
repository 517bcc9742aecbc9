"""Gelu, HardSwish and Elu of 16 bits are HTP's to the last bit, with few and with many steps for a step."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest

from openqnn.ir import DType, Encoding, Graph
from openqnn.ops import Builder
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.vendor.library_worker import LibraryWorker
from tests.htp.simulation import run_htp
from tests.qnn.nets import needs_htp

Coding: TypeAlias = tuple[float, int]
# Of input and output. In "half", float32 decides how a factor is rounded: that of Gelu's argument, and that
# of Elu's numbers above zero.
ENCODINGS: dict[str, tuple[Coding, Coding]] = {
    "Gelu-many": ((2.743e-4, -43665), (9.414e-5, -1806)),
    "Gelu-half": ((1.411366214253404e-4, -38754), (3.618887728854882e-5, -6189)),
    "Gelu-few": ((8.1e-5, -30000), (2.9e-4, -600)),
    "HardSwish-many": ((5.4955e-5, -36181), (2.46478e-5, -15214)),
    "HardSwish-steep": ((1.9e-4, -31000), (1.1e-4, -4000)),
    "HardSwish-few": ((1.5e-5, -30000), (7.1e-5, -9000)),
    "Elu-half": ((7.283442295446111e-4, -33734), (3.6868962911004537e-4, -2712)),
}

pytestmark = needs_htp


@pytest.mark.parametrize("name", ENCODINGS)
def test_all_numbers_are_the_same(name: str) -> None:
    taken, given = (Encoding.per_tensor(*e, 16) for e in ENCODINGS[name])
    graph = Graph("curve")
    x = graph.add_input("x", DType.UFIXED_16, (1, 64, 64, 16))
    x.encoding = taken
    y = Builder(graph)(name.partition("-")[0], x)
    y.dtype, y.encoding = DType.UFIXED_16, given
    graph.add_output(y)
    stored = np.arange(1 << 16, dtype=np.uint16).reshape(x.shape)
    with LibraryWorker() as worker:
        theirs = run_htp(worker, graph, [{"x": stored}])[0][y.name]
    np.testing.assert_array_equal(CpuExecutable(graph, threads=1).run({"x": stored})[y.name], theirs)


@pytest.mark.parametrize("taken", [(1 / 65535, 0), (5.65e-4, 0), (1.37e-4, -20000)])
def test_logarithms_have_15_bits_behind_the_point(taken: Coding) -> None:
    """Of nothing, too: without that a sixth of the results differ, by up to twenty thousand steps."""
    graph = Graph("log")
    x = graph.add_input("x", DType.UFIXED_16, (1, 64, 64, 16))
    x.encoding = Encoding.per_tensor(*taken, 16)
    y = Builder(graph)("ElementWiseLog", x)
    y.dtype, y.encoding = DType.UFIXED_16, Encoding.per_tensor(20 / 65535, -45000, 16)
    graph.add_output(y)
    stored = np.arange(1 << 16, dtype=np.uint16).reshape(x.shape)
    with LibraryWorker() as worker:
        theirs = run_htp(worker, graph, [{"x": stored}])[0][y.name]
    ours = CpuExecutable(graph, threads=1).run({"x": stored})[y.name]
    assert np.abs(ours.astype(int) - theirs).max() <= 1
