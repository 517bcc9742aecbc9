"""Causes of a layer's error, each with what is wrong and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Cause:
    """A kind of cause. `remedy` is what the user changes; `recipe` is what `--fix` writes, if anything."""

    id: str
    title: str
    remedy: str
    recipe: str = ""
    severe: bool = True


CAUSES: dict[str, Cause] = {
    cause.id: cause
    for cause in (
        Cause(
            "saturation",
            "values beyond the range of the encoding are cut off",
            "give the tensor the range that its values have: leave it out of the overrides, or calibrate with"
            " more data (--act_quantizer_calibration min-max)",
            "encoding",
        ),
        Cause(
            "wrong-offset",
            "the encoding has the right step and lies in the wrong place",
            "correct the offset of the encoding (offset = -zero_point), or leave it to calibration",
            "encoding",
        ),
        Cause(
            "range-too-wide",
            "the encoding reaches much further than the values, which use few of its steps",
            "give the tensor the range that its values have: leave it out of the overrides",
            "encoding",
        ),
        Cause(
            "outliers",
            "few values need most of the range, and the others share what is left of the steps",
            "16 bits for this node, or --act_quantizer_calibration percentile, or --algorithms smoothquant",
            "16 bits",
            severe=False,
        ),
        Cause(
            "few-steps",
            "the values need finer steps than their width has",
            "16 bits for this node: --target_sqnr chooses such nodes",
            "16 bits",
            severe=False,
        ),
        Cause(
            "zero-not-exact",
            "the range does not hold zero: padding and Relu need it",
            "widen the range of the encoding to zero",
            "encoding",
        ),
        Cause(
            "shared-encoding",
            "the encoding is that of another tensor, whose values have another size",
            "give each tensor its own encoding: leave it out of the overrides",
            "encoding",
        ),
        Cause(
            "missing-encoding",
            "the layer computes in floating point between others in fixed point: its encodings are missing",
            "add encodings of its tensors to the overrides, or calibrate with data",
            "encoding",
            severe=False,
        ),
        Cause(
            "few-weight-bits",
            "the weights have fewer bits than those of the other layers",
            "8 bits for these weights, or --block_size 32 for weights of 4 bits",
            "weights",
        ),
        Cause(
            "channel-spread",
            "channels of far-apart size share one scale",
            "--use_per_channel_quantization, or --algorithms cle",
            severe=False,
        ),
        Cause(
            "weights-differ",
            "the weights are not those of the source model",
            "convert the model again; look for weights that were changed or read in another order",
            "weights",
        ),
        Cause(
            "missing-bias",
            "the layer has lost its bias",
            "convert the model again with its bias; an override of the bias must not be empty",
            "weights",
        ),
        Cause(
            "bias-overflow",
            "the bias is larger than its integers hold",
            "--bias_bw 32, or 16 bits for the data of this layer",
            "16 bits",
        ),
        Cause(
            "bias-differs", "the bias is not that of the source model", "convert the model again", "weights"
        ),
        Cause(
            "half-overflow",
            "values are beyond 65504, the largest number of half precision",
            "16-bit fixed point for this node, or float32, or scale the values down in the model",
            "16 bits",
        ),
        Cause(
            "half-underflow",
            "values are below the least number that half precision tells from zero",
            "16-bit fixed point for this node, or scale the values up in the model",
            "16 bits",
        ),
        Cause(
            "axis-order",
            "the numbers are right and lie in another order: axes or operands are swapped",
            "check layouts (--input_layout), the axis of the op and the order of its operands",
        ),
        Cause(
            "parameters-differ",
            "the node has other parameters than in the source model",
            "convert the model again; compare both with openqnn diff",
        ),
        Cause(
            "input-normalisation",
            "the data are scaled otherwise than those that the input's encoding was found with",
            "prepare the data as for training (mean, scale), or calibrate with the application's data",
            "encoding",
        ),
        Cause(
            "library-fault",
            "libQnnHtp is known to compute this form wrongly: the simulation does not",
            "quantize the source model with openqnn quantize, which writes another form; --confirm runs it",
            severe=False,
        ),
        Cause(
            "arithmetic",
            "the layer computes something else than its numbers say",
            "report it with openqnn reduce, and give the node 16 bits or floating point",
            "16 bits",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause found at a tensor, with the numbers that speak for it; `strength` in dB over what is usual."""

    cause: Cause
    tensor: str
    detail: str
    strength: float

    def record(self) -> dict[str, Any]:
        return {
            "cause": self.cause.id,
            "tensor": self.tensor,
            "title": self.cause.title,
            "detail": self.detail,
            "remedy": self.cause.remedy,
            "decibels": None if self.strength in (float("inf"), float("-inf")) else round(self.strength, 2),
        }
