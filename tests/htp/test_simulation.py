"""The built-in backend gives the stored integers of libQnnHtp: a sample always, all in the slow suite."""

from __future__ import annotations

import json

import numpy as np
import pytest

import openqnn
from openqnn.ir import DType, Encoding, Graph
from openqnn.ops import Builder
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.vendor.library_worker import LibraryWorker
from tests.htp.simulation import BASELINE, NONE, WANTED, Outcome, rows, run_all, run_case, run_htp, shares
from tests.ops.database import Given, case, f
from tests.qnn.nets import needs_htp

SAMPLE = 8  # every so many cases: about ten seconds
SLACK = 0.005  # of the share in the baseline: other samples of the same values
EXACT = "^(Conv2d|FullyConnected|ElementWiseAdd)"
WIDE = "^(Softmax|MatMul|ElementWiseSquaredDifference|Prelu)"
# Functions of one 16-bit tensor, with the encodings of input and output. None of them led to the rules.
CURVES = {
    "Sigmoid": ((2.3e-4, -31000), (1.31e-5, 0)),
    "Tanh": ((1.9e-4, -34567), (2.9e-5, -32768)),
    "ElementWiseExp": ((7.7e-5, -41000), (1.02e-4, -120)),
    "Elu": ((1.45e-4, -27000), (9.3e-5, -11111)),
    "Gelu": ((1.57e-4, -30500), (8.9e-5, -2222)),
    "HardSwish": ((1.71e-4, -29000), (9.9e-5, -4000)),
    "ElementWiseSquareRoot": ((8.3e-5, 0), (3.7e-5, -77)),
    "ElementWiseSin": ((4.1e-4, -28000), (2.6e-5, -31000)),
    "ElementWiseCos": ((8.7e-5, -33333), (6.3e-5, -30000)),
    "ElementWiseAtan": ((2.9e-5, -31111), (3.3e-5, -29000)),
    "ElementWiseAtan-beyond_1": ((3.7e-4, -11000), (4.3e-5, -29000)),
    "ElementWiseAtan-factor": ((2.98e-4, -38615), (4.472325767831706e-5, -33185)),
    "ElementWiseAsin": ((2.7e-5, -31000), (4.6e-5, -30000)),
}

pytestmark = needs_htp


def check(found: list[Outcome]) -> None:
    poor = [r for r in rows(found) if r.bits == 8 and r.within < WANTED]
    assert not poor, poor


def test_a_sample_in_8_bits_is_within_one_step() -> None:
    found = run_all(sample=SAMPLE)
    check(found)
    assert sum(o.values > 0 for o in found) > 0.4 * len(found), "most are refused or have no real data"


def test_sums_of_products_are_the_same_integers() -> None:
    found = [r for r in rows(run_all(EXACT)) if r.bits == 8]
    assert len(found) == 3
    for row in found:
        assert row.equal > 0.99, row
        assert row.largest <= 1, row


def test_ops_of_two_tensors_in_16_bits_are_within_one_step() -> None:
    found = [r for r in rows(run_all(WIDE)) if r.bits == 16]
    assert len(found) == 4
    assert not [r for r in found if r.within < WANTED]


@pytest.mark.parametrize("name", CURVES)
def test_all_16_bit_numbers_are_within_one_step(name: str) -> None:
    taken, given = (Encoding.per_tensor(*e, 16) for e in CURVES[name])
    op, graph = name.partition("-")[0], Graph(name)
    x = graph.add_input("x", DType.UFIXED_16, (1, 64, 64, 16))
    x.encoding = taken
    y = Builder(graph)(op, x)
    y.dtype, y.encoding = DType.UFIXED_16, given
    graph.add_output(y)
    stored = np.arange(1 << 16, dtype=np.uint16).reshape(x.shape)
    with LibraryWorker() as worker:
        theirs = run_htp(worker, graph, [{"x": stored}])[0][y.name]
    ours = CpuExecutable(graph, threads=1).run({"x": stored})[y.name]
    apart = np.abs(theirs.astype(np.int64) - ours.astype(np.int64))
    assert np.mean(apart <= 1) > WANTED, (apart > 1).sum()


