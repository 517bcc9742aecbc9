"""Resizing, sampling and blocks beyond ONNX's node tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from openqnn.errors import UnsupportedError
from tests.frontends.onnx.against_ort import model_of, node, ops, rand, same
from tests.onnx_models import import_onnx

X = rand(1, 2, 6, 5)
MODES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]


def resized(sizes: list[int], x: np.ndarray = X, **attributes: Any) -> Any:
    opset = attributes.pop("opset", 19)
    sizes = [*x.shape[:2], *sizes]
    return same(node("Resize", "x _ _ s", **attributes), {"x": x}, {"s": np.asarray(sizes)}, opset, 1e-4)


@pytest.mark.parametrize("coordinates", MODES)
@pytest.mark.parametrize("sizes", [[12, 10], [3, 2], [7, 9], [12, 5], [1, 1]])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_modes(mode: str, sizes: list[int], coordinates: str) -> None:
    graph = resized(sizes, mode=mode, coordinate_transformation_mode=coordinates)
    assert ops(graph)["Resize"] <= 1


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("sizes", [[12, 10], [3, 2], [7, 9]])
def test_nearest_rounds_as_asked(rounding: str, sizes: list[int]) -> None:
    resized(sizes, mode="nearest", nearest_mode=rounding, coordinate_transformation_mode="asymmetric")


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("sizes", [[3, 2], [2, 10]])
@pytest.mark.parametrize("outside", [0, 1])
def test_antialias_is_a_product_with_constants(mode: str, sizes: list[int], outside: int) -> None:
    graph = resized(sizes, mode=mode, antialias=1, exclude_outside=outside)
    assert ops(graph)["MatMul"] == 2


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [[1.0, 1.0, 1.7, 2.3], [1.0, 1.0, 0.6, 0.8], [1.0, 1.0, 2.0, 2.0]])
@pytest.mark.parametrize("opset", [10, 11, 13, 19])
def test_scales_that_give_no_whole_sizes(mode: str, scales: list[float], opset: int) -> None:
    names = "x s" if opset == 10 else "x r s" if opset == 11 else "x _ s"
    constants = {"s": np.float32(scales), "r": np.zeros(0, np.float32)}
    same(node("Resize", names, mode=mode), {"x": X}, constants, opset, 1e-4)


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsample(opset: int, mode: str) -> None:
    scales = [1.0, 1.0, 2.0, 3.0]
    old = opset < 9
    upsample = node("Upsample", "x", mode=mode, scales=scales) if old else node("Upsample", "x s", mode=mode)
    same(upsample, {"x": X}, {} if old else {"s": np.float32(scales)}, opset)


@pytest.mark.parametrize("rank", [3, 5])
def test_other_ranks(rank: int) -> None:
    x = rand(*(1, 2, 6, 5, 4)[:rank])
    resized([9, 7, 6][: rank - 2], x, mode="linear")


def test_channels_are_resized_too() -> None:
    same(node("Resize", "x _ _ s", mode="nearest"), {"x": X}, {"s": np.asarray([2, 4, 6, 5])})


def test_integers_are_taken_as_they_are() -> None:
    x = np.arange(30, dtype=np.int32).reshape(1, 1, 6, 5)
    graph = resized([12, 10], x, mode="nearest")
    assert "Gather" in ops(graph)


def test_cropping_fills_what_is_outside() -> None:
    attributes = {
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "mode": "linear",
        "extrapolation_value": 10.0,
    }
    constants = {"r": np.float32([0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7]), "s": np.asarray([1, 2, 3, 4])}
    same(node("Resize", "x r _ s", **attributes), {"x": X}, constants, 13, 1e-4)


def test_sizes_at_run_time_are_refused() -> None:
    model = model_of(node("Resize", "x _ _ s"), {"x": X, "s": np.asarray([1, 2, 3, 4])}, {}, 13)
    with pytest.raises(UnsupportedError, match="sizes is computed at run time"):
        import_onnx(model)


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grid_samples(mode: str, padding: str, corners: int) -> None:
    grid = rand(1, 3, 4, 2)
    sample = node("GridSample", "x g", mode=mode, padding_mode=padding, align_corners=corners)
    same(sample, {"x": X, "g": grid}, opset=20)


@pytest.mark.parametrize("opset", [10, 16])
def test_regions_are_aligned(opset: int) -> None:
    rois = np.float32([[0, 0, 4, 5], [1, 2, 4, 4]])
    align = node("RoiAlign", "x r i", output_height=2, output_width=3, sampling_ratio=2, spatial_scale=0.5)
    same(align, {"x": X}, {"r": rois * 2, "i": np.asarray([0, 0])}, opset, 1e-4)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space_and_back(mode: str) -> None:
    same(node("DepthToSpace", "x", blocksize=2, mode=mode), {"x": rand(1, 8, 3, 2)})
    same(node("SpaceToDepth", "x", blocksize=2), {"x": rand(1, 2, 6, 4)})


def test_centred_crops_and_pads() -> None:
    same(node("CenterCropPad", "x s", axes=[2, 3]), {"x": X}, {"s": np.asarray([3, 8])})


@pytest.mark.parametrize("corners", [0, 1])
def test_affine_grids(corners: int) -> None:
    grid = node("AffineGrid", "t s", align_corners=corners)
    same(grid, {"t": rand(2, 2, 3)}, {"s": np.asarray([2, 3, 4, 5])}, 20)
