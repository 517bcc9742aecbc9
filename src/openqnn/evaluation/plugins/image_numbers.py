"""Plugins that change the numbers and axes of images: normalize, convert_nchw, expand_dims."""

from __future__ import annotations

import numpy as np

from openqnn.errors import UsageError
from openqnn.evaluation.plugins.images import with_image
from openqnn.evaluation.plugins.parameter_kinds import kind_bool, kind_float, kind_rgb, kind_text
from openqnn.evaluation.plugins.plugin import Context, Item, PreprocessPlugin, param, plugin


@plugin("normalize")
class Normalize(PreprocessPlugin):
    """Divided by a factor, less means, divided by deviations, for images with channels last.

    With library torchvision the factor is 255 where bytes become a tensor, whatever `norm` says, and the
    result has channels first, as torchvision's.
    """

    library: str = param(kind_text, "numpy", choices=("numpy", "torchvision"))
    norm: float = param(kind_float, 255.0)
    means: tuple[float, ...] = param(kind_rgb, (0.0, 0.0, 0.0))
    std: tuple[float, ...] = param(kind_rgb, (1.0, 1.0, 1.0))
    channel_order: str = param(kind_text, "RGB", choices=("RGB", "BGR"))
    normalize_first: bool = param(kind_bool, True)
    typecasting_required: bool = param(kind_bool, True)
    pil_to_tensor_input: bool = param(kind_bool, True)

    def process(self, item: Item, context: Context) -> Item:
        item = with_image(item, context)
        image = np.asarray(item.arrays[0], np.float32)
        if image.shape[-1] != 3 and (any(self.means) or set(self.std) != {1.0}):
            raise UsageError(
                f"normalize: an image of shape {list(image.shape)} has no three channels last",
                hint="convert_nchw comes behind normalize",
            )
        order = slice(None, None, -1) if self.channel_order == "BGR" else slice(None)
        means, std = (np.asarray(v, np.float32)[order] for v in (self.means, self.std))
        if image.shape[-1] != 3:
            means, std = np.zeros(1, np.float32), np.ones(1, np.float32)
        if self.library == "torchvision":
            scaled = image / np.float32(255) if self.pil_to_tensor_input else image
            made = ((scaled - means) / std).transpose(2, 0, 1)
        elif self.normalize_first:
            made = (image / np.float32(self.norm) - means) / std
        else:
            made = (image - means) / std / np.float32(self.norm)
        return item.with_arrays([np.ascontiguousarray(made, np.float32), *item.arrays[1:]])


@plugin("convert_nchw")
class ConvertNchw(PreprocessPlugin):
    """Channels last to channels first, or back, with an axis for the batch."""

    expand_dims: bool = param(kind_bool, True)

    def process(self, item: Item, context: Context) -> Item:
        item = with_image(item, context)
        image = np.asarray(item.arrays[0])
        if image.ndim != 3:
            raise UsageError(f"convert_nchw: an array of shape {list(image.shape)} is no image")
        first = image.shape[0] in (1, 3, 4) and image.shape[-1] not in (1, 3, 4)
        made = np.ascontiguousarray(image.transpose((1, 2, 0) if first else (2, 0, 1)))
        return item.with_arrays([made[None] if self.expand_dims else made, *item.arrays[1:]])


@plugin("expand_dims")
class ExpandDims(PreprocessPlugin):
    """An axis for the batch in front."""

    def process(self, item: Item, context: Context) -> Item:
        item = with_image(item, context)
        return item.with_arrays([np.asarray(item.arrays[0])[None], *item.arrays[1:]])
