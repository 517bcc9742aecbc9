"""Known faults of libQnnHtp: each form is found, the library gets it wrong, and our graphs have none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from onnx import numpy_helper, parser

import openqnn
from openqnn.analysis.accuracy.debug import debug_accuracy
from openqnn.ir import Array, Graph
from openqnn.quant.apply_recipe import apply_recipe, measure
from openqnn.quant.recipe import Recipe
from openqnn.runtime.boundary import accepted
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.runtime.metrics import sqnr
from openqnn.runtime.runner import Runner
from openqnn.targets.htp.known_faults import FAULTS, known_faults
from openqnn.vendor.executables import GraphExecutable
from tests.analysis.accuracy.faults import subject_of
from tests.qnn.nets import needs_htp

LOST = 20.0  # dB that the library loses at least


@dataclass(frozen=True)
class Form:
    """A model whose graph has the form once it is quantized as it is, and `changed`."""

    fault: str
    text: str
    shapes: tuple[tuple[int, ...], ...]
    changed: Callable[[Graph], None] = lambda _: None
    scale: float = 2.0


def _without_conversions(graph: Graph) -> None:
    for node in [n for n in graph.nodes if n.op == "Convert"]:
        graph.replace_uses(node.out, node.x(0))
        graph.remove(node)


def _wider(graph: Graph) -> None:
    for value in graph.values():
        if value.encoding is not None and not value.is_constant and value.producer is not None:
            value.encoding = replace(value.encoding, scale=(value.encoding.scale[0] * 3,))


def _from_below_zero(graph: Graph) -> None:
    (node,) = (n for n in graph.nodes if n.op == "Softmax")
    assert node.out.encoding is not None
    node.out.encoding = replace(node.out.encoding, offset=(-60,), scale=(1.4 * node.out.encoding.scale[0],))


FORMS = (
    Form(
        "joined-as-stored",
        "g (float[1,8,4] x, float[4,8] u) => (float[1,16,4] y) { s = Constant<value_ints=[1,8,4]>()"
        " t = Reshape(u, s) m = Constant<value_float=9.0>() r = Mul(x, m) c = Concat<axis=1>(r, t)"
        " o = Constant<value_float=2.0>() y = Mul(c, o) }",
        ((1, 8, 4), (4, 8)), _without_conversions,
    ),
    Form(
        "clips-to-encoding",
        "g (float[1,8,16,16] x) => (float[1,8,16,16] y) { z = Conv(x, w) a = Constant<value_float=0.0>()"
        " b = Constant<value_float=6.0>() y = Clip(z, a, b) }",
        ((1, 8, 16, 16),), _wider, 4.0,
    ),
    Form(
        "lost-sum",
        "g (float[1,16,16,8] x, float[1,16,16,8] u) => (float[1,16,16,8] y)"
        " { d = Sub(x, u) r = Relu(d) y = Add(r, u) }",
        ((1, 16, 16, 8),) * 2,
    ),
    Form(
        "left-out-sums",
        "g (float[1,257,64] x) => (float[1,257,1] y) { y = ReduceMean<axes=[-1]>(x) }",
        ((1, 257, 64),),
    ),
    Form(
        "starts-at-zero",
        "g (float[1,8,8,16] x) => (float[1,8,8,16] y) { y = Softmax<axis=-1>(x) }",
        ((1, 8, 8, 16),), _from_below_zero,
    ),
)  # fmt: skip


def made(form: Form) -> tuple[Graph, Graph, Graph, list[dict[str, Array]]]:
    """The graph in floats, the one with the form, what our quantizer makes of it, and data."""
    chance = np.random.default_rng(0)
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {form.text}')
    if "Conv(" in form.text:
        weight = chance.normal(0, 1, (8, 8, 1, 1)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    real = openqnn.convert(model)
    data = [
        {
            v.name: chance.normal(0, form.scale, s).astype(np.float32)
            for v, s in zip(real.inputs, form.shapes, strict=True)
        }
        for _ in range(3)
    ]
    recipe = Recipe(act_bw=8, headroom=False, wide=False)
    with warnings.catch_warnings(action="ignore"):
        fixed = apply_recipe(measure(real, data, recipe, {}), recipe, {}).graph
        form.changed(fixed)
        ours = openqnn.quantize(real, data, act_bw=8)
    return real, fixed, ours, data


def _numbers(graph: Graph, runner: Runner, sample: dict[str, Array]) -> Array:
    (out,) = graph.outputs
    found = runner.run(accepted(graph, sample))[out.name]
    runner.close()
    return out.encoding.dequantize(found) if out.encoding is not None and found.dtype.kind in "iu" else found


def test_every_fault_has_a_form() -> None:
    assert {f.fault for f in FORMS} == {f.id for f in FAULTS}


@needs_htp
@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.fault)
def test_the_library_gets_the_form_wrong_and_ours_right(form: Form) -> None:
    real, fixed, ours, data = made(form)
    assert form.fault in {fault.id for _, fault in known_faults(fixed)}
    assert not list(known_faults(ours))
    golden = _numbers(real, CpuExecutable(real), data[0])
    simulated = sqnr(golden, _numbers(fixed, CpuExecutable(fixed), data[0]))
    library = sqnr(golden, _numbers(fixed, GraphExecutable(fixed, "htp", None, 100), data[0]))
    assert simulated - library > (LOST if form.fault != "clips-to-encoding" else 15), (simulated, library)
    mine = sqnr(golden, _numbers(ours, GraphExecutable(ours, "htp", None, 100), data[0]))
    assert mine > library + 15


def test_the_debugger_tells_a_known_fault() -> None:
    real, fixed, _, data = made(FORMS[3])
    report = debug_accuracy(real, fixed, data, attribution=False)
    findings = [f for layer in report.layers for f in layer.findings]
    assert [f.detail.split(":")[0] for f in findings if f.cause.id == "library-fault"] == ["left-out-sums"]


@pytest.mark.parametrize("model", ["mnist_conv", "mtcnn_onet", "ppocrv4_rec_en"])
def test_the_quantizer_writes_none(model: str) -> None:
    assert not list(known_faults(subject_of(model, 2).fixed))
