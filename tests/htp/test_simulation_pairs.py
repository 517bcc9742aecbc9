"""Sums and products of two 16-bit tensors are those of libQnnHtp.

None of these encodings led to the rules.
"""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.ir import Array, DType, Encoding, Graph, Value
from openqnn.ops import Builder
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.vendor.library_worker import LibraryWorker
from tests.htp.simulation import run_htp
from tests.htp.simulation_models import sqnr
from tests.models.fetch import model_path
from tests.models.sets import data_set, shapes_of
from tests.qnn.nets import needs_htp

pytestmark = needs_htp

SHAPE = (1, 64, 64, 16)
SUM, DIFFERENCE, PRODUCT = "ElementWiseAdd", "ElementWiseSubtract", "ElementWiseMultiply"
# An op, the encodings of both operands, where there are two, and that of the result.
CASES: dict[str, tuple[str, tuple[float, int], tuple[float, int] | None, tuple[float, int]]] = {
    "signed": (PRODUCT, (1.21e-4, -31234), (2.77e-4, -20111), (9.7e-4, -28765)),
    "unsigned": (PRODUCT, (5.3e-4, 0), (1.9e-5, -3), (6.1e-4, 0)),
    "narrow": (PRODUCT, (3.1e-3, -40007), (8.9e-4, -11), (1.3e-2, -30111)),
    "squares": (PRODUCT, (7.7e-4, -30999), None, (1.1e-2, 0)),
    "constants": (PRODUCT, (1.9e-4, -32001), (4.4e-4, -50123), (2.9e-3, -39999)),
    "half": (SUM, (1e-3, -30001), (1e-3, -29000), (2e-3, -29501)),
    "sum": (SUM, (1.7e-4, -31234), (4.1e-5, -20111), (1.9e-4, -30222)),
    "coarse": (SUM, (1.7e-4, -31234), (4.1e-5, -20111), (1.1e-3, -30222)),
    "clipped": (SUM, (6.1e-3, -31234), (7.1e-3, -60111), (2.2e-3, -22)),
    "difference": (DIFFERENCE, (1.3e-4, -1234), (1.1e-4, -2111), (2.2e-4, -33000)),
}


def pair(op: str, first: Encoding, second: Encoding | None, out: Encoding, given: Array | None) -> Graph:
    """Of two inputs, of one input and `given` numbers, or of an input and itself."""
    graph = Graph("pair")
    x = graph.add_input("x", DType.UFIXED_16, SHAPE)
    x.encoding, y = first, x
    if second is not None and given is not None:
        y = Value("y", DType.UFIXED_16, given.shape, second, given)
    elif second is not None:
        y = graph.add_input("y", DType.UFIXED_16, SHAPE)
        y.encoding = second
    z = Builder(graph)(op, x, y)
    z.dtype, z.encoding = DType.UFIXED_16, out
    graph.add_output(z)
    return graph


@pytest.mark.parametrize("name", CASES)
def test_integers_are_those_of_the_library(name: str) -> None:
    op, *encodings = CASES[name]
    rng = np.random.default_rng(len(name))
    first, second, out = (e and Encoding.per_tensor(e[0], e[1], 16) for e in encodings)
    assert first is not None and out is not None
    given = rng.integers(0, 1 << 16, SHAPE).astype(np.uint16) if name == "constants" else None
    graph = pair(op, first, second, out, given)
    feed = {v.name: rng.integers(0, 1 << 16, SHAPE).astype(np.uint16) for v in graph.inputs}
    with LibraryWorker() as worker:
        (theirs,) = run_htp(worker, graph, [feed])[0].values()
    (ours,) = CpuExecutable(graph, threads=1).run(feed).values()
    apart = np.abs(theirs.astype(np.int64) - ours)[(theirs > 0) & (theirs < 65535)]
    assert apart.size > 5000 and apart.max() <= 1
    assert np.mean(apart == 0) > 0.995, "the real results, rounded, are the same for 42 to 98 %"


@pytest.mark.parametrize(
    ("data", "gate"),
    [("others", SHAPE), ("others", (1, 1, 1, 16)), ("their own", SHAPE), ("their own, first", SHAPE)],
    ids=str,
)
def test_data_times_a_sigmoid(data: str, gate: tuple[int, ...]) -> None:
    """Its encoding is that of fractions of 16 bits, but for a bit, which makes a step in one of six."""
    graph, rng = Graph("gate"), np.random.default_rng(7)
    b = Builder(graph)
    x = graph.add_input("x", DType.UFIXED_16, gate)
    x.encoding, y = Encoding.per_tensor(2.1e-4, -31234, 16), x
    if data == "others":
        y = graph.add_input("y", DType.UFIXED_16, SHAPE)
        y.encoding = Encoding.per_tensor(1.1e-4, -20111, 16)
    share = b("Sigmoid", x)
    share.dtype, share.encoding = DType.UFIXED_16, Encoding.per_tensor(1 / 65535, 0, 16)
    z = b(PRODUCT, *((y, share) if data.endswith("first") else (share, y)))
    z.dtype, z.encoding = DType.UFIXED_16, Encoding.per_tensor(7.3e-5, -17000, 16)
    graph.add_output(z)
    feed = {v.name: rng.integers(0, 1 << 16, v.shape).astype(np.uint16) for v in graph.inputs}
    with LibraryWorker() as worker:
        (theirs,) = run_htp(worker, graph, [feed])[0].values()
    (ours,) = CpuExecutable(graph, threads=1).run(feed).values()
    assert np.mean(ours == theirs) > 0.998


@pytest.mark.slow
@pytest.mark.parametrize("model", ["silero_seq", "silero_openvino"])
def test_accuracy_behind_a_square_root_of_products_is_predicted(model: str) -> None:
    """Roots of small numbers are steep: products that are off by a step would move the result by 1 dB."""
    real, data = openqnn.convert(model_path(model), input_shapes=shapes_of(model)), data_set(model)
    fixed = openqnn.quantize(real, list(data.calibration), act_bw=16)
    found: list[list[Array]] = []
    for graph, backend in ((real, "cpu"), (fixed, "cpu"), (fixed, "htp")):
        with openqnn.Session(graph, backend=backend) as session:
            results = [session.run(sample) for sample in data.evaluation]
        found.append([np.concatenate([r[v.name].ravel() for r in results]) for v in graph.outputs])
    for want, ours, theirs in zip(*found, strict=True):
        assert abs(sqnr(want, ours) - sqnr(want, theirs)) < 0.3
