"""The plugin lprnet_predict: the text of a licence plate from LPRNet's scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from openqnn.errors import InputError
from openqnn.evaluation.plugins.plugin import Context, PostprocessPlugin, Result, plugin

PROVINCES = "京沪津渝冀晋蒙辽吉黑苏浙皖闽赣鲁豫鄂湘粤桂琼川贵云藏陕甘青宁新"
ALPHABET = PROVINCES + "0123456789ABCDEFGHJKLMNPQRSTUVWXYZIO-"
"""LPRNet's characters in the order of its classes; the last one stands for none."""


@plugin("lprnet_predict")
class LprnetPredict(PostprocessPlugin):
    """The best class of each column, repetitions and blanks left out."""

    def process(self, result: Result, context: Context) -> Result:
        scores: Any = np.asarray(result.arrays[0])
        scores = scores.reshape(scores.shape[-2:]) if scores.ndim >= 2 else scores
        if scores.ndim != 2 or len(ALPHABET) not in scores.shape:
            raise InputError(
                f"lprnet_predict: an output of shape {list(result.arrays[0].shape)} has no"
                f" {len(ALPHABET)} classes"
            )
        best: list[int] = scores.argmax(axis=0 if scores.shape[0] == len(ALPHABET) else 1).tolist()
        blank = len(ALPHABET) - 1
        kept = [b for b, before in zip(best, [blank, *best], strict=False) if b not in (blank, before)]
        return Result(result.item, result.arrays, "".join(ALPHABET[b] for b in kept))
