"""The plugin image_transformers_input: images, and texts beside them, for models such as ViT and CLIP."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openqnn.errors import UsageError
from openqnn.evaluation.plugins.image_sizes import scaled
from openqnn.evaluation.plugins.images import with_image
from openqnn.evaluation.plugins.parameter_kinds import kind_bool, kind_dims, kind_int
from openqnn.evaluation.plugins.plugin import FILE, Context, Item, PreprocessPlugin, param, plugin
from openqnn.ir import Array

MEAN = np.array((0.48145466, 0.4578275, 0.40821073), np.float32)
STD = np.array((0.26862954, 0.26130258, 0.27577711), np.float32)


@plugin("image_transformers_input")
class ImageTransformersInput(PreprocessPlugin):
    """The shorter side to the target, cut out of the middle, normalised as CLIP's, channels first.

    Unless image_only, the second file of an item holds token ids as raw int64, class after class: the first
    num_base_class classes with num_prompt prompts each are the second input.
    """

    dims: tuple[int, ...] = param(kind_dims)
    num_base_class: int | None = param(kind_int, None, only=FILE)
    num_prompt: int | None = param(kind_int, None, only=FILE)
    image_only: bool = param(kind_bool, False, in_memory=True)

    def process(self, item: Item, context: Context) -> Item:
        item = with_image(item, context)
        height, width = self.dims[-2:]
        arrays: list[Array] = [self._image(np.asarray(item.arrays[0]), height, width)]
        if not self.image_only:
            if len(item.files) < 2:
                raise UsageError(
                    "image_transformers_input: a line of the input list names no text",
                    hint="image_only: True",
                )
            arrays.append(self._text(np.fromfile(context.dataset.path(item.files[1]), np.int64)))
        return item.with_arrays(arrays)

    def _image(self, image: Array, height: int, width: int) -> Array:
        rows, columns = image.shape[:2]
        ratio = max(height / rows, width / columns)
        made = scaled(
            image, max(height, round(rows * ratio)), max(width, round(columns * ratio)), "pillow", "bicubic"
        )
        top, left = (made.shape[0] - height) // 2, (made.shape[1] - width) // 2
        cut = made[top : top + height, left : left + width].astype(np.float32) / 255
        return np.ascontiguousarray(((cut - MEAN) / STD).transpose(2, 0, 1)[None])

    def _text(self, ids: Array) -> Array:
        """Rows of 77 tokens, CLIP's length."""
        rows: Array = ids.reshape(-1, 77) if ids.size % 77 == 0 else ids.reshape(1, -1)
        counts: Sequence[int | None] = (self.num_base_class, self.num_prompt)
        if counts[0] is None:
            return rows
        prompts = counts[1] or max(1, len(rows) // counts[0])
        return rows[: counts[0] * prompts]
