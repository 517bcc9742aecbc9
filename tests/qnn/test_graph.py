from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from openqnn.errors import BackendError, InputError, UsageError
from openqnn.qnn import abi
from openqnn.qnn.net import Net, NetScalar, NetTensor, TensorKind
from tests.qnn.nets import ConvRelu, build, needs_cpu, needs_htp, node, static, u32, unary
from tests.qnn.vendor_session import VendorSession

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def run(library: str, net: Net, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    with VendorSession(library) as session:
        session.compose(net)
        session.finalize()
        return session.execute(inputs)


@needs_cpu
def test_float_convolution_on_cpu() -> None:
    case = ConvRelu()
    result = run("cpu", case.float_net(), x=case.image)["y"]
    np.testing.assert_allclose(result, case.reference(), atol=1e-5)


@needs_htp
def test_8_bit_convolution_on_htp() -> None:
    case = ConvRelu()
    result = run("htp", case.quantized_net(), x=case.quantized_image())["y"]
    clipped = np.minimum(case.reference(), 255 * case.out_scale)
    assert np.abs(result * case.out_scale - clipped).max() < 2 * case.mid_scale


@needs_htp
@pytest.mark.parametrize("bitwidth", [None, 4])
def test_weights_with_a_scale_per_channel_on_htp(bitwidth: int | None) -> None:
    case = ConvRelu()
    net = case.per_channel_net(bitwidth)
    weight = net.tensors["w"]
    assert weight.data is not None
    assert weight.quant is not None
    case.weight = weight.data * np.array(weight.quant.scales, np.float32)
    result = run("htp", net, x=case.quantized_image())["y"]
    clipped = np.minimum(case.reference(), 255 * case.out_scale)
    assert np.abs(result * case.out_scale - clipped).max() < 2 * case.mid_scale


@needs_htp
def test_float_on_htp_is_half_precision() -> None:
    np.testing.assert_allclose(run("htp", unary("Relu", (2, 3)), x=X)["y"], np.maximum(X, 0), atol=1e-3)


@pytest.mark.parametrize(
    "library", [pytest.param("cpu", marks=needs_cpu), pytest.param("htp", marks=needs_htp)]
)
def test_a_scalar_keeps_its_shape(library: str) -> None:
    result = run(library, unary("Relu", ()), x=np.array(2, np.float32))["y"]
    assert result.shape == ()
    assert float(result) == pytest.approx(2, abs=1e-3)


@needs_cpu
def test_an_optional_input_left_out() -> None:
    beta = static("beta", np.ones(3, np.float32))
    tensors = [*unary("Relu", (2, 3)).tensors.values(), beta]
    params = (u32("axes", [1]), ("epsilon", NetScalar(abi.FLOAT_32, 1e-5)))
    net = build("norm", tensors, (node("norm", "LayerNorm", ("x", None, "beta"), "y", params),))
    expected = (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5) + 1
    np.testing.assert_allclose(run("cpu", net, x=X)["y"], expected, atol=1e-5)


@needs_cpu
def test_parameters_of_two_nodes_may_share_a_name() -> None:
    x, y = unary("Relu", (2, 3), to=(2, 3)).tensors.values()
    mid = NetTensor("mid", TensorKind.NATIVE, abi.FLOAT_32, (3, 2))
    swap = (u32("perm", [1, 0]),)
    nodes = (node("there", "Transpose", ("x",), "mid", swap), node("back", "Transpose", ("mid",), "y", swap))
    np.testing.assert_array_equal(run("cpu", build("g", [x, y, mid], nodes), x=X)["y"], X)


@needs_htp
def test_the_library_does_not_print(capfd: pytest.CaptureFixture[str]) -> None:
    with VendorSession("htp") as session:
        session.compose(unary("Relu", (2, 3)))
        session.finalize()
        session.execute({"x": X})
        assert any("Graph Preparation" in line for line in session.api.printed)
    print("mine")
    assert capfd.readouterr() == ("mine\n", "")


@needs_cpu
def test_a_refused_node_names_itself_the_error_and_the_reason() -> None:
    net = unary("Softmax", (2, 3), (("bogus", NetScalar(abi.FLOAT_32, 1.0)),))
    with VendorSession("cpu") as session, pytest.raises(BackendError) as caught:
        session.compose(net)
    text = str(caught.value)
    assert text.startswith("Softmax 'first' (onnx node /first): libQnnCpu.so: backendValidateOpConfig failed")
    assert "QNN_OP_PACKAGE_ERROR_VALIDATION_FAILURE (3110): Op configuration failed validation" in text
    assert "log: Found incorrect number of found Parameters" in text


@needs_cpu
def test_a_refused_graph_leaves_the_session_usable() -> None:
    with VendorSession("cpu") as session:
        with pytest.raises(BackendError, match="OP_PACKAGE_NOT_FOUND"):
            session.compose(unary("NoSuchOp", (2, 3)))
        with pytest.raises(BackendError, match="no graph"):
            session.finalize()
        session.compose(unary("Relu", (2, 3)))
        session.finalize()
        np.testing.assert_array_equal(session.execute({"x": X})["y"], np.maximum(X, 0))


@needs_htp
def test_an_unknown_soc_is_refused() -> None:
    with pytest.raises(BackendError, match=r"QNN_DEVICE_ERROR_INVALID_CONFIG \(14001\)[^$]*socModel"):
        VendorSession("htp", soc=999999)


@needs_cpu
def test_a_soc_means_nothing_to_the_cpu() -> None:
    with pytest.raises(UsageError, match="only be chosen for HTP"):
        VendorSession("cpu", soc=57)


@needs_cpu
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "needs an array for input 'x'"),
        ({"x": X.T}, r"input 'x' is float32 \[2, 3\], but the array is float32 \[3, 2\]"),
        ({"x": X.astype(np.float64)}, "but the array is float64"),
        ({"x": X, "z": X}, r"no input \['z'\]; its inputs are \['x'\]"),
    ],
)
def test_arrays_that_do_not_fit(inputs: dict[str, np.ndarray], message: str) -> None:
    with VendorSession("cpu") as session:
        session.compose(unary("Relu", (2, 3)))
        session.finalize()
        with pytest.raises(InputError, match=message):
            session.execute(inputs)


