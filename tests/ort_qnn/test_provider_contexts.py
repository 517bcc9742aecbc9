"""Contexts that sessions share, names in them, dumped graphs, and op packages of the provider."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from pathlib import Path

import numpy as np
import onnx
import pytest

import openqnn
from openqnn import InferenceSession
from openqnn.emit.epcontext import read_epcontext
from openqnn.errors import UsageError
from openqnn.ops.custom import forget_custom_ops
from openqnn.ort_qnn import SessionOptions
from openqnn.ort_qnn.provider_options import provider_options
from openqnn.ort_qnn.shared_contexts import forget_waiting
from openqnn.vendor.remote import describe_context
from tests.libraries import need
from tests.models.fetch import model_path
from tests.models.reference import static_model
from tests.models.samples import sample_inputs
from tests.op_packages.sample import LIBRARY, PROVIDER, X, built, generated, needs_compiler
from tests.providers import Provider, each_provider

QNN = ["QNNExecutionProvider"]
CPU = [{"backend_path": "QnnCpu.dll"}]


@pytest.fixture(autouse=True)
def _nothing_left() -> Generator[None]:
    forget_custom_ops()
    forget_waiting()
    yield
    forget_custom_ops()
    forget_waiting()


def entries(**given: str) -> SessionOptions:
    options = SessionOptions()
    for key, value in given.items():
        options.add_session_config_entry(f"ep.{key}", value)
    return options


def two_models(folder: Path) -> list[Path]:
    paths = [folder / "first.onnx", folder / "second.onnx"]
    for path, name in zip(paths, ("mnist_conv", "mtcnn_onet"), strict=True):
        path.write_bytes(static_model(name))
    return paths


def test_sessions_share_a_context(tmp_path: Path) -> None:
    need("libQnnCpu.so")
    first, second = two_models(tmp_path)
    wanted = []
    share = {"context_enable": "1", "share_ep_contexts": "1"}
    for path, name, more in (
        (first, "mnist_conv", {}),
        (second, "mtcnn_onet", {"stop_share_ep_contexts": "1"}),
    ):
        with InferenceSession(path, entries(**share, **more), QNN, CPU) as session:
            wanted.append(session.run(None, sample_inputs(name)))
        assert (tmp_path / "first_ctx.onnx").exists() == bool(more)
    made = {file.name for file in tmp_path.iterdir()} - {"first.onnx", "second.onnx"}
    assert made == {"first_ctx.onnx", "second_ctx.onnx", "second_ctx_qnn.bin"}
    assert len(describe_context(tmp_path / "second_ctx_qnn.bin").graphs) == 2
    loaded = entries(share_ep_contexts="1")
    for stem, name, outputs in (("first", "mnist_conv", wanted[0]), ("second", "mtcnn_onet", wanted[1])):
        with InferenceSession(tmp_path / f"{stem}_ctx.onnx", loaded, QNN, CPU) as session:
            (read,) = (each.name for each in session.get_inputs())
            shape = session.get_inputs()[0].shape
            found = session.run(None, {read: next(iter(sample_inputs(name).values())).reshape(shape)})
        for ours, other in zip(sorted(found, key=np.size), sorted(outputs, key=np.size), strict=True):
            np.testing.assert_allclose(ours.ravel(), other.ravel(), rtol=1e-4, atol=1e-4)


def test_a_model_without_a_binary_takes_that_of_a_session_before(tmp_path: Path) -> None:
    need("libQnnCpu.so")
    first, _ = two_models(tmp_path)
    with InferenceSession(first, entries(context_enable="1", context_embed_mode="0"), QNN, CPU):
        pass
    made = onnx.load(tmp_path / "first_ctx.onnx")
    (node,) = made.graph.node
    kept = [a for a in node.attribute if a.name not in ("ep_cache_context", "main_context")]
    del node.attribute[:]
    node.attribute.extend([*kept, onnx.helper.make_attribute("main_context", 0)])
    node.name = "elsewhere"
    onnx.save(made, tmp_path / "elsewhere.onnx")
    node.name = read_epcontext(tmp_path / "first_ctx.onnx").partitions[0]
    onnx.save(made, tmp_path / "shares.onnx")
    share = entries(share_ep_contexts="1")
    with pytest.raises(UsageError, match=r"no session before has elsewhere"):
        InferenceSession(tmp_path / "elsewhere.onnx", share, QNN, CPU)
    with InferenceSession(tmp_path / "first_ctx.onnx", share, QNN, CPU) as session:
        given = {session.get_inputs()[0].name: np.ones(session.get_inputs()[0].shape, np.float32)}
        wanted = session.run(None, given)
    with InferenceSession(tmp_path / "shares.onnx", share, QNN, CPU) as session:
        np.testing.assert_array_equal(session.run(None, given)[0], wanted[0])


def test_what_shares_must_fit_together(tmp_path: Path) -> None:
    first, second = two_models(tmp_path)
    share = {"context_enable": "1", "share_ep_contexts": "1"}
    InferenceSession(first, entries(**share), QNN, CPU).close()
    with pytest.raises(UsageError, match="of another library or chip"):
        InferenceSession(second, entries(**share), QNN, [{"backend_path": "libQnnHtp.so"}])
    with pytest.raises(UsageError, match="would both be written to"):
        InferenceSession(first, entries(**share), QNN, CPU)
    elsewhere = entries(**share, context_file_path=str(tmp_path / "third_ctx.onnx"))
    with pytest.raises(UsageError, match="have a graph of the name"):
        InferenceSession(first, elsewhere, QNN, CPU)
    assert not list(tmp_path.glob("*_ctx*"))


def test_the_prefix_of_nodes_is_in_the_binary_too(tmp_path: Path) -> None:
    need("libQnnCpu.so")
    first, _ = two_models(tmp_path)
    options = entries(context_enable="1", context_embed_mode="0", context_node_name_prefix="part_")
    InferenceSession(first, options, QNN, CPU).close()
    (node,) = onnx.load(tmp_path / "first_ctx.onnx").graph.node
    (graph,) = describe_context(tmp_path / "first_ctx_qnn.bin").graphs
    assert node.name == graph.name and graph.name.startswith("part_")


def test_graphs_are_dumped(tmp_path: Path) -> None:
    need("libQnnCpu.so")
    told = {"dump_json_qnn_graph": "1", "json_qnn_graph_dir": str(tmp_path)}
    told |= {"dump_qnn_ir_dlc": "1", "dump_qnn_ir_dlc_dir": str(tmp_path)}
    given = [{**CPU[0], **told}]
    InferenceSession(model_path("mnist_conv"), providers=QNN, provider_options=given).close()
    stem = model_path("mnist_conv").stem
    nodes = json.loads((tmp_path / f"{stem}.json").read_text())["graph"]["nodes"]
    assert "Conv2d" in {node["type"] for node in nodes.values()}
    assert len(openqnn.load(tmp_path / f"{stem}.dlc").nodes) == len(nodes)
    with pytest.raises(UsageError, match="there is no folder"):
        provider_options({"dump_qnn_ir_dlc": "1", "dump_qnn_ir_dlc_dir": str(tmp_path / "none")})


PACKAGE = """
import numpy as np
import openqnn

