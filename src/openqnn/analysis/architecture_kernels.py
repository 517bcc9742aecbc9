"""Rules about ops that HTP has slow kernels for, each with what libQnnHtp's own cost model says of it.

Figures in reasons are cycles on QCS9100 at 56x56 and 64 channels unless another shape is named, 8 bits first.
`tests/analysis/test_architecture_effects.py` asks the library for them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from openqnn.analysis.architecture_rule import VTCM_BYTES, Inspected, Rule, numbers
from openqnn.qnn.net import NetNode, TensorKind

DEPTHWISE = "DepthWiseConv2d"
MEAN = "ReduceMean"
SLICE = "StridedSlice"
GATHER = "Gather"
LARGE_KERNEL = 7
THIN = 4
MANY_NUMBERS = 64 << 10
LANES = 32
ROWS = 8
FEW_ROWS = 32
CURVES = ("Relu", "Sigmoid", "Tanh", "HardSwish", "Gelu", "Elu")
SUMS = ("ElementWiseAdd", "ElementWiseMultiply", "ElementWiseSubtract", "ElementWiseMaximum")


def _many_filters(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named(DEPTHWISE):
        data = seen.tensor(node, 0)
        if data is not None and 1 < data.dims[-1] < seen.output(node).dims[-1]:
            yield node


def _large_kernels(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named("Conv2d"):
        weights = seen.tensor(node, 1)
        if weights is not None and not seen.is_wide(node) and max(weights.dims[:2]) > LARGE_KERNEL:
            yield node


def _dilated(seen: Inspected) -> Iterator[NetNode]:
    return (node for node in seen.named("Conv2d") if max(numbers(node, "dilation"), default=1) > 1)


def _half_filled_lanes(seen: Inspected) -> Iterator[NetNode]:
    """Convolutions in 16 bits of 33 to 63 channels on both sides."""
    for node in seen.named("Conv2d"):
        data = seen.tensor(node, 0)
        if data is None or not seen.is_wide(node):
            continue
        if all(LANES < dims[-1] < 2 * LANES for dims in (data.dims, seen.output(node).dims)):
            yield node


def _inner_softmax(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named("Softmax"):
        last = len(seen.output(node).dims) - 1
        if any(axis != last for axis in numbers(node, "axis")):
            yield node


def slice_strides(node: NetNode) -> tuple[int, ...]:
    """The stride of each axis; ranges hold begin, end and stride by turns."""
    return numbers(node, "ranges")[2::3]


def _strided_slices(seen: Inspected) -> Iterator[NetNode]:
    """Slices with a stride; of each second pixel in both directions, they are fast."""
    for node in seen.named(SLICE):
        strides = slice_strides(node)
        if any(stride > 1 for stride in strides) and strides != (1, 2, 2, 1):
            yield node


def _gathered_channels(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named(GATHER):
        data = seen.tensor(node, 0)
        if data is not None and len(data.dims) > 1 and numbers(node, "axis") == (len(data.dims) - 1,):
            yield node


def _channel_means(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named(MEAN):
        data = seen.tensor(node, 0)
        if data is not None and not seen.is_wide(node) and numbers(node, "axes") == (len(data.dims) - 1,):
            yield node


def _thin(seen: Inspected) -> Iterator[NetNode]:
    """Ops on each number of large tensors with hardly any channels."""
    for node in seen.named(*CURVES, *SUMS):
        dims = seen.output(node).dims
        if dims and dims[-1] <= THIN and prod(dims) >= MANY_NUMBERS:
            yield node


def _joined_curves(seen: Inspected) -> Iterator[NetNode]:
    convolved = {node.outputs[0] for node in seen.named("Conv2d")}
    return (node for node in seen.named("Gelu") if node.inputs[0] in convolved)


def _computed_products(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named("MatMul"):
        other = seen.tensor(node, 1)
        if (
            other is not None
            and other.kind is not TensorKind.STATIC
            and numbers(node, "transpose_in1") == (1,)
        ):
            yield node


def _max_pools(seen: Inspected) -> Iterator[NetNode]:
    return seen.named("PoolMax2d")


def _uneven_resizes(seen: Inspected) -> Iterator[NetNode]:
    for node in seen.named("ResizeBilinear"):
        data = seen.tensor(node, 0)
        if data is None or seen.is_wide(node):
            continue
        sides = zip(seen.output(node).dims[1:3], data.dims[1:3], strict=True)
        if numbers(node, "align_corners") == (1,) or any(out % side for out, side in sides):
            yield node


def _odd_rows(seen: Inspected) -> Iterator[NetNode]:
    """Products of constant weights with a single row of positions."""
    for node in seen.named("MatMul", "FullyConnected", "Conv2d"):
        data, weights = seen.tensor(node, 0), seen.tensor(node, 1)
        if data is None or weights is None or seen.is_wide(node) or weights.kind is not TensorKind.STATIC:
            continue
        outer, rows = data.dims[:-2], data.dims[-2:-1]
        if prod(outer) == prod(weights.dims[:-2]) == 1 and any(n > FEW_ROWS and n % ROWS for n in rows):
            yield node


def _spilling(seen: Inspected) -> Iterator[NetNode]:
    """Layers and sums whose activations are beyond the fast memory; a float counts as one byte."""
    for node in seen.named("Conv2d", *SUMS):
        names = [n for n in (*node.inputs, *node.outputs) if n is not None]
        held = [t for n in names if (t := seen.net.tensors[n]).kind is not TensorKind.STATIC]
        if sum(prod(t.dims) for t in held) * (2 if seen.is_wide(node) else 1) > VTCM_BYTES:
            yield node


KERNEL_RULES = (
    Rule(
        "openqnn.depth_multiplier",
        "A depthwise convolution makes several channels of each (64 to 128 channels: 59,375,710 cycles, "
        "at 16 bits 141,296; a Conv2d of as many 42,702 and 75,427).",
        "Use a Conv2d, or repeat the channels by Concat in front of a depthwise convolution (45,291 cycles).",
        _many_filters,
        "it becomes a Conv2d of the same filters, zero between channels, in float graphs",
    ),
    Rule(
        "openqnn.large_kernel",
        "A kernel is larger than 7x7, which is slow at 8 bits (9x9: 1,210,399 cycles, "
        "7x7: 75,144; four of 3x3, which see as far, 49,754).",
        "Stack convolutions of 3x3.",
        _large_kernels,
    ),
    Rule(
        "openqnn.dilation",
        "A convolution is dilated (by 2: 74,297 cycles against 27,115, at 16 bits 101,257 against 60,784).",
        "Use convolutions without dilation: three of 3x3 see farther, and take 41,994 cycles.",
        _dilated,
    ),
    Rule(
        "openqnn.channels_wide",
        "A convolution at 16 bits has 33 to 63 channels on both sides (48: 92,448 cycles, 64: 60,784).",
        "Use 64 channels: more of them take less time. At 8 bits it is the other way (20,700 and 27,115).",
        _half_filled_lanes,
    ),
    Rule(
        "openqnn.softmax_axis",
        "A Softmax is not over the last axis (504,567 cycles against 44,138, at 16 bits 612,695 "
        "against 92,951).",
        "Arrange the network so that its classes, or keys, are the last axis.",
        _inner_softmax,
    ),
    Rule(
        "openqnn.strided_slice",
        "A slice has a stride that is not 2 in height and width together (channels by 2: 940,119 cycles, "
        "height by 2: 1,087,563, both by 3: 373,298, both by 2: 48,417).",
        "Of channels, use a 1x1 convolution that selects (16,478 cycles), or order the channels so that no "
        "stride is needed (49,828). Of an image, give the layer before it the stride.",
        _strided_slices,
        "a slice of channels becomes a Conv2d of 1x1 that selects them, in float graphs",
    ),
    Rule(
        "openqnn.gather_channels",
        "Positions of the last axis are gathered (32 of 64 channels: 857,983 cycles; of the height 95,222).",
        "Use a 1x1 convolution that selects (16,478 cycles), or order the channels of the layer before.",
        _gathered_channels,
        "a gather of constant channels becomes a Conv2d of 1x1 that selects them, in float graphs",
    ),
    Rule(
        "openqnn.channel_mean",
        "A mean over channels is slow at 8 bits (68,349 cycles; a 1x1 convolution of equal weights 13,414). "
        "At 16 bits it is not (17,393 against 23,993).",
        "Use a 1x1 convolution whose weights are one divided by the channels.",
        _channel_means,
        "of four dimensions that are kept it becomes a Conv2d of 1x1, in float graphs",
    ),
    Rule(
        "openqnn.thin",
        "An op on each number of a large tensor has four channels or fewer in its last axis (a Sigmoid of "
        "200,704 numbers: 70,728 cycles with 1 channel, 22,565 with 4, 15,498 with 8).",
        "Do it before the channels are reduced, or fold space to depth first.",
        _thin,
    ),
    Rule(
        "openqnn.joined_gelu",
        "A Gelu stands behind a convolution (37,807 cycles together; with HardSwish 28,493, Relu 27,115).",
        "Train with HardSwish or Relu: alone all take the same, but Gelu is not free behind a layer.",
        _joined_curves,
    ),
    Rule(
        "openqnn.transposed_operand",
        "A product of two computed matrices transposes its second (256x256: 56,132 cycles against 34,887, "
        "at 16 bits 88,097 against 61,678).",
        "Have the operand computed in the order that the product reads: rows of the inner size.",
        _computed_products,
    ),
    Rule(
        "openqnn.max_pool",
        "A maximum pool takes more than a convolution (3x3 of stride 2: 54,863 cycles; a convolution of that "
        "stride 18,942, an average pool 18,318).",
        "Give the convolution before it the stride, or use an average pool.",
        _max_pools,
    ),
    Rule(
        "openqnn.resize_factor",
        "A bilinear resize at 8 bits has a factor that is not whole, or aligned corners (56 to 100: 331,133 "
        "cycles, aligned to 112: 370,272; to 112 with half pixels 72,473).",
        "Resize by a whole factor with half_pixel_centers.",
        _uneven_resizes,
    ),
    Rule(
        "openqnn.odd_rows",
        "A product with constant weights has rows that are no multiple of 8, as the 197 tokens of a vision "
        "transformer (by 384x384: 197 rows 86,875 cycles, 200 rows 22,512). At 16 bits it costs nothing.",
        "Pad the rows, once at the beginning of the network, to a multiple of 8.",
        _odd_rows,
    ),
    Rule(
        "openqnn.spill",
        "The activations of a node are beyond 8 MB, the fast memory of most chips (two convolutions and "
        "a sum around them at 512x512x64: 6,780,351 cycles, 16 tiles of 128x128 together 3,170,496).",
        "Use a smaller image or fewer channels here, or cut the image into tiles.",
        _spilling,
    ),
)
