from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

from openqnn.errors import BackendError, InputError, UsageError
from openqnn.qnn import abi
from openqnn.qnn.net import Net, NetScalar, NetTensor, TensorKind
from openqnn.vendor.library_worker import LibraryWorker, shared_worker
from tests.qnn.nets import ConvRelu, build, needs_cpu, needs_htp, node, static, unary

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)

# Without `axes` this segfaults inside the library's validation.
CRASHING = unary("ReduceSum", (2, 3), (("keep_dims", NetScalar(abi.BOOL_8, False)),), to=(2,))


def roi_align(samples: int) -> Net:
    """The time it takes goes with the square of `samples`: a hang for all practical purposes."""
    tensors = [
        NetTensor("x", TensorKind.APP_WRITE, abi.FLOAT_32, (1, 8, 8, 2)),
        NetTensor("rois", TensorKind.APP_WRITE, abi.FLOAT_32, (1, 4)),
        static("batch", np.zeros(1, np.int32)),
        NetTensor("y", TensorKind.APP_READ, abi.FLOAT_32, (1, 2, 2, 2)),
    ]
    params = (
        ("img_size_ratio", static("ratio", np.ones(2, np.float32))),
        ("num_samples_y", NetScalar(abi.INT_32, samples)),
        ("num_samples_x", NetScalar(abi.INT_32, samples)),
    )
    return build("roi", tensors, (node("align", "RoiAlign", ("x", "rois", "batch"), "y", params),))


ROI_INPUTS = {
    "x": np.ones((1, 8, 8, 2), np.float32),
    "rois": np.array([[0, 0, 4, 4]], np.float32),
}


@needs_cpu
def test_a_graph_in_the_child_gives_the_same(worker: LibraryWorker) -> None:
    case = ConvRelu()
    result = worker.run(case.float_net(), {"x": case.image})["y"]
    np.testing.assert_allclose(result, case.reference(), atol=1e-5)


@needs_htp
def test_htp_in_the_child(worker: LibraryWorker) -> None:
    result = worker.run(unary("Relu", (2, 3)), {"x": X}, "htp", soc=43)["y"]
    np.testing.assert_allclose(result, np.maximum(X, 0), atol=1e-3)


@needs_cpu
def test_one_child_serves_many_graphs(worker: LibraryWorker) -> None:
    worker.run(unary("Relu", (2, 3)), {"x": X})
    child = worker.pid
    for _ in range(50):
        worker.run(unary("Relu", (2, 3)), {"x": X})
    assert worker.pid == child


@pytest.mark.parametrize(
    "library", [pytest.param("cpu", marks=needs_cpu), pytest.param("htp", marks=needs_htp)]
)
def test_a_crash_names_the_signal_and_the_node(worker: LibraryWorker, library: str) -> None:
    with pytest.raises(BackendError) as caught:
        worker.run(CRASHING, {"x": X}, library)
    assert "crashed (SIGSEGV); last step: validate ReduceSum 'first' (onnx node /first)" in str(caught.value)
    np.testing.assert_allclose(
        worker.run(unary("Relu", (2, 3)), {"x": X}, library)["y"], np.maximum(X, 0), atol=1e-3
    )


@needs_cpu
def test_a_hang_is_ended_and_named(worker: LibraryWorker) -> None:
    worker.run(roi_align(2), ROI_INPUTS)
    hanging, start = worker.pid, time.monotonic()
    with pytest.raises(BackendError, match=r"gave no answer in 1 s; last step: execute graph 'roi'"):
        worker.run(roi_align(20000), ROI_INPUTS, timeout=1)
    assert time.monotonic() - start < 5
    assert hanging is not None
    with pytest.raises(ProcessLookupError):
        os.kill(hanging, 0)


@needs_cpu
def test_errors_of_the_child_keep_their_kind_and_reason(worker: LibraryWorker) -> None:
    with pytest.raises(BackendError, match="QNN_BACKEND_ERROR_OP_PACKAGE_NOT_FOUND"):
        worker.run(unary("NoSuchOp", (2, 3)), {"x": X})
    with pytest.raises(InputError, match="needs an array"):
        worker.run(unary("Relu", (2, 3)), {})


@needs_cpu
def test_a_child_that_died_meanwhile_is_replaced(worker: LibraryWorker) -> None:
    worker.run(unary("Relu", (2, 3)), {"x": X})
    first = worker.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    np.testing.assert_array_equal(worker.run(unary("Relu", (2, 3)), {"x": X})["y"], np.maximum(X, 0))
    assert worker.pid != first


@needs_cpu
def test_time_per_inference_is_taken_in_the_child(worker: LibraryWorker) -> None:
    timing = worker.measure(unary("Relu", (2, 3)), {"x": X}, repeat=3)
    assert 0 < timing.seconds < 1
    np.testing.assert_array_equal(timing.outputs["y"], np.maximum(X, 0))
    with pytest.raises(UsageError, match="at least 1"):
        worker.measure(unary("Relu", (2, 3)), {"x": X}, repeat=0)


@needs_cpu
def test_the_shared_worker() -> None:
    np.testing.assert_array_equal(shared_worker().run(unary("Relu", (2, 3)), {"x": X})["y"], np.maximum(X, 0))


@needs_cpu
def test_closing_ends_the_child() -> None:
    with LibraryWorker() as own:
        own.run(unary("Relu", (2, 3)), {"x": X})
        child = own.pid
    assert child is not None
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
