"""Normalisations, softmax and matrix products beyond ONNX's node tests."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.errors import UnsupportedError
from tests.frontends.onnx.against_ort import model_of, node, ops, rand, same
from tests.onnx_models import import_onnx

X = rand(2, 6, 5, 4)


def vectors(names: str, size: int) -> dict[str, np.ndarray]:
    return {n: np.abs(rand(size, seed=i)) + 0.1 for i, n in enumerate(names.split())}


@pytest.mark.parametrize("opset", [7, 9, 14, 15])
@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 5), (2, 6, 5, 4), (2, 6, 3, 4, 5)])
def test_batch_norms(opset: int, shape: tuple[int, ...]) -> None:
    graph = same(
        node("BatchNormalization", "x s b m v"), {"x": rand(*shape)}, vectors("s b m v", 6), opset, 1e-4
    )
    assert ops(graph)["Batchnorm"] == 1


def test_a_training_batch_norm_is_refused() -> None:
    batch_norm = node("BatchNormalization", "x s b m v", "y rm rv", training_mode=1)
    with pytest.raises(UnsupportedError, match="training mode"):
        import_onnx(model_of(batch_norm, {"x": X}, vectors("s b m v", 6), 15))


@pytest.mark.parametrize("shape", [(2, 6, 5), (2, 6, 5, 4), (2, 6, 3, 4, 5)])
def test_instance_norms_of_any_rank(shape: tuple[int, ...]) -> None:
    same(node("InstanceNormalization", "x s b"), {"x": rand(*shape)}, vectors("s b", 6), tolerance=1e-4)


@pytest.mark.parametrize("axis", [-1, 1, 2, -2])
def test_layer_norms_give_mean_and_deviation_too(axis: int) -> None:
    shape = X.shape[axis:]
    constants = {"s": rand(*shape), "b": rand(*shape, seed=1)}
    same(node("LayerNormalization", "x s b", "y mean inv", axis=axis), {"x": X}, constants, tolerance=1e-4)


@pytest.mark.parametrize("shape", [(2, 6, 5), (2, 6, 5, 4), (2, 6, 3, 4, 5)])
@pytest.mark.parametrize("opset", [18, 21])
def test_group_norms(shape: tuple[int, ...], opset: int) -> None:
    constants = vectors("s b", 3 if opset == 18 else 6)
    same(node("GroupNormalization", "x s b", num_groups=3), {"x": rand(*shape)}, constants, opset, 1e-4)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [-1, 1])
def test_lp_norms(p: int, axis: int) -> None:
    same(node("LpNormalization", "x", p=p, axis=axis), {"x": X})


@pytest.mark.parametrize("size", [1, 3, 5])
def test_local_response(size: int) -> None:
    same(node("LRN", "x", size=size, alpha=0.3, beta=0.6, bias=2.0), {"x": X})


def test_a_local_response_of_even_size_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="odd"):
        import_onnx(model_of(node("LRN", "x", size=4), {"x": X}, {}, 13))


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("axis", [None, 0, 1, 3, -1, -2])
def test_softmax_over_one_axis_or_over_the_rest(op: str, opset: int, axis: int | None) -> None:
    attributes = {} if axis is None else {"axis": axis}
    same(node(op, "x", **attributes), {"x": X}, opset=opset)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((4,), (4,)),
        ((4,), (4, 3)),
        ((2, 4), (4,)),
        ((5, 2, 4), (4, 3)),
        ((5, 2, 4), (4,)),
        ((4,), (5, 4, 3)),
        ((1, 5, 2, 4), (3, 1, 4, 6)),
    ],
)
def test_products_of_vectors_and_stacks(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    same(node("MatMul", "a b"), {"a": rand(*a), "b": rand(*b, seed=1)})


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("turned", [0, 1, 2, 3])
@pytest.mark.parametrize("c", [None, (), (1,), (5,), (1, 5), (3, 1), (3, 5)])
def test_gemm(known: bool, turned: int, c: tuple[int, ...] | None) -> None:
    a = rand(*((4, 3) if turned & 1 else (3, 4)))
    rest = {"b": rand(*((5, 4) if turned & 2 else (4, 5)), seed=1)}
    if c is not None:
        rest["c"] = np.asarray(rand(*c, seed=2))
    gemm = node(
        "Gemm",
        "a b c" if c is not None else "a b",
        alpha=0.5,
        beta=2.0,
        transA=turned & 1,
        transB=turned >> 1,
    )
    graph = same(gemm, {"a": a} if known else {"a": a, **rest}, rest if known else {}, tolerance=1e-4)
    assert ops(graph)["FullyConnected"] == int(known)


def test_a_known_weight_is_turned_without_a_copy() -> None:
    b = rand(40, 50)
    graph = same(node("Gemm", "a b"), {"a": rand(3, 40)}, {"b": b}, tolerance=1e-4)
    (weight,) = graph.constants()
    assert weight.shape == (50, 40) and weight.data is not None and weight.data.base is not None


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bhid,bhjd->bhij", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("bhij,bhjd->bihd", [(2, 3, 4, 6), (2, 3, 6, 5)]),
        ("...ij,...jk->...ik", [(2, 5, 3, 4), (2, 5, 4, 6)]),
        ("i,j->ij", [(3,), (4,)]),
        ("ij->ji", [(3, 4)]),
        ("ij->", [(3, 4)]),
        ("ii->i", [(4, 4)]),
        ("bii->b", [(2, 4, 4)]),
        ("ij,j->i", [(3, 4), (4,)]),
        ("ij,kj,l->ikl", [(3, 4), (5, 4), (2,)]),
        ("abc,cd,de->abe", [(2, 3, 4), (4, 5), (5, 6)]),
        ("ijk,il->kl", [(2, 3, 4), (2, 5)]),
        ("i,i->", [(4,), (4,)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    names = "abc"[: len(shapes)]
    inputs = {n: rand(*s, seed=i) for i, (n, s) in enumerate(zip(names, shapes, strict=True))}
    same(node("Einsum", " ".join(names), equation=equation), inputs, tolerance=1e-4)


@pytest.mark.parametrize(
    ("equation", "reason"),
    [("ij,jk,kl->il", "inputs"), ("ijk,jk->i", "rank"), ("ij,jk->iz", "no input"), ("i1,jk->i", "label")],
)
def test_bad_equations_are_refused(equation: str, reason: str) -> None:
    model = model_of(node("Einsum", "a b", equation=equation), {"a": rand(2, 3), "b": rand(3, 4)}, {}, 13)
    model.graph.output[0].type.tensor_type.elem_type = 1
    with pytest.raises(UnsupportedError, match=reason):
        import_onnx(model)


def test_products_of_integers() -> None:
    rng = np.random.default_rng(0)
    # Some processors saturate sums of two products of 8 bits in ONNX Runtime, hence 7 bits.
    a, b = rng.integers(0, 127, (5, 30), np.uint8), rng.integers(-64, 63, (30, 7), np.int8)
    zeros = {"az": np.uint8(7), "bz": np.arange(7, dtype=np.int8)}
    same(node("MatMulInteger", "a b az bz"), {"a": a}, {"b": b, **zeros}, tolerance=0)


def test_a_fused_product_of_microsoft() -> None:
    fused = node("FusedMatMul", "a b", domain="com.microsoft", transA=1, transB=1, alpha=0.3)
    same(fused, {"a": rand(2, 4, 3), "b": rand(2, 5, 4)})
