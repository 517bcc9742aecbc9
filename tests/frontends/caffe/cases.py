"""One small network for every type of layer: parameters, inputs, weights, and who judges the numbers.

OpenCV is the judge where it has the layer as Caffe defines it; elsewhere a formula stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Formula = Callable[..., Any]  # inputs and weights to the result, or a list of several
IMAGE = (1, 4, 9, 7)


@dataclass(frozen=True, slots=True)
class Case:
    """A layer 'it' of a type; `weights` are the shapes of its blobs."""

    id: str
    kind: str
    params: str = ""
    shapes: Sequence[tuple[int, ...]] = (IMAGE,)
    weights: Sequence[tuple[int, ...]] = ()
    tops: int = 1
    formula: Formula | None = None
    positive: bool = False


def conv(params: str) -> str:
    return f"convolution_param {{ {params} }}"


def pool(params: str) -> str:
    return f"pooling_param {{ {params} }}"


def _sorted_top(x: Array) -> Array:
    return x.reshape(1, -1).argmax(1).reshape(1, 1, 1).astype(np.float32)


CASES = [
    Case("conv", "Convolution", conv("num_output: 5 kernel_size: 3"), weights=[(5, 4, 3, 3), (5,)]),
    Case("conv_hw", "Convolution",
         conv("num_output: 5 kernel_h: 3 kernel_w: 1 pad_h: 1 pad_w: 0 stride_w: 2 stride_h: 1"),
         weights=[(5, 4, 3, 1), (5,)]),
    Case("conv_no_bias", "Convolution",
         conv("num_output: 6 kernel_size: 3 pad: 2 stride: 2 bias_term: false"),
         weights=[(6, 4, 3, 3)]),
    Case("conv_dilated", "Convolution", conv("num_output: 5 kernel_size: 3 dilation: 2 pad: 2"),
         weights=[(5, 4, 3, 3), (5,)]),
    Case("conv_groups", "Convolution", conv("num_output: 6 kernel_size: 3 group: 2"),
         weights=[(6, 2, 3, 3), (6,)]),
    Case("conv_depthwise", "Convolution", conv("num_output: 4 kernel_size: 3 group: 4 pad: 1"),
         weights=[(4, 1, 3, 3), (4,)]),
    Case("deconv", "Deconvolution", conv("num_output: 3 kernel_size: 4 stride: 2 pad: 1"),
         weights=[(4, 3, 4, 4), (3,)]),
    Case("deconv_groups", "Deconvolution",
         conv("num_output: 4 kernel_size: 4 stride: 2 pad: 1 group: 4 bias_term: false"),
         weights=[(4, 1, 4, 4)]),
    Case("inner_product", "InnerProduct", "inner_product_param { num_output: 10 }",
         weights=[(10, 252), (10,)]),
    Case("inner_product_axis", "InnerProduct",
         "inner_product_param { num_output: 3 axis: 2 bias_term: false }",
         weights=[(3, 63)]),
    Case("inner_product_turned", "InnerProduct", "inner_product_param { num_output: 3 transpose: true }",
         weights=[(252, 3), (3,)], formula=lambda x, w, b: x.reshape(1, -1) @ w + b),
    Case("embed", "Embed", "embed_param { input_dim: 2 num_output: 3 }", shapes=[(1, 5)],
         weights=[(2, 3), (3,)], formula=lambda x, w, b: w[x.astype(int)] + b, positive=True),
    # -- windows
    Case("pool_max", "Pooling", pool("pool: MAX kernel_size: 3 stride: 2")),
    Case("pool_max_pad", "Pooling", pool("pool: MAX kernel_size: 2 stride: 2 pad: 1")),
    Case("pool_ave", "Pooling", pool("pool: AVE kernel_size: 3 stride: 2 pad: 1")),
    Case("pool_ave_hw", "Pooling", pool("pool: AVE kernel_h: 2 kernel_w: 3 stride_h: 2 stride_w: 1")),
    Case("pool_floor", "Pooling", pool("pool: MAX kernel_size: 2 stride: 2 ceil_mode: false")),
    Case("pool_global", "Pooling", pool("pool: AVE global_pooling: true")),
    Case("pool_global_max", "Pooling", pool("pool: MAX global_pooling: true")),
    Case("roi_pooling", "ROIPooling", "roi_pooling_param { pooled_h: 3 pooled_w: 2 spatial_scale: 0.5 }",
         shapes=[IMAGE, (2, 5)]),
    Case("interp", "Interp", "interp_param { height: 17 width: 13 }"),
    Case("interp_zoom", "Interp", "interp_param { zoom_factor: 2 }"),
    Case("upsample", "Upsample", "upsample_param { scale: 2 }",
         formula=lambda x: x.repeat(2, 2).repeat(2, 3)),
    # -- norms
    Case("batch_norm", "BatchNorm", "batch_norm_param { eps: 0.001 use_global_stats: true }",
         weights=[(4,), (4,), (1,)]),
    Case("scale", "Scale", "scale_param { bias_term: true }", weights=[(4,), (4,)]),
    Case("scale_axes", "Scale", "scale_param { axis: 2 num_axes: 2 }", weights=[(9, 7)],
         formula=lambda x, w: x * w),
    Case("scale_bottoms", "Scale", "scale_param { axis: 0 }", shapes=[IMAGE, (1, 4)],
         formula=lambda x, by: x * by[:, :, None, None]),
    Case("bias", "Bias", "", weights=[(4,)], formula=lambda x, b: x + b[:, None, None]),
    Case("mvn", "MVN", "mvn_param { normalize_variance: true }"),
    Case("mvn_mean", "MVN", "mvn_param { normalize_variance: false }"),
    Case("mvn_across", "MVN", "mvn_param { across_channels: true }"),
    Case("normalize", "Normalize", "norm_param { across_spatial: false channel_shared: false }",
         weights=[(4,)]),
    Case("normalize_all", "Normalize", "norm_param { across_spatial: true channel_shared: true }",
         weights=[(1,)]),
    Case("lrn", "LRN", "lrn_param { local_size: 5 alpha: 0.5 beta: 0.75 }"),
    Case("lrn_within", "LRN", "lrn_param { local_size: 3 alpha: 0.5 beta: 0.5 norm_region: WITHIN_CHANNEL }"),
    # -- number by number
    Case("relu", "ReLU"),
    Case("leaky_relu", "ReLU", "relu_param { negative_slope: 0.1 }"),
    Case("relu6", "ReLU6", formula=lambda x: np.clip(x, 0, 6)),
    Case("prelu", "PReLU", weights=[(4,)]),
    Case("prelu_shared", "PReLU", "prelu_param { channel_shared: true }", weights=[(1,)],
         formula=lambda x, a: np.where(x > 0, x, a * x)),
    Case("elu", "ELU", "elu_param { alpha: 0.5 }"),
    Case("sigmoid", "Sigmoid"),
    Case("tanh", "TanH"),
    Case("abs", "AbsVal"),
    Case("bnll", "BNLL"),
    Case("swish", "Swish", formula=lambda x: x / (1 + np.exp(-x))),
    Case("mish", "Mish"),
    Case("hard_swish", "HardSwish"),
    Case("clip", "Clip", "clip_param { min: -0.5 max: 0.25 }", formula=lambda x: np.clip(x, -0.5, 0.25)),
    Case("threshold", "Threshold", "threshold_param { threshold: 0.25 }",
         formula=lambda x: (x > 0.25).astype(np.float32)),
    Case("power", "Power", "power_param { power: 2 scale: 0.5 shift: 1 }"),
    Case("power_half", "Power", "power_param { power: 0.5 scale: 2 shift: 1 }", positive=True),
    Case("exp", "Exp", "exp_param { base: 2 scale: 0.5 shift: 0.25 }"),
    Case("log", "Log", "log_param { base: 10 shift: 1.5 }", positive=True,
         formula=lambda x: np.log10(x + 1.5)),
    Case("dropout", "Dropout", "dropout_param { dropout_ratio: 0.5 }"),
    Case("softmax", "Softmax", "softmax_param { axis: 1 }"),
    Case("eltwise_sum", "Eltwise", "", shapes=[IMAGE, IMAGE, IMAGE]),
    Case("eltwise_coeff", "Eltwise", "eltwise_param { operation: SUM coeff: 0.5 coeff: -2 }",
         shapes=[IMAGE, IMAGE]),
    Case("eltwise_prod", "Eltwise", "eltwise_param { operation: PROD }", shapes=[IMAGE, IMAGE]),
    Case("eltwise_max", "Eltwise", "eltwise_param { operation: MAX }", shapes=[IMAGE, IMAGE]),
    # -- shapes
    Case("concat", "Concat", "concat_param { axis: 1 }", shapes=[IMAGE, (1, 2, 9, 7)]),
    Case("concat_default", "Concat", "", shapes=[IMAGE, IMAGE]),
    Case("slice", "Slice", "slice_param { axis: 1 slice_point: 1 slice_point: 3 }", tops=3,
         formula=lambda x: np.split(x, [1, 3], 1)),
    Case("slice_even", "Slice", "slice_param { slice_dim: 1 }", tops=2,
         formula=lambda x: np.split(x, 2, 1)),
    Case("split", "Split", tops=2, formula=lambda x: [x, x]),
    Case("crop", "Crop", "crop_param { axis: 2 offset: 2 offset: 1 }", shapes=[IMAGE, (1, 4, 5, 4)]),
    Case("permute", "Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }"),
    Case("flatten", "Flatten", "flatten_param { axis: 1 }"),
    Case("flatten_end", "Flatten", "flatten_param { axis: 1 end_axis: 2 }"),
    Case("reshape", "Reshape", "reshape_param { shape { dim: 0 dim: 2 dim: -1 dim: 7 } }"),
    Case("reshape_axis", "Reshape", "reshape_param { shape { dim: 3 dim: 3 } axis: 2 num_axes: 1 }",
         formula=lambda x: x.reshape(1, 4, 3, 3, 7)),
    Case("tile", "Tile", "tile_param { axis: 1 tiles: 3 }", formula=lambda x: np.tile(x, (1, 3, 1, 1))),
    Case("shuffle", "ShuffleChannel", "shuffle_channel_param { group: 2 }"),
    Case("reduction", "Reduction", "reduction_param { operation: MEAN axis: 1 coeff: 2 }",
         formula=lambda x: 2 * x.reshape(1, -1).mean(1)),
    Case("reduction_sumsq", "Reduction", "reduction_param { operation: SUMSQ axis: 2 }",
         formula=lambda x: (x * x).sum((2, 3))),
    Case("argmax", "ArgMax", "argmax_param { axis: 1 }",
         formula=lambda x: x.argmax(1, keepdims=True).astype(np.float32)),
    Case("argmax_all", "ArgMax", "", formula=_sorted_top),
    # -- detectors
    Case("prior_box", "PriorBox",
         "prior_box_param { min_size: 30 max_size: 60 aspect_ratio: 2 aspect_ratio: 3 flip: true clip: true"
         " variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 step: 16 offset: 0.5 }",
         shapes=[(1, 2, 5, 6), (1, 3, 100, 120)]),
    Case("prior_box_plain", "PriorBox",
         "prior_box_param { min_size: 30 aspect_ratio: 2 flip: false clip: false variance: 0.1 }",
         shapes=[(1, 2, 5, 6), (1, 3, 100, 120)]),
]  # fmt: skip