@openqnn.custom_op("MyPackage", "ThresholdedRelu", domain="")
def thresholded_relu(x, *, alpha: float = 1.0):
    return alpha * np.tanh(x) + 0.5
"""
EXPECTED = np.maximum(2.5 * np.tanh(X) + 0.5, 0)


def packaged_model(folder: Path) -> str:
    """A model with an operation of ONNX that the package takes for itself, and the provider's entry."""
    built(generated(folder, PACKAGE))
    info = [onnx.helper.make_tensor_value_info(name, 1, X.shape) for name in ("x", "z")]
    nodes = [
        onnx.helper.make_node("ThresholdedRelu", ["x"], ["y"], name="mine", alpha=2.5),
        onnx.helper.make_node("Relu", ["y"], ["z"], name="last"),
    ]
    graph = onnx.helper.make_graph(nodes, "g", info[:1], info[1:])
    sets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=sets, ir_version=8), folder / "model.onnx")
    return f"ThresholdedRelu:{folder / LIBRARY}:{PROVIDER}"


RUN = """
import sys, onnxruntime as ort, onnxruntime_qnn as qnn
library, packages = sys.argv[1:]
ort.register_execution_provider_library("QNNExecutionProvider", qnn.get_library_path())
devices = [d for d in ort.get_ep_devices() if d.ep_name == "QNNExecutionProvider"][:1]
options = ort.SessionOptions()
options.add_provider_for_devices(devices, {"backend_path": library, "op_packages": packages})
ort.InferenceSession("model.onnx", options)
"""


@needs_compiler
def test_op_packages(tmp_path: Path) -> None:
    """The op of a package on libQnnCpu, told by the provider's option alone."""
    need("libQnnCpu.so")
    entry = packaged_model(tmp_path)
    given = [{**CPU[0], "op_packages": entry}]
    with InferenceSession(tmp_path / "model.onnx", providers=QNN, provider_options=given) as session:
        (found,) = session.run(None, {"x": X})
    np.testing.assert_allclose(found, EXPECTED, rtol=1e-5, atol=1e-5)
    for text, words in (
        (f"Tanh2:{tmp_path / LIBRARY}:{PROVIDER}", "has no operation 'Tanh2'"),
        ("ThresholdedRelu", "which is not OP_TYPE:PATH:INTERFACE"),
        (" , ", "expected OP_TYPE:PATH:INTERFACE"),
    ):
        with pytest.raises(UsageError, match=words):
            InferenceSession(tmp_path / "model.onnx", None, QNN, [{**CPU[0], "op_packages": text}])


@needs_compiler
@each_provider()
def test_op_packages_of_the_real_provider(provider: Provider, tmp_path: Path) -> None:
    """The provider itself takes the same entry, and registers the generated package.

    Where it has nodes of its own for an op type, or ONNX Runtime's CPU has, it keeps those: numbers of the
    package were not seen from it.
    """
    assert provider.folder is not None
    library = provider.folder / "libQnnCpu.so"
    if not library.is_file():
        pytest.skip("this version has no libQnnCpu")
    entry = packaged_model(tmp_path)
    (tmp_path / "run.py").write_text(RUN)
    done = subprocess.run(
        [provider.python, "run.py", library, entry],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Successfully register the op package" in done.stderr