@needs_cpu
def test_steps_must_come_in_order() -> None:
    with VendorSession("cpu") as session:
        session.compose(unary("Relu", (2, 3)))
        with pytest.raises(BackendError, match="not finalized"):
            session.execute({"x": X})


def _with_weight(weight: NetTensor) -> Net:
    return build(
        "g",
        [*unary("Relu", (2, 3)).tensors.values(), weight],
        (node("add", "ElementWiseAdd", ("x", "w"), "y"),),
    )


@needs_cpu
@pytest.mark.parametrize(
    ("net", "message"),
    [
        (
            _with_weight(
                NetTensor("w", TensorKind.STATIC, abi.FLOAT_32, (2, 3), None, np.zeros(2, np.float32))
            ),
            r"tensor 'w' is float32 \[2, 3\]: 24 bytes, but its data has 8",
        ),
        (build("g", [], (node("n", "Relu", ("x",), "y"),)), "Relu 'n' .* has no tensor 'x'"),
        (
            build("g", list(unary("Relu", (2, 3)).tensors.values()), ()),
            "output 'y' of graph 'g' is produced by no node",
        ),
        (unary("Relu", (2, 3), (("p", NetScalar(abi.INT_32, 0.5)),)), "0.5 is not a scalar of type int32"),
    ],
)
def test_a_contradicting_net_is_refused_before_the_library_sees_it(net: Net, message: str) -> None:
    with VendorSession("cpu") as session, pytest.raises(BackendError, match=message):
        session.compose(net)


@needs_cpu
def test_many_runs_give_a_time() -> None:
    with VendorSession("cpu") as session:
        session.compose(unary("Relu", (2, 3)))
        session.finalize()
        assert 0 < session.execute_many({"x": X}, 3) < 1
        with pytest.raises(UsageError, match="at least 1"):
            session.execute_many({"x": X}, 0)


@needs_cpu
@needs_htp
def test_sessions_side_by_side() -> None:
    with VendorSession("cpu") as one, VendorSession("cpu") as two, VendorSession("htp") as three:
        for session, op in ((one, "Relu"), (two, "ElementWiseNeg"), (three, "Relu")):
            session.compose(unary(op, (2, 3)))
            session.finalize()
        one.close()
        np.testing.assert_array_equal(two.execute({"x": X})["y"], -X)
        np.testing.assert_allclose(three.execute({"x": X})["y"], np.maximum(X, 0), atol=1e-3)


@needs_cpu
def test_sessions_in_threads(capfd: pytest.CaptureFixture[str]) -> None:
    results: list[bool] = []

    def work() -> None:
        outputs = [run("cpu", unary("Relu", (2, 3)), x=X)["y"] for _ in range(5)]
        results.extend(np.array_equal(output, np.maximum(X, 0)) for output in outputs)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 15
    os.write(1, b"back")
    assert capfd.readouterr().out == "back"


def _heavy() -> Net:
    """4 MB of weights."""
    weight = static("w", np.ones((1024, 1024), np.float32))
    tensors = [*unary("Relu", (1024, 1024)).tensors.values(), weight]
    return build("g", tensors, (node("add", "ElementWiseAdd", ("x", "w"), "y"),))


def _assert_nothing_is_left(cycle: Callable[[], None]) -> None:
    for _ in range(3):
        cycle()
    before, memory = _open_resources(), _resident_mb()
    for _ in range(20):
        cycle()
    assert _open_resources() == before
    assert _resident_mb() - memory < 40, "20 graphs with 4 MB of weights each were not freed"


@needs_cpu
def test_closing_frees_what_was_opened() -> None:
    net = _heavy()

    def cycle() -> None:
        with VendorSession("cpu") as session:
            session.compose(net)
            session.finalize()

    _assert_nothing_is_left(cycle)


@needs_cpu
def test_a_new_graph_frees_the_one_before() -> None:
    net = _heavy()
    with VendorSession("cpu") as session:

        def cycle() -> None:
            session.compose(net)
            session.finalize()

        _assert_nothing_is_left(cycle)


def _open_resources() -> tuple[int, int]:
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
