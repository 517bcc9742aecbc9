"""Which kernel of HTP computes each op in fixed point: what the built-in backend follows to simulate HTP.

An op that is not here is computed in real numbers and rounded, which is what HTP does with it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from openqnn.ir import Encoding, Node, Value
from openqnn.ops.elementwise import stands_for
from openqnn.ops.onnx_writer import Body
from openqnn.runtime.cpu.arithmetic import Arithmetic, Compute, Kernel
from openqnn.targets.htp.kernels import layers
from openqnn.targets.htp.kernels.bytes import add_multiply as bytes_pairs
from openqnn.targets.htp.kernels.bytes import fused_activations, half, norms, requantize
from openqnn.targets.htp.kernels.bytes.products import averaged
from openqnn.targets.htp.kernels.words import add_multiply as words_pairs
from openqnn.targets.htp.kernels.words import (
    arcsine,
    curves,
    divide,
    grid_sample,
    logarithm,
    reduce,
    roi_align,
    roots,
    to_bytes,
    trigonometry,
)
from openqnn.targets.htp.kernels.words.curves import by_table, first_of
from openqnn.targets.htp.kernels.words.products import behind_layer, wide_prelu
from openqnn.targets.htp.limits import joins_layer


def _sum(sign: int) -> Kernel:
    return lambda n, b, x, compute: words_pairs.total(n, b, x, sign) or bytes_pairs.total(n, b, x, sign)


def _to_half(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    """Between bytes and half precision."""
    return half.widened(b, x[0], n.x(0), n.out) or half.rounded(b, x[0], n.x(0), n.out)


def _convert(n: Node, b: Body, x: Sequence[str], compute: Compute) -> str | None:
    return to_bytes.narrowed(n, b, x) or requantize.changed(n, b, x) or _to_half(n, b, x, compute)


KERNELS: Final[Mapping[str, Kernel]] = {
    "Batchnorm": layers.channels,
    "Concat": requantize.joined,
    "Conv1d": layers.convolution,
    "Conv2d": layers.convolution,
    "Conv3d": layers.convolution,
    "Convert": _convert,
    "DepthWiseConv1d": layers.depthwise,
    "DepthWiseConv2d": layers.depthwise,
    "Dequantize": _to_half,
    "ElementWiseAdd": _sum(1),
    "ElementWiseAsin": arcsine.asin,
    "ElementWiseAtan": by_table(trigonometry.atan),
    "ElementWiseCos": by_table(trigonometry.cos),
    "ElementWiseDivide": divide.divide,
    "ElementWiseExp": by_table(curves.exp),
    "ElementWiseFloorDiv": divide.floor_divide,
    "ElementWiseLog": by_table(logarithm.logarithm),
    "ElementWiseMultiply": first_of(words_pairs.multiply, bytes_pairs.times),
    "ElementWiseRsqrt": roots.reciprocal_root,
    "ElementWiseSin": by_table(trigonometry.sin),
    "ElementWiseSoftplus": by_table(curves.softplus),
    "ElementWiseSquareRoot": by_table(roots.square_root),
    "ElementWiseSquaredDifference": first_of(curves.squared, bytes_pairs.squared),
    "ElementWiseSubtract": _sum(-1),
    "Elu": by_table(curves.elu),
    "FullyConnected": layers.rows,
    "Gelu": by_table(curves.gelu),
    "GridSample": grid_sample.grid_sample,
    "HARD_SIGMOID": by_table(curves.hard_sigmoid),  # no op of its own: an operation of ElementWiseNeuron
    "HardSwish": first_of(behind_layer, by_table(curves.hard_swish), fused_activations.hard_swish),
    "L2Norm": norms.l2_norm,
    "LayerNorm": norms.layer_norm,
    "LogSoftmax": logarithm.log_softmax,
    "MatMul": first_of(curves.product, bytes_pairs.matrices, layers.rows),
    "Prelu": first_of(wide_prelu, fused_activations.prelu),
    "Quantize": _to_half,
    "ReduceMean": first_of(averaged, reduce.mean),
    "ReduceSum": reduce.total,
    "Relu": fused_activations.clipped,
    "Resize": requantize.resized,
    "ResizeBilinear": requantize.between,
    "RmsNorm": norms.rms_norm,
    "RoiAlign": roi_align.roi_align,
    "Sigmoid": first_of(curves.sigmoid_table, bytes_pairs.gate),
    "Softmax": first_of(curves.softmax, norms.softmax),
    "Tanh": by_table(curves.tanh),
    "TransposeConv1d": layers.transposed_convolution,
    "TransposeConv2d": layers.transposed_convolution,
    "TransposeConv3d": layers.transposed_convolution,
}
BY_PLACE: Final[Mapping[str, Callable[[Node], bool]]] = {
    "ElementWiseAsin": arcsine.by_place,
    "ReduceMean": reduce.by_place,
}


class HtpArithmetic(Arithmetic):
    """The kernels of HTP, by the op that a node is or stands for."""

    def kernel(self, node: Node) -> Kernel | None:
        return KERNELS.get(stands_for(node))

    def by_place(self, node: Node) -> bool:
        found = BY_PLACE.get(stands_for(node))
        return found is not None and found(node)

    def joins_layer(self, node: Node) -> bool:
        return joins_layer(node)

    def copies(self, node: Node) -> bool:
        return requantize.copies(node)

    def concatenates(self, node: Node) -> bool:
        return requantize.is_joined(node)

    def sources(self, node: Node) -> Sequence[Value]:
        return requantize.sources(node)

    def is_direct(self, value: Value, wanted: Encoding) -> bool:
        return requantize.is_direct(value, wanted)


ARITHMETIC: Final = HtpArithmetic()
