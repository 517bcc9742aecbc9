"""The face of the QNN provider beside the real one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import openqnn
from openqnn import InferenceSession, OpenQnnWarning
from openqnn.errors import ModelError, UsageError
from openqnn.ort_qnn import SessionOptions
from openqnn.ort_qnn.provider_options import provider_options
from tests.libraries import need
from tests.models.fetch import model_path, static_shapes
from tests.models.reference import reference_outputs, static_model
from tests.models.samples import sample_inputs
from tests.ort_qnn.test_qdq_model import provided, varied
from tests.providers import Provider, each_provider

QNN = ["QNNExecutionProvider"]
CASES = [("mnist_conv", True), ("mtcnn_onet", True), ("mnist_conv", False)]


def qdq(folder: Path, model: str) -> Path:
    graph = openqnn.convert(model_path(model), input_shapes=static_shapes(model))
    made = openqnn.quantize(graph, [sample_inputs(model)], algorithms=(), act_bw=8)
    made.save(folder / "model.onnx")
    return folder / "model.onnx"


@each_provider()
@pytest.mark.parametrize(("model", "integers"), CASES)
def test_outputs_are_those_of_the_real_provider(
    model: str, integers: bool, provider: Provider, tmp_path: Path
) -> None:
    """Integers to the last bit but one of float32, in which they are taken times a scale."""
    source, samples = tmp_path / "model.onnx", varied(model, 3)
    if integers:
        qdq(tmp_path, model)
    else:
        source.write_bytes(static_model(model))
    theirs = provided(provider, source, samples)
    options = [{"backend_path": str(provider.htp), "soc_model": "57"}]
    tolerance = {"rtol": 3e-7, "atol": 1e-7} if integers else {"rtol": 2e-2, "atol": 2e-3}
    with InferenceSession(source, providers=QNN, provider_options=options) as session:
        for sample, found in zip(samples, theirs, strict=True):
            for ours, other in zip(session.run(None, sample), found.values(), strict=True):
                np.testing.assert_allclose(ours, other, **tolerance)


def test_the_calls_of_onnx_runtime() -> None:
    sample = sample_inputs("mnist_conv")
    with InferenceSession(model_path("mnist_conv").read_bytes()) as session:
        theirs = onnxruntime.InferenceSession(
            str(model_path("mnist_conv")), providers=["CPUExecutionProvider"]
        )
        for ours, other in zip(
            (*session.get_inputs(), *session.get_outputs()),
            (*theirs.get_inputs(), *theirs.get_outputs()),
            strict=True,
        ):
            assert (ours.name, ours.shape, ours.type) == (other.name, other.shape, other.type)
        (found,) = session.run(["Plus214_Output_0"], sample)
        assert session.get_providers() == ["CPUExecutionProvider"]
    np.testing.assert_allclose(
        found, reference_outputs("mnist_conv")["Plus214_Output_0"], rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("embed", ["0", "1"])
def test_a_context_is_written_when_the_session_is_made(embed: str, tmp_path: Path) -> None:
    need("libQnnHtp.so")
    source, sample = qdq(tmp_path, "mnist_conv"), sample_inputs("mnist_conv")
    options = onnxruntime.SessionOptions() if embed == "1" else SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    options.add_session_config_entry("ep.context_embed_mode", embed)
    with InferenceSession(source, options, providers=QNN) as session:
        wanted = session.run(None, sample)
    assert (tmp_path / "model_ctx_qnn.bin").exists() == (embed == "0")
    with InferenceSession(tmp_path / "model_ctx.onnx", providers=[("QNNExecutionProvider", {})]) as session:
        found = session.run(None, {session.get_inputs()[0].name: next(iter(sample.values()))})
    np.testing.assert_array_equal(found[0].ravel(), wanted[0].ravel())
    with pytest.raises(UsageError, match=r"model_ctx\.onnx exists"):
        InferenceSession(source, options, providers=QNN)


def test_the_path_of_the_context(tmp_path: Path) -> None:
    options = SessionOptions()
    options.add_session_config_entry("ep.context_enable", "1")
    source = qdq(tmp_path, "mnist_conv")
    with pytest.raises(UsageError, match="a model in memory needs"):
        InferenceSession(source.read_bytes(), options, providers=QNN)
    options.add_session_config_entry("ep.context_file_path", str(source))
    with pytest.raises(UsageError, match="is the model itself"):
        InferenceSession(source, options, providers=QNN)
    with pytest.raises(UsageError, match="no session key"):
        options.add_session_config_entry("ep.context_enabled", "1")
    options.add_session_config_entry("ep.context_enable", "yes")
    with pytest.raises(UsageError, match="must be '0' or '1'"):
        InferenceSession(source, options, providers=QNN)


def test_a_profile_is_appended(tmp_path: Path) -> None:
    need("libQnnCpu.so")
    options = {
        "backend_path": "QnnCpu.dll",
        "profiling_level": "detailed",
        "profiling_file_path": str(tmp_path / "p.csv"),
    }
    for _ in range(2):
        with InferenceSession(model_path("mnist_conv"), providers=QNN, provider_options=[options]) as session:
            session.run(None, sample_inputs("mnist_conv"))
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0].startswith("Msg Timestamp,Message,Time,Unit of Measurement,Timing Source")
    assert sum(",NODE," in line for line in lines) > 10
    assert len([line for line in lines if line.startswith("Msg")]) == 1


def test_options_have_effect() -> None:
    found = provider_options(
        {"backend_path": "QnnHtp.dll", "htp_graph_finalization_optimization_mode": 3, "vtcm_mb": "4",
         "soc_model": "43", "htp_performance_mode": "burst"}
    )  # fmt: skip
    assert (found.library, found.soc, dict(found.settings)) == ("libQnnHtp.so", 43, {"O": 3, "vtcm_mb": 4})
    assert list(found.idle) == ["htp_performance_mode"]
    assert provider_options({"htp_arch": "73"}).soc is not None
    assert provider_options({"backend_type": "cpu"}).library == "libQnnCpu.so"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"backend_pth": "x"}, "did you mean 'backend_path'"),
        ({"htp_performance_mode": "fast"}, "htp_performance_mode is 'fast', and must be one of 'burst'"),
        ({"rpc_control_latency": "soon"}, "must be a number"),
        ({"backend_type": "htp", "backend_path": "libQnnHtp.so"}, "both say which library"),
        ({"htp_arch": "70"}, "htp_arch is '70'"),
    ],
)
def test_options_that_make_no_sense(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        provider_options(given)
    assert words in str(raised.value)


def test_providers_and_models_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no provider 'CUDAExecutionProvider'"):
        InferenceSession(model_path("mnist_conv"), providers=["CUDAExecutionProvider"])
    with pytest.raises(UsageError, match="1 providers and 2 provider_options"):
        InferenceSession(model_path("mnist_conv"), providers=QNN, provider_options=[{}, {}])
    for providers in (None, QNN):
        with pytest.raises(ModelError, match="no such file"):
            InferenceSession(tmp_path / "none.onnx", providers=providers)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        InferenceSession(
            model_path("mnist_conv"), providers=QNN, provider_options=[{"htp_performance_mode": "burst"}]
        )
    assert [str(w.message) for w in caught if issubclass(w.category, OpenQnnWarning)] == [
        "htp_performance_mode has no effect: it sets a device, and there is none here"
    ]
