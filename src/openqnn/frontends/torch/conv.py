"""Convolutions of ATen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from openqnn.frontends.onnx import conv as onnx
from openqnn.frontends.torch.table import translates
from openqnn.frontends.torch.torch_translation import TorchTranslation
from openqnn.ir import Value


def each(t: TorchTranslation, value: int | Sequence[int], dims: int) -> list[int]:
    """One number for every spatial axis; a single one counts for all."""
    found = [value] if isinstance(value, int) else list(value)
    found = found * dims if len(found) == 1 else found
    if len(found) != dims:
        t.refuse(f"{found} should be {dims} numbers")
    return found


def batched(t: TorchTranslation, x: Value, rank: int, work: Callable[[Value], Value]) -> Value:
    """Work on data with a batch axis; data without one gets it for the time being."""
    if x.rank != rank - 1:
        return work(x)
    y = work(t.reshape(x, (1, *x.shape)))
    return t.reshape(y, y.shape[1:])


@translates("conv1d", "conv2d", "conv3d")
def conv(
    t: TorchTranslation, x: Value, weight: Value, bias: Value | None = None, stride: int | list[int] = 1,
    padding: int | list[int] | str = 0, dilation: int | list[int] = 1, groups: int = 1,
) -> Value:  # fmt: skip
    dims = weight.rank - 2
    strides, dilations = each(t, stride, dims), each(t, dilation, dims)
    pads = _pads(t, padding, weight.shape[2:], dilations)
    more = {"dilations": dilations, "group": groups, "pads": pads, "strides": strides}
    return batched(t, x, weight.rank, lambda data: onnx.conv(t, data, weight, bias, **more))


def _pads(
    t: TorchTranslation, padding: int | list[int] | str, kernel: Sequence[int], dilations: Sequence[int]
) -> list[int]:
    """All before, then all after. "same" puts the odd one behind."""
    if not isinstance(padding, str):
        found = each(t, padding, len(kernel))
        return [*found, *found]
    if padding not in ("same", "valid"):
        t.refuse(f"padding={padding!r} is not known")
    totals = [d * (k - 1) if padding == "same" else 0 for k, d in zip(kernel, dilations, strict=True)]
    return [*(n // 2 for n in totals), *(n - n // 2 for n in totals)]


@translates("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(
    t: TorchTranslation, x: Value, weight: Value, bias: Value | None = None, stride: int | list[int] = 1,
    padding: int | list[int] = 0, output_padding: int | list[int] = 0, groups: int = 1,
    dilation: int | list[int] = 1,
) -> Value:  # fmt: skip
    dims = weight.rank - 2
    pads, extra, strides = (each(t, v, dims) for v in (padding, output_padding, stride))
    more = {"strides": strides, "dilations": each(t, dilation, dims), "group": groups}
    if any(e >= s for e, s in zip(extra, strides, strict=True)):
        # What is added behind the end is less of what is cut off, and zeros beyond that.
        after = [max(0, p - e) for p, e in zip(pads, extra, strict=True)]
        beyond = [[0, 0], [0, 0], *([0, max(0, e - p)] for p, e in zip(pads, extra, strict=True))]
        more |= {"pads": [*pads, *after]}

        def longer(data: Value) -> Value:
            y = onnx.conv_transpose(t, data, weight, None, **more)
            y = t.pad(y, beyond) if any(map(any, beyond)) else y
            return y if bias is None else t.add(y, t.reshape(bias, (bias.size, *(1,) * dims)))

        return batched(t, x, weight.rank, longer)
    more |= {"pads": [*pads, *pads], "output_padding": extra}
    return batched(t, x, weight.rank, lambda data: onnx.conv_transpose(t, data, weight, bias, **more))


@translates("convolution", "_convolution", "convolution_overrideable")
def convolution(
    t: TorchTranslation, x: Value, weight: Value, bias: Value | None, stride: list[int], padding: list[int],
    dilation: list[int], transposed: bool, output_padding: list[int], groups: int, **unused: object,
) -> Value:  # fmt: skip
    if transposed:
        return conv_transpose(t, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return conv(t, x, weight, bias, stride, padding, dilation, groups)


@translates("conv_tbc")
def conv_tbc(t: TorchTranslation, x: Value, weight: Value, bias: Value, pad: int = 0) -> Value:
    data, filters = t.transpose(x, (1, 2, 0)), t.transpose(weight, (2, 1, 0))
    return t.transpose(conv(t, data, filters, bias, 1, pad), (2, 0, 1))


@translates("im2col")
def im2col(
    t: TorchTranslation, x: Value, kernel_size: list[int], dilation: list[int], padding: list[int],
    stride: list[int],
) -> Value:  # fmt: skip
    """Patches of an image as columns: each tap of the window is a strided slice."""
    from openqnn.frontends.compositions import cut

    def columns(data: Value) -> Value:
        n, channels = data.shape[:2]
        rows = [[0, 0], [0, 0], *([p, p] for p in padding)]
        image = t.pad(data, rows) if any(padding) else data
        counts = [
            (image.shape[i + 2] - dilation[i] * (kernel_size[i] - 1) - 1) // stride[i] + 1 for i in range(2)
        ]
        taps = []
        for i in range(kernel_size[0]):
            high = i * dilation[0]
            row = cut(t, image, 2, high, high + (counts[0] - 1) * stride[0] + 1, stride[0])
            for j in range(kernel_size[1]):
                left = j * dilation[1]
                tap = cut(t, row, 3, left, left + (counts[1] - 1) * stride[1] + 1, stride[1])
                taps.append(t.reshape(tap, (n, channels, 1, counts[0] * counts[1])))
        joined = t.concat(taps, 2)
        return t.reshape(joined, (n, channels * len(taps), counts[0] * counts[1]))

    return batched(t, x, 4, columns)
