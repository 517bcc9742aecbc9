"""Convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

from tests.ops.database import Case, case, f, w

ZERO = ((0, 0), (0, 0))
ONE = ((1, 1), (1, 1))
ZERO3 = ((0, 0),) * 3
CONV1D = "Conv1d addresses the filter wrongly unless it has one output channel"
DECONV1D = "TransposeConv1d gives wrong numbers in every form"


def onnx_conv(kind: str, to_onnx: tuple[int, ...], **attrs: Any) -> Any:
    """A judge that moves to ONNX's axis order and back by numpy and lets ONNX Runtime convolve."""

    def judge(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        arrays = {"x": np.moveaxis(x, -1, 1), "w": weight.transpose(to_onnx), "b": bias}
        feeds = {k: np.ascontiguousarray(v) for k, v in arrays.items() if v is not None}
        infos = [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in feeds.items()]
        node = helper.make_node(kind, list(feeds), ["y"], **attrs)
        out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * x.ndim)
        model = helper.make_model(
            helper.make_graph([node], "g", infos, [out]),
            opset_imports=[helper.make_opsetid("", 21)],
            ir_version=10,
        )
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return np.moveaxis(session.run(None, feeds)[0], 1, -1)

    return judge


CASES: list[Case] = [
    case("Conv1d", f(1, 9, 3), w(3, 3, 1), w(1), stride=2, pad_amount=(1, 1), label="one_filter"),
    case(
        "Conv1d",
        f(2, 9, 4),
        w(3, 2, 6),
        w(6),
        stride=1,
        pad_amount=(1, 2),
        group=2,
        dilation=2,
        xfail=CONV1D,
        expect=onnx_conv("Conv", (2, 1, 0), strides=[1], pads=[1, 2], group=2, dilations=[2]),
    ),
    case("Conv2d", f(1, 8, 8, 3), w(3, 3, 3, 4), w(4), stride=(1, 1), pad_amount=ONE),
    case(
        "Conv2d",
        f(2, 9, 7, 4),
        w(3, 2, 2, 6),
        stride=(2, 1),
        pad_amount=((0, 1), (2, 0)),
        group=2,
        label="group",
    ),
    case("Conv2d", f(1, 9, 9, 2), w(3, 3, 2, 3), w(3), stride=(1, 1), pad_amount=ZERO, dilation=(2, 3)),
    case("Conv2d", f(1, 8, 8, 3), f(3, 3, 3, 4), f(4), stride=(1, 1), pad_amount=ONE, label="dynamic_weight"),
    case(
        "Conv3d",
        f(1, 5, 6, 7, 2),
        w(3, 2, 3, 2, 4),
        w(4),
        stride=(1, 2, 1),
        pad_amount=((1, 1), (0, 1), (1, 0)),
    ),
    case(
        "Conv3d",
        f(2, 4, 4, 4, 4),
        w(2, 2, 2, 2, 4),
        stride=(1, 1, 1),
        pad_amount=ZERO3,
        group=2,
        label="group",
    ),
    case("DepthWiseConv1d", f(1, 9, 4), w(3, 1, 4), w(4), stride=2, pad_amount=(1, 1)),
    case(
        "DepthWiseConv1d", f(2, 9, 3), w(3, 1, 6), stride=1, pad_amount=(0, 2), dilation=2, label="multiplier"
    ),
    case("DepthWiseConv2d", f(1, 8, 8, 4), w(3, 3, 1, 4), w(4), stride=(2, 2), pad_amount=ONE),
    case("DepthWiseConv2d", f(1, 8, 8, 3), w(3, 3, 1, 6), stride=(1, 1), pad_amount=ZERO, label="multiplier"),
    case(
        "DepthWiseConv2d", f(1, 9, 9, 2), w(3, 3, 1, 2), w(2), stride=(1, 1), pad_amount=ONE, dilation=(2, 1)
    ),
    case(
        "TransposeConv1d",
        f(1, 5, 3),
        w(3, 3, 4),
        w(4),
        stride=2,
        pad_amount=(1, 1),
        output_padding=1,
        xfail=DECONV1D,
        expect=onnx_conv("ConvTranspose", (1, 2, 0), strides=[2], pads=[1, 1], output_padding=[1]),
    ),
    case(
        "TransposeConv1d",
        f(2, 5, 4),
        w(3, 4, 3),
        stride=1,
        pad_amount=(0, 0),
        group=2,
        xfail=DECONV1D,
        expect=onnx_conv("ConvTranspose", (1, 2, 0), strides=[1], pads=[0, 0], group=2),
    ),
    case("TransposeConv2d", f(1, 5, 5, 3), w(3, 3, 3, 4), w(4), stride=(2, 2), pad_amount=ONE),
    case("TransposeConv2d", f(1, 4, 5, 3), w(3, 2, 3, 4), stride=(2, 3), pad_amount=ZERO, label="no_bias"),
    case(
        "TransposeConv2d",
        f(1, 4, 4, 4),
        w(3, 3, 4, 3),
        w(6),
        stride=(2, 2),
        pad_amount=((0, 1), (1, 0)),
        group=2,
        output_padding=(1, 1),
        label="group",
    ),
    case("TransposeConv3d", f(1, 3, 3, 3, 2), w(2, 3, 2, 2, 3), w(3), stride=(2, 1, 2), pad_amount=ZERO3),
    case("TransposeConv3d", f(1, 3, 3, 3, 2), w(3, 3, 3, 2, 3), stride=(2, 2, 2), pad_amount=((1, 1),) * 3),
    case(
        "TransposeConv3d",
        f(1, 3, 3, 3, 2),
        w(3, 3, 3, 2, 3),
        stride=(2, 2, 2),
        pad_amount=((0, 1), (1, 0), (0, 0)),
        xfail="TransposeConv3d with unequal pads fails finalize",
        label="unequal_pads",
        expect=onnx_conv("ConvTranspose", (3, 4, 0, 1, 2), strides=[2] * 3, pads=[0, 1, 0, 1, 0, 0]),
    ),
    case("Im2Col", f(2, 6, 5, 3), kernel_size=(3, 2), stride=(1, 2), pad_amount=((1, 1), (0, 1))),
    case("Im2Col", f(1, 7, 7, 2), kernel_size=(2, 2), stride=(1, 1), pad_amount=ZERO, dilation=(2, 3)),
    case("Col2Im", f(1, 18, 16), kernel_size=(3, 3), stride=(1, 1), pad_amount=ZERO, shape=(1, 6, 6, 2)),
    case(
        "Col2Im",
        f(2, 12, 9),
        kernel_size=(2, 2),
        stride=(2, 2),
        pad_amount=ONE,
        shape=(2, 4, 4, 3),
        label="pads",
    ),
]
