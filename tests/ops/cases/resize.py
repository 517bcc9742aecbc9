"""Resizing, warping, regions of interest, windows."""

import numpy as np

from openqnn.ir import Encoding
from tests.ops.database import case, const, f, fixed

INT = np.int32
BOXES = const([[0.0, 0.0, 1.0, 1.0], [0.2, 0.1, 0.72, 0.9], [-0.3, 0.5, 0.6, 1.4]])
INNER = const([[0.0, 0.0, 1.0, 1.0], [0.2, 0.1, 0.7, 0.9], [0.9, 0.5, 0.6, 0.8]])
ROIS = const([[1, 1, 12, 9], [0, 3, 15, 14], [2, 2, 5, 5]])
BATCH = const([0, 1, 0], INT)
MODES = ("HALF_PIXEL", "PYTORCH_HALF_PIXEL", "ALIGN_CORNERS", "ASYMMETRIC")


def linear(*sizes: int):
    """Half-pixel linear interpolation of every axis between the batch and the channels."""

    def along(x: np.ndarray, axis: int, size: int) -> np.ndarray:
        at = np.clip((np.arange(size) + 0.5) * x.shape[axis] / size - 0.5, 0, x.shape[axis] - 1)
        pick = lambda line: np.interp(at, np.arange(len(line)), line)
        return np.apply_along_axis(pick, axis, x)

    def expect(x: np.ndarray) -> np.ndarray:
        for axis, size in enumerate(sizes, 1):
            x = along(x, axis, size)
        return x

    return expect


def crop(rows: int, columns: int, nearest: bool = False):
    """TensorFlow's crop_and_resize, pixel by pixel."""

    def pixel(image: np.ndarray, y: float, x: float) -> np.ndarray:
        height, width, depth = image.shape
        if not (0 <= y <= height - 1 and 0 <= x <= width - 1):
            return np.zeros(depth)
        if nearest:
            return image[int(y + 0.5), int(x + 0.5)]
        y0, x0 = int(y), int(x)
        y1, x1, v, u = min(y0 + 1, height - 1), min(x0 + 1, width - 1), y - y0, x - x0
        return (image[y0, x0] * (1 - u) + image[y0, x1] * u) * (1 - v) + (
            image[y1, x0] * (1 - u) + image[y1, x1] * u
        ) * v

    def expect(image: np.ndarray, boxes: np.ndarray, batch: np.ndarray) -> np.ndarray:
        height, width = image.shape[1] - 1, image.shape[2] - 1
        places = [
            (np.linspace(a, c, rows) * height, np.linspace(b, d, columns) * width)
            for a, b, c, d in boxes.astype(float)
        ]
        return np.array(
            [
                [[pixel(image[k], y, x) for x in xs] for y in ys]
                for k, (ys, xs) in zip(batch, places, strict=True)
            ]
        )

    return expect


def cubic_inside(x: np.ndarray) -> np.ndarray:
    """Half-pixel cubic weights (-0.5), those outside of the image dropped and the rest scaled up, to 4x9."""

    def weights(source: int, size: int) -> np.ndarray:
        at = (np.arange(size)[:, None] + 0.5) * source / size - 0.5
        d = np.abs(at - np.arange(source))
        near, far = (1.5 * d - 2.5) * d * d + 1, ((-0.5 * d + 2.5) * d - 4) * d + 2
        found = np.where(d <= 1, near, np.where(d < 2, far, 0))
        return found / found.sum(1, keepdims=True)

    return np.einsum("oy,px,nyxc->nopc", weights(x.shape[1], 4), weights(x.shape[2], 9), x)


def same_patches(x: np.ndarray) -> np.ndarray:
    """3x3 windows with stride 2 of a 6x7 image, zeros as TensorFlow places them."""
    x = np.pad(x, ((0, 0), (0, 1), (1, 1), (0, 0)))
    return np.concatenate([x[:, r : r + 5 : 2, c : c + 7 : 2] for r in range(3) for c in range(3)], axis=3)


def patches(x: np.ndarray) -> np.ndarray:
    """2x2 windows with stride 1, depth as (row, column, channel)."""
    return np.concatenate([x[:, r : r + 3, c : c + 4] for r in range(2) for c in range(2)], axis=3)


