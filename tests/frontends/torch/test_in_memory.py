"""Modules and exported programs in memory, quantized programs, and what torch decomposes."""

from __future__ import annotations

import numpy as np
import pytest

import openqnn
from openqnn.errors import UnsupportedError, UsageError

torch = pytest.importorskip("torch", reason="modules in memory need torch")


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)

    def forward(self, x):
        return torch.special.entr(torch.sigmoid(self.norm(self.conv(x)))).sum((2, 3))


@pytest.mark.parametrize("form", ["module", "program"])
def test_a_module_and_its_export_give_the_same(form: str) -> None:
    """entr has no line of its own: torch says it in simpler ops."""
    net, x = Net(), torch.randn(1, 3, 8, 8)
    example = (x,)
    if form == "module":
        graph = openqnn.convert(net, example)
        assert net.training, "the module's own mode is put back"
    else:
        graph = openqnn.convert(torch.export.export(net.eval(), example))
    got = next(iter(openqnn.Session(graph).run({"x": x.numpy()}).values()))
    np.testing.assert_allclose(got, net.eval()(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_module_without_example_inputs() -> None:
    with pytest.raises(UsageError, match="example inputs"):
        openqnn.convert(Net())


def test_encodings_of_a_quantized_program() -> None:
    from torch.ao.quantization.fx._decomposed import quantized_decomposed_lib  # noqa: F401

    ops = torch.ops.quantized_decomposed

    class Quantized(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.randint(-127, 128, (5, 4), dtype=torch.int8))
            self.register_buffer("scales", torch.rand(5) / 100 + 0.001)
            self.register_buffer("zeros", torch.zeros(5, dtype=torch.int64))

        def forward(self, x):
            w = ops.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8)
            q = ops.quantize_per_tensor(x, 0.02, 3, -128, 127, torch.int8)
            return torch.nn.functional.linear(ops.dequantize_per_tensor(q, 0.02, 3, -128, 127, torch.int8), w)

    net, x = Quantized(), torch.randn(1, 4)
    program = torch.export.export(net, (x,))
    given = openqnn.convert(program).given
    assert given["x"].encoding.offset == (-131,) and given["weight"].encoding.axis == 0
    kept = openqnn.convert(program, keep_quant_nodes=True)
    got = next(iter(openqnn.Session(kept).run({"x": x.numpy()}).values()))
    np.testing.assert_allclose(got, net(x).numpy(), atol=1e-6)


def test_a_body_without_gradients_is_inlined() -> None:
    class Still(torch.nn.Module):
        def forward(self, x):
            with torch.no_grad():
                y = torch.relu(x) * 2
            return y + 1

    x = torch.randn(2, 3)
    graph = openqnn.convert(Still(), (x,))
    got = next(iter(openqnn.Session(graph).run({"x": x.numpy()}).values()))
    np.testing.assert_allclose(got, Still()(x).numpy(), atol=1e-6)


def test_what_the_table_lacks_goes_through_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxscript", reason="torch's exporter to ONNX needs onnxscript")
    from openqnn.frontends.torch import importer

    real = importer.find
    monkeypatch.setattr(importer, "find", lambda target: None if "relu" in target else real(target))
    monkeypatch.setattr(importer.decompose, "body_of", lambda *_: None)
    x = torch.randn(2, 3)
    with pytest.warns(openqnn.OpenQnnWarning, match=r"aten\.relu: not in our table.*ONNX"):
        graph = openqnn.convert(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()).eval(), (x,))
    assert [n.op for n in graph.nodes][-1] == "Relu"


class Dropping(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)


class Spread(torch.nn.Module):
    def forward(self, x):
        return torch.ops.aten._upsample_bilinear2d_aa(x, [3, 3], True)


@pytest.mark.parametrize(
    ("net", "shape", "reason"), [(Dropping, (1, 2, 4, 4), "dropout"), (Spread, (1, 1, 8, 8), "antialias")]
)
def test_what_is_refused_for_a_reason_does_not_go_through_onnx(net, shape, reason) -> None:
    """torch's exporter leaves dropout out, and takes other filters: numbers that are not the model's."""
    with pytest.raises(UnsupportedError, match=reason):
        openqnn.convert(net().eval(), (torch.randn(shape),))