@pytest.mark.parametrize(
    "encodings",
    [
        ((1.7e-4, -31000), (1.4e-4, -21000), (8.1e-5, -33000)),
        ((3.3e-5, 0), (8.8e-5, -90), (1.9e-5, 0)),
    ],
    ids=["signed", "unsigned"],
)
def test_quotients_are_the_same_integers(encodings: tuple[tuple[float, int], ...]) -> None:
    first, second, out = (Encoding.per_tensor(*e, 16) for e in encodings)
    graph, shape = Graph("quotient"), (1, 64, 64, 16)
    operands = [graph.add_input(name, DType.UFIXED_16, shape) for name in ("x", "y")]
    operands[0].encoding, operands[1].encoding = first, second
    z = Builder(graph)("ElementWiseDivide", *operands)
    z.dtype, z.encoding = DType.UFIXED_16, out
    graph.add_output(z)
    rng = np.random.default_rng(9)
    feed = {v.name: rng.integers(0, 1 << 16, shape).astype(np.uint16) for v in operands}
    with LibraryWorker() as worker:
        theirs = run_htp(worker, graph, [feed])[0][z.name]
    ours = CpuExecutable(graph, threads=1).run(feed)[z.name]
    np.testing.assert_array_equal(ours, theirs)


def test_whole_quotients_are_rounded_down_alike() -> None:
    """What HTP's reciprocal is off decides; of exact quotients a third would differ here."""
    graph, shape = Graph("quotient"), (1, 64, 64, 16)
    operands = [graph.add_input(name, DType.UFIXED_16, shape) for name in ("x", "y")]
    for value in operands:
        value.encoding = Encoding.per_tensor(0.5, 0, 16)
    z = Builder(graph)("ElementWiseFloorDiv", *operands)
    z.dtype, z.encoding = DType.UFIXED_16, Encoding.per_tensor(0.25, 0, 16)
    graph.add_output(z)
    rng = np.random.default_rng(5)
    below = rng.integers(1, 8000, shape)
    above = below * rng.integers(1, 8, shape)
    feed = {"x": above.astype(np.uint16), "y": below.astype(np.uint16)}
    with LibraryWorker() as worker:
        theirs = run_htp(worker, graph, [feed])[0][z.name]
    assert np.mean(CpuExecutable(graph, threads=1).run(feed)[z.name] == theirs) > 0.97


@pytest.mark.slow
def test_all_ops_agree_as_they_did() -> None:
    found = run_all()
    check(found)
    baseline = json.loads(BASELINE.read_text(encoding="utf-8"))
    worse = {k: (v, baseline[k]) for k, v in shares(found).items() if v < baseline.get(k, 0) - SLACK}
    assert not worse, worse


def test_a_convolution_with_one_output_channel() -> None:
    """Its bias has a scale per channel as its weights have: HTP adds another bias otherwise."""
    rng = np.random.default_rng(4)
    graph = Graph("one")
    b = Builder(graph)
    x = graph.add_input("x", DType.FLOAT_32, (1, 16, 16, 24))
    weights, bias = rng.normal(size=(1, 1, 24, 1)).astype(np.float32), np.full(1, 9.0, np.float32)
    graph.add_output(b("Conv2d", x, b.const(weights), b.const(bias), stride=(1, 1), pad_amount=NONE))
    arrays = [{"x": rng.normal(size=x.shape).astype(np.float32)} for _ in range(4)]
    fixed = openqnn.quantize(graph, arrays)
    with openqnn.Session(fixed) as cpu, openqnn.Session(fixed, "htp") as htp:
        ours, theirs = cpu.run(arrays[0]), htp.run(arrays[0])
    for name, array in ours.items():
        np.testing.assert_array_equal(theirs[name], array)


@pytest.mark.parametrize("samples", [(2, 2), (3, 1), (0, 0)], ids=["square", "uneven", "adaptive"])
def test_regions_count_pixels_alike(samples: tuple[int, int]) -> None:
    """With exact interpolation, half of the results would be off by 2 to 30 steps.

    One in some hundred would be if halves of what a pixel counts were rounded to even numbers, or if the last
    pixel counted all of it, alone, for what is beside it.
    """
    rng, count = np.random.default_rng(6), 200
    corners = np.sort(rng.uniform(0, 16, (count, 2, 2)), axis=1).reshape(count, 4)
    regions = Given(corners.astype(np.float32), static=True)
    batch = Given((np.arange(count) % 2).astype(np.int32), static=True)
    given = case(
        "RoiAlign", f(2, 16, 16, 8), regions, batch, shape=(count, 3, 2, 8), img_size_ratio=(1, 1),
        num_samples_y=samples[0], num_samples_x=samples[1],
    )  # fmt: skip
    with LibraryWorker() as worker:
        found = run_case(worker, given, 16)
    assert found.values and found.within == found.values, found
    assert found.equal / found.values > 0.95, found