CASES = [
    *(
        case(
            "Resize",
            f(1, 4, 5, 2),
            shape=(1, 7, 6, 2),
            interpolation_mode="LINEAR",
            transformation_mode=m,
            label=f"linear-{m}",
        )
        for m in MODES
    ),
    *(
        case(
            "Resize",
            f(1, 4, 5, 2),
            shape=(1, 8, 9, 2),
            transformation_mode=m,
            nearest_mode=r,
            label=f"{m}-{r}",
        )
        for m, r in (
            ("HALF_PIXEL", "ROUND_PREFER_FLOOR"),
            ("ASYMMETRIC", "FLOOR"),
            ("ALIGN_CORNERS", "ROUND_PREFER_CEIL"),
            ("PYTORCH_HALF_PIXEL", "CEIL"),
        )
    ),
    case("Resize", f(1, 4, 5, 2), shape=(1, 8, 9, 2), interpolation_mode="CUBIC", label="cubic"),
    case(
        "Resize",
        f(1, 6, 5, 2),
        shape=(1, 4, 9, 2),
        interpolation_mode="CUBIC",
        exclude_outside=True,
        cubic_coeff=-0.5,
        label="cubic-inside",
        xfail="libQnnCpu refuses exclude_outside",
        expect=cubic_inside,
    ),
    case(
        "Resize",
        f(1, 5, 2),
        shape=(1, 9, 2),
        interpolation_mode="LINEAR",
        label="rank3",
        expect=linear(9),
        xfail="libQnnCpu does not finalize a rank 3 Resize",
    ),
    case(
        "Resize",
        f(1, 3, 4, 5, 2),
        shape=(1, 5, 6, 7, 2),
        interpolation_mode="LINEAR",
        label="rank5",
        expect=linear(5, 6, 7),
        xfail="libQnnCpu extrapolates beyond the first voxel",
    ),
    case("ResizeBilinear", f(1, 4, 5, 2), shape=(1, 7, 6, 2)),
    case("ResizeBilinear", f(1, 4, 5, 2), shape=(1, 7, 6, 2), align_corners=True),
    case("ResizeBilinear", f(2, 7, 6, 2), shape=(2, 4, 5, 2), half_pixel_centers=True),
    case(
        "ResizeBilinear",
        f(1, 8, 8, 1),
        shape=(1, 4, 3, 1),
        half_pixel_centers=True,
        antialias=True,
        label="smooth",
    ),
    case(
        "ResizeBilinear",
        fixed(np.arange(0, 200, 10).reshape(1, 4, 5, 1), 0.02, -100),
        shape=(1, 8, 10, 1),
        encoding=Encoding.per_tensor(0.02, -100),
        label="fixed",
        tolerance=1 / 255,
    ),
    case("ResizeNearestNeighbor", f(1, 4, 5, 2), shape=(1, 7, 6, 2)),
    case("ResizeNearestNeighbor", f(1, 4, 5, 2), shape=(1, 7, 8, 2), align_corners=True),
    case("ResizeNearestNeighbor", f(2, 7, 6, 2), shape=(2, 4, 5, 2), half_pixel_centers=True),
    case("CropAndResize", f(2, 6, 7, 3), INNER, BATCH, resize_dims=(3, 4)),
    case(
        "CropAndResize",
        f(2, 6, 7, 3),
        BOXES,
        BATCH,
        resize_dims=(3, 4),
        label="outside",
        expect=crop(3, 4),
        xfail="libQnnCpu repeats the border for up to one pixel outside",
    ),
    case(
        "CropAndResize",
        f(2, 6, 7, 3),
        BOXES,
        BATCH,
        resize_dims=(4, 3),
        interpolation_mode="NEAREST_NEIGHBOR",
        label="nearest",
        expect=crop(4, 3, nearest=True),
        xfail="libQnnCpu cuts coordinates instead of rounding",
    ),
    case("CropAndResize", f(2, 6, 7, 3), BOXES, BATCH, resize_dims=(1, 5), extrapolation_value=-1.5),
    case(
        "CropAndResize",
        fixed(np.full((1, 4, 4, 1), 150), 0.02, -100),
        const([[0, 0, 1, 1]]),
        const([0], INT),
        resize_dims=(2, 2),
        encoding=Encoding.per_tensor(0.5, 0),
        label="fixed",
        xfail="libQnnCpu takes no fixed point here",
        expect=lambda *_: np.full((1, 2, 2, 1), 2, np.uint8),
    ),
    *(
        case(
            "GridSample",
            f(1, 5, 6, 2),
            f(1, 3, 4, 2, low=-1.2, high=1.2),
            mode=m,
            padding_mode=p,
            align_corners=a,
        )
        for m, p, a in (
            ("BILINEAR", "ZEROS", False),
            ("BILINEAR", "BORDER", True),
            ("NEAREST", "REFLECTION", False),
            ("BILINEAR", "REFLECTION", True),
        )
    ),
    case(
        "RoiAlign",
        f(2, 16, 16, 2),
        ROIS,
        BATCH,
        shape=(3, 2, 3, 2),
        img_size_ratio=(1, 1),
        num_samples_y=2,
        num_samples_x=2,
    ),
    case(
        "RoiAlign",
        f(2, 8, 16, 2),
        ROIS,
        BATCH,
        shape=(3, 2, 3, 2),
        img_size_ratio=(2, 1),
        num_samples_y=3,
        num_samples_x=3,
        aligned=True,
    ),
    case(
        "RoiAlign",
        f(2, 16, 16, 2),
        ROIS,
        BATCH,
        shape=(3, 2, 2, 2),
        img_size_ratio=(1, 1),
        num_samples_y=2,
        num_samples_x=3,
        label="uneven",
    ),
    case(
        "RoiAlign", f(2, 16, 16, 2), ROIS, BATCH, shape=(3, 2, 2, 2), img_size_ratio=(1, 1), label="adaptive"
    ),
    case("RoiPooling", f(2, 16, 16, 2), ROIS, BATCH, shape=(3, 2, 3, 2), img_size_ratio=(1, 1)),
    case("RoiPooling", f(2, 8, 8, 2), ROIS, BATCH, shape=(3, 2, 2, 2), img_size_ratio=(2, 2)),
    case(
        "ImageProjectionTransform",
        f(2, 6, 7, 2),
        const([[1, 0.1, 0.5, 0.05, 1, 0.2, 0.01, 0], [0.9, 0, -1, 0, 1.1, 0.3, 0, 0.02]]),
    ),
    case(
        "ImageProjectionTransform",
        f(1, 6, 7, 2),
        const([[1, 0.1, 0.5, 0.05, 1, 0.2, 0.01, 0]]),
        interpolation_mode="NEAREST_NEIGHBOR",
    ),
    case("ExtractGlimpse", f(2, 6, 7, 2), const([[0.1, -0.3], [-1, 0.9]]), size=(3, 4), noise="ZEROES"),
    case(
        "ExtractGlimpse",
        f(1, 6, 7, 2),
        const([[1, 4]]),
        size=(3, 4),
        noise="ZEROES",
        centered=False,
        normalized=False,
    ),
    case("ExtractGlimpse", f(1, 6, 7, 2), const([[-4, 2]]), size=(3, 4), noise="ZEROES", normalized=False),
    case("ExtractGlimpse", f(1, 6, 7, 2), const([[0.3, 0.6]]), size=(2, 3), centered=False),
    case("ExtractPatches", f(1, 6, 7, 1), size=(2, 3), stride=(2, 1), rate=(1, 2), padding="VALID"),
    case(
        "ExtractPatches",
        f(1, 6, 7, 1),
        size=(3, 3),
        stride=(2, 2),
        rate=(1, 1),
        padding="SAME",
        label="same",
        xfail="libQnnCpu puts all the padding behind the image",
        expect=same_patches,
    ),
    case(
        "ExtractPatches",
        f(1, 4, 5, 2),
        size=(2, 2),
        stride=(1, 1),
        rate=(1, 1),
        padding="VALID",
        label="depth",
        xfail="libQnnCpu lays the depth out as (channel, row, column), libQnnHtp and TensorFlow as here",
        expect=patches,
    ),
    case("Correlation1D", f(1, 3, 6, 4), f(1, 3, 6, 4), displacement=2, shift=0),
    case("Correlation1D", f(2, 2, 5, 3), f(2, 2, 5, 3), displacement=1, shift=-2),
]
