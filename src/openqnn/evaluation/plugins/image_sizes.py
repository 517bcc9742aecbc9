"""Plugins that change the size of images: resize, crop, pad, and CenterNet's affine frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openqnn.errors import UsageError
from openqnn.evaluation.plugins.images import opencv, with_image
from openqnn.evaluation.plugins.parameter_kinds import (
    kind_bool,
    kind_dims,
    kind_float,
    kind_int,
    kind_optional,
    kind_rgb,
    kind_text,
)
from openqnn.evaluation.plugins.plugin import MEMORY, Context, Item, PreprocessPlugin, param, plugin
from openqnn.ir import Array

LETTERBOX, IMAGENET, ASPECT = "letterbox", "imagenet", "aspect_ratio"
GREY = 114
OPENCV = {
    "bilinear": "INTER_LINEAR",
    "area": "INTER_AREA",
    "nearest": "INTER_NEAREST",
    "bicubic": "INTER_CUBIC",
}
PILLOW = ("bilinear", "nearest", "bicubic", "box", "hamming", "lanczos")
TORCHVISION = ("bilinear", "nearest", "bicubic")
FRAME = "frame"  # how an image was put into the model's input: scale and offsets


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the image lies in the model's input: input = image * scale + offset."""

    scale: tuple[float, float]
    offset: tuple[float, float]
    size: tuple[int, int]


def scaled(image: Array, height: int, width: int, library: str, interp: str) -> Array:
    """The image in another size. What torchvision does to images is what Pillow does; OpenCV and TensorFlow
    have the same bilinear interpolation."""
    if library in ("opencv", "tensorflow"):
        if interp not in OPENCV:
            raise UsageError(f"resize: OpenCV has no interpolation '{interp}'", hint=", ".join(OPENCV))
        cv2 = opencv()
        return cv2.resize(image, (width, height), interpolation=getattr(cv2, OPENCV[interp]))
    allowed = PILLOW if library == "pillow" else TORCHVISION
    if interp not in allowed:
        raise UsageError(f"resize: {library} has no interpolation '{interp}'", hint=", ".join(allowed))
    from PIL import Image

    how = Image.Resampling[interp.upper()]
    if image.dtype == np.uint8:
        return np.asarray(Image.fromarray(image).resize((width, height), how))
    planes = [Image.fromarray(image[..., c].astype(np.float32)) for c in range(image.shape[-1])]
    return np.stack([np.asarray(p.resize((width, height), how)) for p in planes], axis=-1)


@plugin("resize")
class Resize(PreprocessPlugin):
    """To given sizes: stretched, letterboxed, scaled for ImageNet (shorter side to 256/224 of the target,
    then cut out of the middle), or with its own aspect ratio inside the target."""

    dims: tuple[int, ...] = param(kind_dims)
    library: str = param(kind_text, "opencv", choices=("opencv", "pillow", "torchvision", "tensorflow"))
    channel_order: str = param(kind_text, "RGB", choices=("RGB", "BGR"))
    interp: str | None = param(kind_text, None)
    type: str | None = param(kind_optional, None, choices=(LETTERBOX, IMAGENET, ASPECT, "auto-resize", None))
    resize_before_typecast: bool = param(kind_bool, True)
    typecasting_required: bool = param(kind_bool, True)
    mean: tuple[float, ...] = param(kind_rgb, (0.0, 0.0, 0.0))
    std: tuple[float, ...] = param(kind_rgb, (0.0, 0.0, 0.0))
    normalize_before_resize: bool = param(kind_bool, False)
    crop_before_resize: bool = param(kind_bool, False)
    norm: float = param(kind_float, 255.0, only=MEMORY)
    normalize_first: bool = param(kind_bool, True, only=MEMORY)

    def process(self, item: Item, context: Context) -> Item:
        item = with_image(item, context)
        image = np.asarray(item.arrays[0])
        if self.channel_order == "BGR":
            image = image[..., ::-1]
        if self.library == "tensorflow" and self.crop_before_resize:
            image = _middle_square(image)
        if not self.resize_before_typecast:
            image = image.astype(np.float32)
        if self.library == "tensorflow" and self.normalize_before_resize:
            image = self._normal(image)
        made, frame = self._placed(np.ascontiguousarray(image))
        if self.library == "tensorflow" and not self.normalize_before_resize:
            made = self._normal(made)
        if self.typecasting_required:
            made = made.astype(np.float32)
        return item.with_arrays([made, *item.arrays[1:]], **{FRAME: frame})

    def _normal(self, image: Array) -> Array:
        """Mean and deviation, for TensorFlow only; a deviation of 0 divides by nothing."""
        std = np.where(np.asarray(self.std) == 0, 1.0, self.std)
        if not any(self.mean) and not any(self.std):
            return image
        scale = self.norm or 1.0
        return (
            (image / np.float32(scale) - np.asarray(self.mean, np.float32)) / std.astype(np.float32)
        ).astype(np.float32)

    def _placed(self, image: Array) -> tuple[Array, Frame]:
        height, width = self.dims[:2]
        interp = self.interp or ("bicubic" if self.library == "pillow" else "bilinear")
        rows, columns = image.shape[:2]
        kind = self.type if self.library != "torchvision" else None
        if kind == IMAGENET:
            return self._cut(image, interp)
        if kind not in (LETTERBOX, ASPECT):
            made = scaled(image, height, width, self.library, interp)
            return made, Frame((width / columns, height / rows), (0.0, 0.0), (height, width))
        ratio = min(height / rows, width / columns)
        tall, wide = round(rows * ratio), round(columns * ratio)
        made = scaled(image, tall, wide, self.library, interp)
        if kind == ASPECT:
            return made, Frame((ratio, ratio), (0.0, 0.0), (tall, wide))
        top, left = (height - tall) // 2, (width - wide) // 2
        sheet = np.full((height, width, image.shape[-1]), GREY, made.dtype)
        sheet[top : top + tall, left : left + wide] = made
        return sheet, Frame((ratio, ratio), (float(left), float(top)), (height, width))

    def _cut(self, image: Array, interp: str) -> tuple[Array, Frame]:
        height, width = self.dims[:2]
        rows, columns = image.shape[:2]
        ratio = max(height, width) * 256 / 224 / min(rows, columns)
        tall, wide = max(height, round(rows * ratio)), max(width, round(columns * ratio))
        made = scaled(image, tall, wide, self.library, interp)
        top, left = (tall - height) // 2, (wide - width) // 2
        frame = Frame((wide / columns, tall / rows), (-float(left), -float(top)), (height, width))
        return made[top : top + height, left : left + width], frame


