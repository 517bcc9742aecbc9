"""The same op in models of every framework: as a composite, and as an op of a package."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import openqnn
from openqnn.errors import UnsupportedError
from openqnn.frontends.tflite.flexbuffer import read_flexbuffer
from tests.libraries import need
from tests.op_packages.sample import EXPECTED as WANTED
from tests.op_packages.sample import X as SAMPLE
from tests.op_packages.sample import model

PROGRAMS = Path(__file__).parents[1] / "frontends" / "torch" / "programs"
X = np.random.default_rng(0).normal(size=(1, 4, 4, 3)).astype(np.float32)
EXPECTED = 2.5 * np.tanh(X) + 1


def declare(kind: str, domain: str) -> None:
    if kind == "composite":
        openqnn.composite(domain, "scaled_tanh")(
            lambda q, x, *, factor=1.0, shift=0: q.add(q.mul(q.tanh(x), factor), shift)
        )
        return

    @openqnn.custom_op("MyPackage", "scaled_tanh", domain=domain)
    def scaled_tanh(x: Any, *, factor: float = 1.0, shift: int = 0) -> Any:  # pyright: ignore[reportUnusedFunction]
        return (factor * np.tanh(x) + shift).astype(np.float32)


def tflite_model(options: bytes) -> bytes:
    pytest.importorskip("ai_edge_litert")
    from tests.frontends.tflite.build import T, single

    return single("my.scaled_tanh", [T(X.shape, name="x")], [T(X.shape, name="y")], custom=options)


@pytest.mark.parametrize("kind", ["composite", "package"])
def test_tflite(tmp_path: Path, kind: str) -> None:
    flex = pytest.importorskip("flatbuffers.flexbuffers")
    declare(kind, "my")
    (tmp_path / "m.tflite").write_bytes(tflite_model(bytes(flex.Dumps({"factor": 2.5, "shift": 1}))))
    with openqnn.Session(openqnn.convert(tmp_path / "m.tflite")) as session:
        np.testing.assert_allclose(session.run({"x": X})["y"], EXPECTED, atol=1e-6)


def test_tflite_with_damaged_options(tmp_path: Path) -> None:
    declare("package", "my")
    (tmp_path / "m.tflite").write_bytes(tflite_model(b"\1\2\3"))
    with pytest.raises(UnsupportedError, match=r"options of 'my.scaled_tanh' are no FlexBuffer"):
        openqnn.convert(tmp_path / "m.tflite")


@pytest.mark.frameworks
@pytest.mark.parametrize("kind", ["composite", "package"])
def test_torch(kind: str) -> None:
    torch = pytest.importorskip("torch")

    own = torch.library.custom_op(
        f"mylib::scaled_tanh_{kind}",
        lambda x, factor, shift=0: factor * torch.tanh(x) + shift,
        mutates_args=(),
        schema="(Tensor x, float factor, int shift=0) -> Tensor",
    )
    own.register_fake(lambda x, factor, shift=0: torch.empty_like(x))

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return own(torch.relu(x), 2.5, 1)

    if kind == "composite":
        openqnn.composite("mylib", "scaled_tanh_composite")(
            lambda q, x, *, factor, shift=0: q.add(q.mul(q.tanh(x), factor), shift)
        )
    else:
        openqnn.custom_op("MyPackage", "scaled_tanh_package", domain="mylib")(_scaled)
    program = torch.export.export(Model(), (torch.from_numpy(X),))
    graph = openqnn.convert(program)
    with openqnn.Session(graph) as session:
        found = next(iter(session.run({session.input_names[0]: X}).values()))
    np.testing.assert_allclose(found, 2.5 * np.tanh(np.maximum(X, 0)) + 1, atol=1e-6)


@pytest.mark.frameworks
def test_a_function_of_torch(tmp_path: Path) -> None:
    """It computes shapes, ranges and numbers like one of numpy's."""
    torch = pytest.importorskip("torch")

    @openqnn.custom_op("MyPackage", "ScaledTanh", domain="my.domain", tensors="torch")
    def scaled_tanh(x: Any, *, factor: float = 1.0, shift: list[float] = (0.0, 0.0)) -> Any:  # pyright: ignore
        return factor * torch.tanh(x) + torch.as_tensor(shift)[1]

    graph = openqnn.convert(model(tmp_path / "m.onnx"))
    with openqnn.Session(graph) as session:
        np.testing.assert_allclose(session.run({"x": SAMPLE})["z"], WANTED, atol=1e-6)
    with openqnn.Session(openqnn.quantize(graph, [{"x": SAMPLE}])) as session:
        np.testing.assert_allclose(session.run({"x": SAMPLE})["z"], WANTED, atol=0.06)


def _blend(
    x: Any, table: Any, bias: Any = None, *, factor: float, taps: list[int],
    mode: Literal["plus", "minus"] = "plus", on: bool = True, power: int = 2,
) -> Any:  # fmt: skip
    y = factor * x**power + (table if mode == "plus" else -table)
    y = y if bias is None else y + bias
    return (y if on else x), y * np.float32(sum(taps))


def _blend_of_ops(
    q: Any, x: Any, table: Any, bias: Any = None, *, factor: float, taps: list[int], mode: str = "plus",
    on: bool = True, power: int = 2,
) -> Any:  # fmt: skip
    y = x
    for _ in range(power - 1):
        y = q.mul(y, x)
    y = q.mul(y, factor)
    y = q.add(y, table) if mode == "plus" else q.sub(y, table)
    y = y if bias is None else q.add(y, bias)
    return (y if on else x), q.mul(y, float(sum(taps)))


@pytest.mark.parametrize(
    ("kind", "backend", "error"),
    [("package", "cpu", 1e-5), ("composite", "cpu", 1e-5), ("composite", "htp", 0.05)],
)
def test_a_pytorch_program(kind: str, backend: str, error: float) -> None:
    """Every kind of argument and two results, read without torch."""
    if backend != "cpu":
        need("libQnnHtp.so")
    if kind == "package":
        openqnn.custom_op("Acme", "blend", domain="acme", outputs=("y", "scaled"))(_blend)
    else:
        openqnn.composite("acme", "blend")(_blend_of_ops)
    graph = openqnn.convert(PROGRAMS / "own.pt2")
    assert ("Acme::blend" in {n.op for n in graph.nodes}) == (kind == "package")
    wanted = np.load(PROGRAMS / "own.npz")
    with openqnn.Session(graph, backend) as session:
        found = list(session.run({"x": wanted["in_x"]}).values())
    for i, each in enumerate(found):
        expected = wanted[f"out_{i}"]
        np.testing.assert_allclose(each, expected, atol=error * max(1.0, np.abs(expected).max() / 10))


def _scaled(x: Any, *, factor: float = 1.0, shift: int = 0) -> Any:
    return (factor * np.tanh(x) + shift).astype(np.float32)


@pytest.mark.parametrize(
    "value",
    [
        {}, {"a": 1, "b": -70000, "c": 2.5, "d": True, "e": "text", "f": None, "long": 1 << 40},
        {"list": [1, 2, 3], "floats": [0.5, 1e10], "mixed": [1, "x", [2.5]], "map": {"inner": 7}},
        [1, 2, 300], "text", 5,
    ],
)  # fmt: skip
def test_flexbuffers(value: Any) -> None:
    flex = pytest.importorskip("flatbuffers.flexbuffers")
    data = bytes(flex.Dumps(value))
    assert read_flexbuffer(data) == flex.Loads(data)
    for end in range(len(data)):
        try:
            read_flexbuffer(data[:end] + data[end + 1 :])
        except ValueError:
            continue
