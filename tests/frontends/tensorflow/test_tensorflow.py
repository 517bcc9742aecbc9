"""TensorFlow models of all forms: they give TensorFlow's numbers under the names that users know."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openqnn
from openqnn.errors import ModelError, OpenQnnError, UsageError
from openqnn.frontends.custom_ops import forget_composites
from openqnn.frontends.tensorflow.kinds import kind_of
from openqnn.frontends.tensorflow.run_tensorflow import PYTHON
from openqnn.ops.custom import forget_custom_ops
from tests.cli.tool import assert_refused, tool
from tests.models.fetch import model_path

TENSORFLOW = os.environ.get(PYTHON, "")
needs_tensorflow = [
    pytest.mark.frameworks,
    pytest.mark.skipif(not TENSORFLOW, reason=f"{PYTHON} names no Python with TensorFlow"),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tensorflow")
    script = Path(__file__).with_name("make_models.py")
    subprocess.run([TENSORFLOW or sys.executable, "-P", script, folder], check=True, capture_output=True)
    return folder


@pytest.fixture
def nothing_declared() -> Generator[None]:
    forget_custom_ops()
    forget_composites()
    yield
    forget_custom_ops()
    forget_composites()


def run(graph: openqnn.Graph, data: Any) -> dict[str, Any]:
    with openqnn.Session(graph) as session:
        return session.run({graph.inputs[0].name: data})


def declare(kind: str) -> None:
    if kind == "composite":
        openqnn.composite("", "ScaledTanh")(
            lambda q, x, *, factor=1.0, shift=0: q.add(q.mul(q.tanh(x), factor), shift)
        )
    else:
        openqnn.custom_op("MyPackage", "ScaledTanh")(
            lambda x, *, factor=1.0, shift=0: (factor * np.tanh(x) + shift).astype(np.float32)
        )


class TestWithTensorflow:
    pytestmark = needs_tensorflow

    @pytest.mark.parametrize("backend", ["cpu", "libQnnCpu.so", "htp"])
    def test_a_composite_on_every_backend(self, models: Path, backend: str, nothing_declared: None) -> None:
        declare("composite")
        x = np.random.default_rng(0).normal(size=(1, 4, 4, 3)).astype(np.float32)
        with openqnn.Session(openqnn.convert(models / "own.pb"), backend) as session:
            (found,) = session.run({session.input_names[0]: x}).values()
        error = 0.02 if backend == "htp" else 1e-5
        np.testing.assert_allclose(found, np.maximum(2.5 * np.tanh(x) + 1, 0), atol=error)

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("own.pb", "composite"), ("own.pb", "package"), ("own_ckpt.meta", "package"),
            ("own_saved1", "package"), ("own_saved2", "composite"), ("own_function", "package"),
        ],
    )  # fmt: skip
    def test_an_op_of_the_users(self, models: Path, name: str, kind: str, nothing_declared: None) -> None:
        if kind == "composite":
            with pytest.raises(OpenQnnError, match="ScaledTanh"):
                openqnn.convert(models / name)
        declare(kind)
        graph = openqnn.convert(models / name)
        x = np.random.default_rng(0).normal(size=(1, 4, 4, 3)).astype(np.float32)
        (found,) = run(graph, x).values()
        assert ("MyPackage::ScaledTanh" in {node.op for node in graph.nodes}) == (kind == "package")
        np.testing.assert_allclose(found, np.maximum(2.5 * np.tanh(x) + 1, 0), atol=1e-5)

    def test_an_op_of_the_users_with_two_results(self, models: Path, nothing_declared: None) -> None:
        openqnn.custom_op("MyPackage", "Halves", outputs=("low", "high"))(
            lambda x: (np.minimum(x, 0), np.maximum(x, 0))
        )
        x = np.random.default_rng(0).normal(size=(1, 4, 4, 3)).astype(np.float32)
        (found,) = run(openqnn.convert(models / "own_halves.pb"), x).values()
        np.testing.assert_allclose(found, -np.abs(x), atol=1e-6)

    @pytest.mark.parametrize("name", ["two.keras", "two.h5"])
    def test_keras(self, models: Path, name: str) -> None:
        wanted = np.load(models / "two.npz")
        graph = openqnn.convert(models / name)
        assert [v.name for v in graph.inputs] == ["img"]
        found = run(graph, wanted["img"])
        for end in ("cls", "box"):
            np.testing.assert_allclose(found[end], wanted[end], atol=1e-5)

    def test_a_chain_of_layers_ends_in_the_name_of_its_last_one(self, models: Path) -> None:
        graph = openqnn.convert(models / "chain.keras", outputs=["head"])
        assert [v.name for v in (*graph.inputs, *graph.outputs)] == ["x", "head"]
        with pytest.raises(UsageError, match="no tensor 'zzz'") as e:
            openqnn.convert(models / "chain.keras", outputs=["zzz"])
        assert "its outputs: 'head'" in e.value.hint

    @pytest.mark.parametrize("name", ["two.keras", "two.h5", "frozen.pb"])
    def test_files_are_told_by_their_content(self, models: Path, tmp_path: Path, name: str) -> None:
        path = tmp_path / "model.bin"
        path.write_bytes((models / name).read_bytes())
        graph, wanted = openqnn.convert(path, batch=1), openqnn.convert(models / name, batch=1)
        assert [v.name for v in graph.outputs] == [v.name for v in wanted.outputs]

    def test_a_saved_model(self, models: Path) -> None:
        wanted = np.load(models / "two.npz")
        found = run(openqnn.convert(models / "two_saved"), wanted["img"])
        np.testing.assert_allclose(found["output_0"], wanted["cls"], atol=1e-5)

    def test_a_saved_model_lists_what_it_has(self, models: Path) -> None:
        with pytest.raises(UsageError, match="no tag 'train'") as e:
            openqnn.convert(models / "two_saved", source_options={"tag": "train"})
        assert "'serve'" in e.value.hint
        with pytest.raises(UsageError, match="no signature 'main'") as e:
            openqnn.convert(models / "two_saved", source_options={"signature": "main"})
        assert "'serving_default'" in e.value.hint

    @pytest.mark.parametrize("name", ["frozen.pb", "ckpt.meta"])
    def test_graphs_keep_the_names_that_are_asked_for(self, models: Path, name: str) -> None:
        wanted = np.load(models / "graph.npz")
        graph = openqnn.convert(
            models / name,
            outputs=["head/out"],
            input_shapes={"input/img": (1, 8, 8, 3)},
            keep_quant_nodes=True,
        )
        assert [v.name for v in graph.inputs] == ["input/img"]
        np.testing.assert_allclose(run(graph, wanted["img"])["head/out"], wanted["out"], atol=1e-5)

    def test_fake_quantization_becomes_encodings(self, models: Path) -> None:
        graph = openqnn.convert(models / "frozen.pb", outputs=["head/out"])
        scales = [g.encoding.scale[0] for g in graph.given.values() if g.encoding is not None]
        assert any(abs(scale - 12 / 255) < 1e-6 for scale in scales)

    def test_a_graph_with_variables_is_not_frozen(self, models: Path) -> None:
        with pytest.raises(ModelError, match="not frozen: 'w' is a variable"):
            openqnn.convert(models / "unfrozen.pb")

    def test_the_tool(self, models: Path, tmp_path: Path) -> None:
        flags = ("--show_unconsumed_nodes", "--tf_validate_models", "--out_node", "head/out")
        shape = ("-d", "input/img", "1,8,8,3")
        done = tool(
            "qnn-tensorflow-converter", "-i", models / "frozen.pb", *shape, *flags, "-o", tmp_path / "m.cpp"
        )
        assert done.code == 0, done.err
        assert "Mul 'unused/mul'" in done.out and "head/out: average error" in done.out
        assert "input input/img: float32 1x8x8x3" in done.out

    def test_a_lost_node_is_guessed(self, models: Path) -> None:
        done = tool("qnn-tensorflow-converter", "-i", models / "frozen.pb", "--out_node", "head/oot")
        assert_refused(done, "no node 'head/oot'", "head/out", code=2)

    def test_an_old_keras_model(self) -> None:
        graph = openqnn.convert(model_path("fer_keras"))
        assert graph.outputs[0].shape == (1, 7)

    def test_missing_variables_are_told(self, models: Path, tmp_path: Path) -> None:
        (tmp_path / "saved_model.pb").write_bytes((models / "two_saved" / "saved_model.pb").read_bytes())
        with pytest.raises(ModelError, match="'variables' is missing"):
            openqnn.convert(tmp_path)
        (tmp_path / "c.meta").write_bytes((models / "ckpt.meta").read_bytes())
        with pytest.raises(ModelError, match="variables are missing"):
            openqnn.convert(tmp_path / "c.meta")

    def test_damaged_files_are_refused(self, models: Path, tmp_path: Path) -> None:
        for name in ("two.h5", "two.keras", "frozen.pb"):
            content = (models / name).read_bytes()
            path = tmp_path / name
            path.write_bytes(content[: len(content) // 2])
            with pytest.raises(OpenQnnError):
                openqnn.convert(path)


def test_without_tensorflow_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("tensorflow") is not None:
        pytest.skip("TensorFlow is installed here")
    monkeypatch.delenv(PYTHON, raising=False)
    with pytest.raises(UsageError, match="TensorFlow is needed") as e:
        openqnn.convert(model_path("fer_keras"))
    assert "openqnn[tensorflow]" in e.value.hint


def test_a_python_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PYTHON, str(tmp_path / "python"))
    with pytest.raises(UsageError, match="cannot be run"):
        openqnn.convert(model_path("fer_keras"))


def test_kinds_are_told_without_tensorflow(tmp_path: Path) -> None:
    assert kind_of(model_path("fer_keras")) == "keras"
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01\x12")
    assert kind_of(tmp_path) == kind_of(tmp_path / "saved_model.pb") == "saved_model"
    (tmp_path / "g.pb").write_bytes(b"\x0a\x10")
    assert kind_of(tmp_path / "g.pb") == "frozen"
    node = b"\x0a\x05in/im\x12\x0bPlaceholder\x2a\x0b\x0a\x05dtype\x12\x020\x01"
    (tmp_path / "no_suffix").write_bytes(b"\x0a" + bytes([len(node)]) + node)
    assert kind_of(tmp_path / "no_suffix") == "frozen"
    (tmp_path / "caffe").write_bytes(b"\x0a\x07network\xa2\x06\x10")
    assert kind_of(tmp_path / "caffe") == ""
    (tmp_path / "other.pb").write_bytes(b"text")
    assert kind_of(tmp_path / "other.pb") == kind_of(tmp_path / "nothing") == kind_of(3) == ""


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(OpenQnnError):
        openqnn.convert(tmp_path)