def _middle_square(image: Array) -> Array:
    """The central part that holds 87.5 % of each side."""
    rows, columns = image.shape[:2]
    top, left = round(rows * 0.0625), round(columns * 0.0625)
    return image[top : rows - top, left : columns - left]


@plugin("crop")
class Crop(PreprocessPlugin):
    """Out of the middle."""

    dims: tuple[int, ...] = param(kind_dims)
    library: str = param(kind_text, "numpy", choices=("numpy", "torchvision"))
    typecasting_required: bool = param(kind_bool, True)

    def process(self, item: Item, context: Context) -> Item:
        item = with_image(item, context)
        image, (height, width) = np.asarray(item.arrays[0]), self.dims[:2]
        rows, columns = image.shape[:2]
        if self.library == "torchvision" and (rows < height or columns < width):
            image = _padded(image, max(rows, height), max(columns, width), 0, center=True)
            rows, columns = image.shape[:2]
        if rows < height or columns < width:
            raise UsageError(f"crop: an image of {rows} by {columns} has no {height} by {width} in it")
        # torchvision rounds the corner, numpy's way is the floor
        corner = (lambda x: round(x / 2.0)) if self.library == "torchvision" else (lambda x: x // 2)
        top, left = corner(rows - height), corner(columns - width)
        return item.with_arrays([image[top : top + height, left : left + width], *item.arrays[1:]])


def _padded(image: Array, height: int, width: int, color: float, *, center: bool) -> Array:
    top = (height - image.shape[0]) // 2 if center else 0
    left = (width - image.shape[1]) // 2 if center else 0
    sheet = np.full((height, width, *image.shape[2:]), color, image.dtype)
    sheet[top : top + image.shape[0], left : left + image.shape[1]] = image
    return sheet


@plugin("pad")
class Pad(PreprocessPlugin):
    """By the same width on all sides, or up to given sizes."""

    type: str = param(kind_text, choices=("constant", "target_dims", "target-dims"))
    dims: tuple[int, ...] | None = param(kind_dims, None)
    pad_size: int | None = param(kind_int, None)
    img_position: str = param(kind_text, "center", choices=("center", "corner"))
    color: int = param(kind_int, GREY)

    def process(self, item: Item, context: Context) -> Item:
        item = with_image(item, context)
        image = np.asarray(item.arrays[0])
        rows, columns = image.shape[:2]
        if self.type == "constant":
            if self.pad_size is None:
                raise UsageError("pad: type constant needs pad_size")
            made = _padded(
                image, rows + 2 * self.pad_size, columns + 2 * self.pad_size, self.color, center=True
            )
        else:
            if self.dims is None:
                raise UsageError("pad: type target_dims needs dims")
            height, width = max(rows, self.dims[0]), max(columns, self.dims[1])
            made = _padded(image, height, width, self.color, center=self.img_position == "center")
        return item.with_arrays([made, *item.arrays[1:]])


@plugin("centernet_preproc")
class CenterNetPreprocess(PreprocessPlugin):
    """CenterNet's frame: the image around its middle, warped to the input, and normalised as CenterNet's."""

    dims: tuple[int, ...] = param(kind_dims)
    scale: float = param(kind_float, 1.0)
    fix_res: bool = param(kind_bool, True)
    pad: int = param(kind_int, 0)

    MEAN = np.array((0.408, 0.447, 0.470), np.float32)
    STD = np.array((0.289, 0.274, 0.278), np.float32)

    def process(self, item: Item, context: Context) -> Item:
        cv2 = opencv()
        item = with_image(item, context)
        image = np.asarray(item.arrays[0])[..., ::-1]  # BGR, as the network was trained
        rows, columns = image.shape[:2]
        tall, wide = int(rows * self.scale), int(columns * self.scale)
        if self.fix_res:
            height, width = self.dims[:2]
            span = max(tall, wide)
            middle = wide / 2, tall / 2
        else:
            height, width = (tall | self.pad) + 1, (wide | self.pad) + 1
            span = max(height, width)
            middle = wide // 2, tall // 2
        ratio = (width if self.fix_res else span) / span
        offset = width / 2 - middle[0] * ratio, height / 2 - middle[1] * ratio
        matrix = np.array([[ratio, 0, offset[0]], [0, ratio, offset[1]]], np.float64)
        resized = cv2.resize(np.ascontiguousarray(image), (wide, tall))
        warped = cv2.warpAffine(resized, matrix, (width, height), flags=cv2.INTER_LINEAR)
        made = (warped.astype(np.float32) / 255 - self.MEAN) / self.STD
        full = ratio * self.scale
        frame = Frame((full, full), offset, (height, width))
        return item.with_arrays([made, *item.arrays[1:]], **{FRAME: frame})
