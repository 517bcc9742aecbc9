"""Convolutions and pools beyond ONNX's node tests: shapes drawn at random, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from openqnn.errors import UnsupportedError
from tests.frontends.onnx.against_ort import model_of, node, ops, rand, same
from tests.onnx_models import import_onnx

small = st.integers(1, 3)
SIZES = (9, 8, 7)


@st.composite
def windows(draw: st.DrawFn, most_dims: int = 3) -> dict[str, Any]:
    dims = draw(st.integers(1, most_dims))
    each = lambda what: [draw(what) for _ in range(dims)]
    found: dict[str, Any] = {
        "kernel_shape": each(small),
        "strides": each(small),
        "dilations": each(st.integers(1, 2)),
    }
    if draw(st.booleans()):
        # ONNX Runtime does not do both, and drops or moves data where the window is smaller than the stride.
        found["dilations"] = [1] * dims
        found["strides"] = [min(s, k) for s, k in zip(found["strides"], found["kernel_shape"], strict=True)]
        found["auto_pad"] = draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    else:
        reach = [k - 1 for k in found["kernel_shape"]]
        found["pads"] = [draw(st.integers(0, r)) for r in reach * 2]
    return found


def data(dims: int, channels: int = 4) -> Any:
    return rand(2, channels, *SIZES[:dims])


@settings(max_examples=60, deadline=None)
@given(windows(), st.sampled_from([1, 2, 4]), st.booleans())
def test_convolutions(attributes: dict[str, Any], group: int, bias: bool) -> None:
    dims = len(attributes["strides"])
    weights = {"w": rand(8, 4 // group, *attributes["kernel_shape"]), "b": rand(8)}
    same(
        node("Conv", "x w b" if bias else "x w", group=group, **attributes),
        {"x": data(dims)},
        weights,
        tolerance=1e-4,
    )


@settings(max_examples=60, deadline=None)
@given(windows(), st.sampled_from([1, 2]), st.data())
def test_transposed_convolutions(attributes: dict[str, Any], group: int, more: st.DataObject) -> None:
    dims = len(attributes["strides"])
    if "auto_pad" not in attributes:
        attributes["output_padding"] = [more.draw(st.integers(0, s - 1)) for s in attributes["strides"]]
    weights = {"w": rand(4, 3, *attributes["kernel_shape"])}
    same(node("ConvTranspose", "x w", group=group, **attributes), {"x": data(dims)}, weights, tolerance=1e-4)


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("wanted", [[18, 16], [17, 17], [19, 16]])
def test_transposed_convolutions_of_a_wanted_size(auto_pad: str, wanted: list[int]) -> None:
    attributes = {"auto_pad": auto_pad, "output_shape": wanted, "strides": [2, 2]}
    same(node("ConvTranspose", "x w", **attributes), {"x": data(2)}, {"w": rand(4, 3, 3, 3)}, tolerance=1e-4)


def test_one_axis_becomes_an_image_with_one_row() -> None:
    graph = same(node("Conv", "x w"), {"x": data(1)}, {"w": rand(8, 4, 3)}, tolerance=1e-4)
    assert ops(graph)["Conv2d"] == 1


def test_a_filter_per_channel_is_depthwise() -> None:
    graph = same(node("Conv", "x w", group=4), {"x": data(2)}, {"w": rand(4, 1, 3, 3)}, tolerance=1e-4)
    assert ops(graph)["DepthWiseConv2d"] == 1


@settings(max_examples=80, deadline=None)
@given(windows(), st.booleans())
def test_max_pools(attributes: dict[str, Any], ceil: bool) -> None:
    same(node("MaxPool", "x", ceil_mode=int(ceil), **attributes), {"x": data(len(attributes["strides"]))})


@settings(max_examples=80, deadline=None)
@given(windows(), st.booleans(), st.booleans())
def test_average_pools(attributes: dict[str, Any], ceil: bool, count: bool) -> None:
    # ONNX Runtime counts what rounding up adds behind the padding, which ONNX's own tests say is wrong.
    assume(not (ceil and count))
    more = {"ceil_mode": int(ceil), "count_include_pad": int(count)}
    same(node("AveragePool", "x", **more, **attributes), {"x": data(len(attributes["strides"]))})


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_lp_pools(p: int, dims: int) -> None:
    attributes = {"kernel_shape": [3] * dims, "strides": [2] * dims, "pads": [1] * (2 * dims)}
    same(node("LpPool", "x", p=p, **attributes), {"x": data(dims)}, tolerance=1e-4)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_global_pools(op: str, dims: int) -> None:
    same(node(op, "x"), {"x": data(dims)}, tolerance=1e-4)


def test_pools_of_regions() -> None:
    rois = np.asarray([[0, 0, 0, 5, 6], [1, 2, 1, 6, 4]], np.float32)
    attributes = {"pooled_shape": [2, 3], "spatial_scale": 0.5}
    same(
        node("MaxRoiPool", "x rois", **attributes),
        {"x": data(2)},
        {"rois": rois * np.float32([1, 2, 2, 2, 2])},
    )


def test_positions_of_maxima_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="positions of the maxima"):
        import_onnx(model_of(node("MaxPool", "x", "y i", kernel_shape=[2, 2]), {"x": data(2)}, {}, 21))


@pytest.mark.parametrize("signed", [False, True])
def test_integer_convolutions(signed: bool) -> None:
    rng = np.random.default_rng(0)
    kind = "int8" if signed else "uint8"
    # Small weights: without VNNI instructions ONNX Runtime adds pairs of products in 16 bits, which saturate.
    x, w = rng.integers(0, 255, (1, 3, 8, 8), np.uint8), rng.integers(0, 60, (4, 3, 3, 3)).astype(kind)
    zeros = {"xz": np.uint8(120), "wz": np.asarray(3, kind)}
    same(node("ConvInteger", "x w xz wz", pads=[1, 1, 1, 1]), {"x": x}, {"w": w, **zeros}, tolerance=0)
    scales = {
        "xs": np.float32(0.02),
        "ws": np.full(4, 0.01, np.float32),
        "ys": np.float32(0.2),
        "yz": np.uint8(9),
    }
    constants = {
        "w": w,
        "xz": zeros["xz"],
        "wz": np.zeros(4, kind),
        "b": np.arange(4, dtype=np.int32) * 100,
        **scales,
    }
    same(node("QLinearConv", "x xs xz w ws wz ys yz b"), {"x": x}, constants, tolerance=1e-6)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "NOTSET"])
@pytest.mark.parametrize("attribute", ["strides", "dilations"])
def test_numbers_that_no_parameter_holds_are_refused(attribute: str, auto_pad: str) -> None:
    conv = node("Conv", "x w", **{attribute: [1, (1 << 63) - 1], "auto_pad": auto_pad})
    with pytest.raises(UnsupportedError, match="dilations or pads are larger than 2147483647"):
        import_onnx(model_of(conv, {"x": rand(1, 2, 8, 8)}, {"w": rand(3, 2, 3, 3)}, 20))