@pytest.mark.parametrize("count", [7, 40])
def test_logarithms_of_shares_are_the_same_integers(count: int) -> None:
    """With scales in full, two in three to four in five would be."""
    graph, shape = Graph("shares"), (1, 24, 24, count)
    x = graph.add_input("x", DType.UFIXED_16, shape)
    x.encoding = Encoding.per_tensor(7.3e-5, -31111, 16)
    y = Builder(graph)("LogSoftmax", x, axis=3, beta=1.0)
    y.dtype, y.encoding = DType.UFIXED_16, Encoding.per_tensor(8.7e-5, -65535, 16)
    graph.add_output(y)
    feed = {"x": np.random.default_rng(2).integers(0, 1 << 16, shape).astype(np.uint16)}
    with LibraryWorker() as worker:
        theirs = run_htp(worker, graph, [feed])[0][y.name]
    apart = np.abs(theirs.astype(np.int64) - CpuExecutable(graph, threads=1).run(feed)[y.name])
    assert apart.max() <= 1 and np.mean(apart == 0) > 0.88


@pytest.mark.parametrize("corners", [False, True], ids=["edges", "corners"])
@pytest.mark.parametrize("padding", ["ZEROS", "BORDER", "REFLECTION"])
@pytest.mark.parametrize(
    "coordinates", [(3.7e-5, -31920), (7.611440821348444e-5, -38462)], ids=["near", "far"]
)
def test_samples_between_pixels_are_the_same_integers(
    coordinates: tuple[float, int], padding: str, corners: bool
) -> None:
    """By exact places and weights at most two in three would be.

    By a constant that the rounded factor and the size are not in, the far ones are turned back elsewhere.
    """
    graph, rng = Graph("grid"), np.random.default_rng(3)
    image = graph.add_input("image", DType.UFIXED_16, (1, 13, 31, 4))
    grid = graph.add_input("grid", DType.UFIXED_16, (1, 32, 32, 2))
    image.encoding, grid.encoding = (
        Encoding.per_tensor(5.7e-5, -34721, 16),
        Encoding.per_tensor(*coordinates, 16),
    )
    y = Builder(graph)(
        "GridSample", image, grid, align_corners=corners, mode="BILINEAR", padding_mode=padding
    )
    y.dtype, y.encoding = DType.UFIXED_16, Encoding.per_tensor(7.9e-5, -32868, 16)
    graph.add_output(y)
    feed = {v.name: rng.integers(0, 1 << 16, v.shape).astype(np.uint16) for v in graph.inputs}
    with LibraryWorker() as worker:
        theirs = run_htp(worker, graph, [feed])[0][y.name]
    apart = np.abs(theirs.astype(np.int64) - CpuExecutable(graph, threads=1).run(feed)[y.name])
    assert np.mean(apart <= 1) > WANTED and np.mean(apart == 0) > 0.88


def test_samples_off_the_image_lose_as_much() -> None:
    """The last pixel counts 65535 of 65536, along both axes: beyond the middle that is two steps less."""
    graph, code = Graph("grid"), Encoding.per_tensor(1e-4, -32768, 16)
    image = graph.add_input("image", DType.UFIXED_16, (1, 2, 2, 256))
    grid = graph.add_input("grid", DType.UFIXED_16, (1, 1, 1, 2))
    image.encoding = grid.encoding = code
    y = Builder(graph)("GridSample", image, grid, align_corners=True, mode="BILINEAR", padding_mode="BORDER")
    y.dtype, y.encoding = DType.UFIXED_16, code
    graph.add_output(y)
    pixels = np.broadcast_to(np.arange(32700, 32956, dtype=np.uint16), image.shape)
    feed = {"image": np.ascontiguousarray(pixels), "grid": np.full(grid.shape, 60000, np.uint16)}
    with LibraryWorker() as worker:
        theirs = run_htp(worker, graph, [feed])[0][y.name]
    assert (theirs < feed["image"][:, :1, :1]).any()
    np.testing.assert_array_equal(CpuExecutable(graph, threads=1).run(feed)[y.name], theirs)
