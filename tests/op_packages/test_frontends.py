"""The same op in models of every framework: as a composite, and as an op of a package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openqnn
from openqnn.errors import UnsupportedError
from openqnn.frontends.tflite.flexbuffer import read_flexbuffer

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
