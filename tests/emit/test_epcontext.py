"""EPContext models with the real client: ONNX Runtime's QNN provider loads ours, and we run its."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from openqnn.emit.epcontext import read_epcontext
from openqnn.errors import ModelError
from tests.cli.running import Prepared, assert_done, prepare
from tests.cli.tool import openqnn
from tests.emit import ort_qnn
from tests.models.fetch import model_path
from tests.qnn.nets import needs_htp

PYTHONS = "OPENQNN_TEST_PYTHONS"
"""Interpreters with other versions of onnxruntime-qnn to test as well, separated as in PATH."""
INTERPRETERS = [sys.executable, *filter(None, os.environ.get(PYTHONS, "").split(os.pathsep))]
FAST = ("mnist_conv", "mtcnn_onet")
SLOW = ("ppocr_cls", "magika", "basic_pitch_onnx")  # minutes on the simulator
MODELS = [*FAST, *(pytest.param(model, marks=pytest.mark.slow) for model in SLOW)]


def provider(python: str, *argv: object) -> None:
    done = subprocess.run(
        [python, ort_qnn.__file__, *map(str, argv)], capture_output=True, text=True, check=False,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )  # fmt: skip
    if done.returncode == ort_qnn.TOO_OLD:
        pytest.skip("this onnxruntime-qnn does not work with this onnxruntime")
    assert done.returncode == 0, done.stderr[-2000:]


def libraries(python: str) -> str:
    script = "import onnxruntime_qnn as q; print(q.get_qnn_htp_path())"
    return subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


def same_results(case: Prepared, results: str) -> None:
    for file, data in case.results(results).items():
        name = file.removesuffix(".raw")
        theirs = np.load(case.folder / f"{name}.out.npy").astype(np.float32)
        np.testing.assert_array_equal(np.frombuffer(data, np.float32), theirs.ravel())


def arrays(case: Prepared) -> None:
    for value in case.graph.inputs:
        name = next(p.stem for p in case.folder.glob("*.raw") if p.stem.startswith(value.name[:3]))
        data = np.fromfile(case.folder / f"{name}.raw", np.float32).astype(value.dtype.numpy)
        np.save(case.folder / f"{name}.npy", data)


@needs_htp
@pytest.mark.parametrize("python", INTERPRETERS)
@pytest.mark.parametrize("embed", [True, False], ids=["embedded", "external"])
@pytest.mark.parametrize("model", MODELS)
def test_the_provider_loads_and_runs_ours(model: str, embed: bool, python: str, tmp_path: Path) -> None:
    case = prepare(model, tmp_path, lines=1, dlc=False)
    backend, flags = libraries(python), () if embed else ("--external",)
    target = tmp_path / "context.onnx"
    assert_done(openqnn("compile", tmp_path / "model.oqnn", "-o", target, "--backend", backend, *flags))
    assert (tmp_path / "context_qnn.bin").exists() is not embed
    assert_done(case.run("--retrieve_context", target, backend=backend))
    arrays(case)
    provider(python, target, tmp_path)
    same_results(case, "out")


@needs_htp
@pytest.mark.parametrize("python", INTERPRETERS)
@pytest.mark.parametrize("embed", [1, 0])
@pytest.mark.parametrize("model", ["mnist_conv"])  # others have open dimensions, which it leaves to the CPU
def test_we_run_what_the_provider_wrote(model: str, embed: int, python: str, tmp_path: Path) -> None:
    case = prepare(model, tmp_path, lines=1, dlc=False)
    target = tmp_path / "theirs.onnx"
    provider(python, model_path(model), tmp_path, target, embed)
    arrays(case)
    case.list.write_text(" ".join(f"{v.name}.raw" for v in case.graph.inputs))
    provider(python, target, tmp_path)
    assert_done(case.run("--retrieve_context", target, backend=libraries(python)))
    same_results(case, "out")


def node(**attributes: object) -> onnx.NodeProto:
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
