"""Pads and per-channel factors and terms move into the layer."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.ir.verify import verify
from openqnn.ops import infer_outputs
from openqnn.passes import Explain
from openqnn.passes.fold_affine import fold_affine
from openqnn.passes.fold_pad import fold_pad
from tests.passes.harness import check, graph_of, reasons, run, same_numbers

RNG = np.random.default_rng(2)
CONV = "stride=[1, 1] pad_amount=[[1, 1], [1, 1]] group=1 dilation=[1, 1] reuse_sparse_indices=false"
DATA = {
    "w": RNG.standard_normal((3, 3, 2, 4)).astype(np.float32),
    "depth": RNG.standard_normal((3, 3, 1, 2)).astype(np.float32),
    "up": RNG.standard_normal((3, 3, 2, 2)).astype(np.float32),
    "fc": RNG.standard_normal((4, 32)).astype(np.float32),
}


def vector(name: str) -> str:
    return f"const %{name}: float32[4] = [1.0, 2.0, -3.0, 0.5]\n"


LAYERS = {
    "conv": f"const %w: float32[3,3,2,4] = data\n%c: float32[1,4,4,4] = Conv2d(%x, %w) {CONV}",
    "conv with bias": "const %w: float32[3,3,2,4] = data\nconst %b: float32[4] = [1.0, 0.0, 2.0, 3.0]\n"
    f"%c: float32[1,4,4,4] = Conv2d(%x, %w, %b) {CONV}",
    "norm": "const %g: float32[4] = [1.0, 0.0, 2.0, 3.0]\n%r: float32[1,4,2,4] = Reshape(%x)\n"
    "%c: float32[1,4,2,4] = InstanceNorm(%r, %g) epsilon=0.1 mode=MU_SIGMA normalize_variance=true"
    " region=ACROSS_SPATIAL",
    "layer norm": "%r: float32[1,4,2,4] = Reshape(%x)\n"
    "%c: float32[1,4,2,4] = LayerNorm(%r) epsilon=0.1 axes=[3]",
}
STEPS = {
    "batchnorm": (vector("s") + vector("t"), "Batchnorm(%c, %s, %t)"),
    "product": ("const %s: float32[1,1,1,4] = [1.0, 2.0, -3.0, 0.5]\n", "ElementWiseMultiply(%s, %c)"),
    "number": ("const %s: float32[] = [2.5]\n", "ElementWiseMultiply(%c, %s)"),
    "quotient": (vector("s"), "ElementWiseDivide(%c, %s)"),
    "sum": (vector("s"), "ElementWiseAdd(%c, %s)"),
    "difference": (vector("s"), "ElementWiseSubtract(%c, %s)"),
}


def folded(lines: str, layer: str) -> None:
    """One node less, the layer last, the same numbers, the source and the name of what is gone."""
    graph, log = graph_of(lines, DATA), Explain()
    before, count = run(graph), len(graph.nodes)
    fold_affine(graph, log)
    verify(graph, infer_outputs, after="fold_affine")
    assert len(graph.nodes) == count - 1, str(log)
    assert (graph.nodes[-1].op, graph.nodes[-1].source) == (layer, "last")
    same_numbers(before, run(graph), 1e-4)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_step_behind_a_layer_moves_into_it(layer: str, step: str) -> None:
    shape = "float32[1,4,4,4]" if "conv" in layer else "float32[1,4,2,4]"
    constants, expression = STEPS[step]
    lines = ["input %x: float32[1,4,4,2]", LAYERS[layer], f'{constants}%y: {shape} = {expression} @ "last"']
    op = "Conv2d" if "conv" in layer else "InstanceNorm" if layer == "norm" else "LayerNorm"
    folded("\n".join([*lines, "output %y"]), op)


def test_other_layers_scale_the_right_channels() -> None:
    """Depthwise and grouped transposed weights do not have output channels as a plain last axis."""
    pads = "stride=[1, 1] pad_amount=[[1, 1], [1, 1]]"
    folded(
        f"""
        input %x: float32[1,4,4,2]
        const %depth: float32[3,3,1,2] = data
        const %s: float32[2] = [2.0, -1.0]
        %c: float32[1,4,4,2] = DepthWiseConv2d(%x, %depth) {pads} dilation=[1, 1]
        %y: float32[1,4,4,2] = Batchnorm(%c, %s) @ "last"
        output %y
        """,
        "DepthWiseConv2d",
    )
    folded(
        f"""
        input %x: float32[1,4,4,2]
        const %up: float32[3,3,2,2] = data
        {vector("s")}
        %c: float32[1,4,4,4] = TransposeConv2d(%x, %up) {pads} group=2 output_padding=[0, 0]
        %y: float32[1,4,4,4] = Batchnorm(%c, %s, %s) @ "last"
        output %y
        """,
        "TransposeConv2d",
    )
    folded(
        f"""
        input %x: float32[1,4,4,2]
        const %fc: float32[4,32] = data
        {vector("s")}
        %c: float32[1,4] = FullyConnected(%x, %fc) keep_dims=false
        %y: float32[1,4] = ElementWiseMultiply(%c, %s) @ "last"
        output %y
        """,
        "FullyConnected",
    )


START = f"input %x: float32[1,4,4,2]\n{LAYERS['conv']}\n{vector('s')}"


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("%y: float32[1,4,4,4] = Batchnorm(%c, %s)\noutput %y\noutput %c", "'c' is a graph output"),
        (
            "%y: float32[1,4,4,4] = Batchnorm(%c, %s)\n%z: float32[1,4,4,4] = Relu(%c)\noutput %y\noutput %z",
            "'c' is also used by Relu 'z'",
        ),
        (
            "%y: float32[1,4,4,4] <scale=[0.5] offset=[0] bits=8 symmetric=false> = Batchnorm(%c, %s)\n"
            "output %y",
            "quantized",
        ),
    ],
)
def test_a_layer_that_cannot_take_the_step_says_why(rest: str, why: str) -> None:
    _, log = check(fold_affine, START + rest, data=DATA)
    assert why in reasons(log)


def test_a_constant_along_other_axes_stays() -> None:
    check(
        fold_affine,
        f"input %x: float32[1,4,4,2]\n{LAYERS['conv']}\nconst %s: float32[4,1] = [1.0, 2.0, 3.0, 4.0]\n"
        "%y: float32[1,4,4,4] = ElementWiseMultiply(%c, %s)\noutput %y",
        data=DATA,
    )


def test_a_constant_of_another_type_stays() -> None:
    """No backend runs the graph, and the message about it is theirs."""
    lines = f"input %x: float32[1,4,4,2]\n{LAYERS['conv']}\nconst %s: bool[1] = [true]\n"
    graph = graph_of(f"{lines}%y: float32[1,4,4,4] = ElementWiseSubtract(%c, %s)\noutput %y", DATA)
    fold_affine(graph, Explain())
    assert [n.op for n in graph.nodes] == ["Conv2d", "ElementWiseSubtract"]


# -- pads ------------------------------------------------------------------------------------------------

PAD = "input %x: float32[1,4,4,2]\n%p: float32[1,5,6,2] = Pad(%x) scheme={scheme} pad_amount={rows} pad_constant_value={value}\n"  # noqa: E501
ROWS = "[[0, 0], [1, 0], [1, 1], [0, 0]]"
CONVOLVED = f"const %w: float32[3,3,2,4] = data\n%y: float32[1,5,6,4] = Conv2d(%p, %w) {CONV}"
POOL = "filter_size=[2, 2] stride=[1, 1]"


def padded(scheme: str = "CONSTANT", rows: str = ROWS, value: float = 0.0) -> str:
    return PAD.format(scheme=scheme, rows=rows, value=value)


def test_a_pad_moves_into_a_convolution() -> None:
    check(
        fold_pad,
        f"{padded()}{CONVOLVED}\noutput %y",
        f"""
        input %x: float32[1,4,4,2]
        const %w: float32[3,3,2,4] = data
        %y: float32[1,5,6,4] = Conv2d(%x, %w) {CONV.replace("[[1, 1], [1, 1]]", "[[2, 1], [2, 2]]")}
        output %y
        """,
        DATA,
    )


def test_a_pad_moves_into_a_mean_that_then_counts_it() -> None:
    check(
        fold_pad,
        f"{padded()}%y: float32[1,4,5,2] = PoolAvg2d(%p) {POOL} pad_amount=[[0, 0], [0, 0]]"
        " count_pad_for_edges=false rounding_mode=FLOOR\noutput %y",
        f"""
        input %x: float32[1,4,4,2]
        %y: float32[1,4,5,2] = PoolAvg2d(%x) {POOL} pad_amount=[[1, 0], [1, 1]] count_pad_for_edges=true rounding_mode=FLOOR
        output %y
        """,  # noqa: E501
    )


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            f"{padded(value=1.0)}{CONVOLVED}",
            "only a pad by the constant 0",
        ),
        (
            f"{padded('EDGE')}{CONVOLVED}",
            "only a pad by the constant 0",
        ),
        (
            f"{padded()}%y: float32[1,4,5,2] = PoolMax2d(%p) {POOL} pad_amount=[[0, 0], [0, 0]]"
            " rounding_mode=FLOOR",
            "its own padding is not",
        ),
        (
            f"{padded()}%y: float32[1,5,5,2] = PoolAvg2d(%p) {POOL} pad_amount=[[1, 0], [0, 0]]"
            " count_pad_for_edges=false rounding_mode=FLOOR",
            "does not count",
        ),
        (
            f"{padded()}const %up: float32[3,3,2,2] = data\n%y: float32[1,5,6,4] = TransposeConv2d(%p, %up)"
            " stride=[1, 1] pad_amount=[[1, 1], [1, 1]] group=2 output_padding=[0, 0]",
            "takes away",
        ),
    ],
)
def test_a_pad_that_cannot_move_says_why(lines: str, why: str) -> None:
    _, log = check(fold_pad, f"{lines}\noutput %y", data=DATA)
    assert why in reasons(log)
