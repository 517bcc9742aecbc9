"""The same op in models of every framework: as a composite, and as an op of a package."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import openqnn
from openqnn.cli.registry import run_tool
from openqnn.emit import lower
from openqnn.emit.model_source import write_model_source
from openqnn.errors import UnsupportedError
from openqnn.frontends.tflite.flexbuffer import read_flexbuffer
from tests.libraries import need
from tests.op_packages.sample import EXPECTED as WANTED
from tests.op_packages.sample import LIBRARY, PROVIDER, built, generated, model, needs_compiler
from tests.op_packages.sample import X as SAMPLE

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


@pytest.mark.parametrize(
    ("kind", "backend", "error"),
    [
        ("composite", "cpu", 1e-6), ("composite", "libQnnCpu.so", 1e-6), ("composite", "htp", 1e-2),
        ("package", "cpu", 1e-6),
    ],
)  # fmt: skip
def test_tflite(tmp_path: Path, kind: str, backend: str, error: float) -> None:
    flex = pytest.importorskip("flatbuffers.flexbuffers")
    declare(kind, "my")
    (tmp_path / "m.tflite").write_bytes(tflite_model(bytes(flex.Dumps({"factor": 2.5, "shift": 1}))))
    with openqnn.Session(openqnn.convert(tmp_path / "m.tflite"), backend) as session:
        np.testing.assert_allclose(session.run({"x": X})["y"], EXPECTED, atol=error)


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
    [
        ("package", "cpu", 1e-5),
        ("composite", "cpu", 1e-5),
        ("composite", "libQnnCpu.so", 1e-5),
        ("composite", "htp", 0.05),
    ],
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


PACKAGE = '''
import numpy as np
import openqnn


@openqnn.custom_op("MyPackage", "scaled_tanh", domain="my")
def scaled_tanh(x, *, factor: float = 1.0, shift: int = 0):
    return factor * np.tanh(x) + shift


@openqnn.custom_op("MyPackage", "blend", domain="acme", outputs=("y", "scaled"), cpp="""
float sum = 0;
for (size_t k = 0; k < taps.size(); ++k) sum += float(taps[k]);
for (size_t i = 0; i < y.size(); ++i) {
  const float shifted = mode == 0 ? table.at(i, y) : -table.at(i, y);
  const float v = factor * std::pow(x[i], float(power)) + shifted + (bias.given() ? bias.at(i, y) : 0);
  y[i] = on ? v : x[i];
  scaled[i] = v * sum;
}
""")
def blend(x, table, bias=None, *, factor: float, taps: list[int], mode: Literal["plus", "minus"] = "plus",
          on: bool = True, power: int = 2):
    y = factor * x**power + (table if mode == "plus" else -table)
    y = y if bias is None else y + bias
    return (y if on else x), y * np.float32(sum(taps))
'''


@pytest.fixture(scope="module")
def own_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("own")
    built(generated(place, "from typing import Literal\n" + PACKAGE))
    return place


@needs_compiler
@pytest.mark.parametrize("frontend", ["tflite", "pytorch"])
def test_a_package_on_the_library(own_package: Path, tmp_path: Path, frontend: str) -> None:
    """The same package from models of other frameworks, through DLC, model library and context binary."""
    openqnn.load_custom_ops(own_package / "my_ops.py")
    if frontend == "tflite":
        flex = pytest.importorskip("flatbuffers.flexbuffers")
        (tmp_path / "m.tflite").write_bytes(tflite_model(bytes(flex.Dumps({"factor": 2.5, "shift": 1}))))
        graph, feeds, wanted = openqnn.convert(tmp_path / "m.tflite"), {"x": X}, [EXPECTED]
    else:
        known = np.load(PROGRAMS / "own.npz")
        graph, feeds = openqnn.convert(PROGRAMS / "own.pt2"), {"x": known["in_x"]}
        wanted = [known[f"out_{i}"] for i in range(len(graph.outputs))]
    packages = f"{own_package / LIBRARY}:{PROVIDER}"
    for source in _round_trips(graph, tmp_path, packages):
        with openqnn.Session(source, "libQnnCpu.so", op_packages=packages) as session:
            found = session.run(feeds)
        for value, expected in zip(
            graph.outputs, wanted, strict=True
        ):  # libraries have an order of their own
            np.testing.assert_allclose(
                found[value.name].reshape(expected.shape), expected, rtol=1e-4, atol=1e-5
            )


def _round_trips(graph: openqnn.Graph, folder: Path, packages: str) -> list[openqnn.Graph | Path]:
    """The graph, its DLC, its model library and its context binary."""
    graph.save(folder / "g.dlc")
    written = write_model_source([lower(graph)], folder / "g.cpp")
    where = ["-o", str(folder), "-t", "x86_64-linux-clang"]
    where += ["-b", str(written.bin)] if written.bin is not None else []
    assert run_tool("qnn-model-lib-generator", ["-c", str(written.cpp), *where]) == 0
    library = folder / "x86_64-linux-clang" / "libg.so"
    words = ["--dlc_path", str(folder / "g.dlc"), "--backend", "libQnnCpu.so", "--op_packages", packages]
    made = ["--binary_file", "context", "--output_dir", str(folder)]
    assert run_tool("qnn-context-binary-generator", [*words, *made]) == 0
    read = openqnn.load(library, trust=True)
    for each in (openqnn.load(folder / "g.dlc"), read):
        ours = [n.op_name for n in each.nodes if n.package == "MyPackage"]
        assert ours == [n.op_name for n in graph.nodes if n.package == "MyPackage"] and ours
    return [graph, folder / "g.dlc", read, folder / "context.bin"]
