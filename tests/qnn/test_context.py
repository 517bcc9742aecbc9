"""Context binaries: several graphs, settings, weight sharing, loading and running them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from openqnn.errors import BackendError, InputError, ModelError, UsageError
from openqnn.qnn import abi
from openqnn.qnn.backend import Backend
from openqnn.qnn.context import Context
from openqnn.qnn.context_info import ContextInfo, context_info
from openqnn.qnn.htp_config import check_taken
from openqnn.qnn.net import Array, Net, NetQuant, NetTensor, TensorKind
from openqnn.qnn.options import ContextOptions, DeviceOptions, GraphOptions
from openqnn.qnn.soc import SOCS, find_soc, soc_of_arch
from tests.qnn.nets import CONV_PARAMS, ConvRelu, build, each_version, needs_cpu, node, static, unary

CASE = ConvRelu()


def compiled(
    folder: Path,
    *nets: Net,
    device: DeviceOptions | None = None,
    context_options: ContextOptions | None = None,
    options: GraphOptions | None = None,
) -> tuple[Array, ContextInfo]:
    with Backend(folder / "libQnnHtp.so", device) as htp, Context(htp, context_options) as context:
        for net in nets:
            context.compose(net, options=options).finalize()
        blob = context.binary()
    return blob, context_info(blob, folder / "libQnnSystem.so")


@each_version("htp", "system")
def test_a_binary_gives_what_the_graphs_gave(folder: Path) -> None:
    other = replace(unary("Relu", (2, 3)), name="other")
    x, image = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3), CASE.quantized_image()
    with Backend(folder / "libQnnHtp.so") as htp:
        with Context(htp) as context:
            graphs = [context.compose(net) for net in (CASE.quantized_net(), other)]
            for graph in graphs:
                graph.finalize()
            direct = graphs[0].execute({"x": image})["y"], graphs[1].execute({"x": x})["y"]
            blob = context.binary()
        info = context_info(blob, folder / "libQnnSystem.so")
        with Context.from_binary(htp, blob, info) as context:
            again = (
                context.graphs["conv_relu"].execute({"x": image})["y"],
                context.graphs["other"].execute({"x": x})["y"],
            )
            with pytest.raises(InputError, match="needs an array for input 'x'"):
                context.graphs["other"].execute({})
    for one, two in zip(direct, again, strict=True):
        np.testing.assert_array_equal(one, two)


@each_version("htp", "system")
def test_a_binary_describes_itself(folder: Path) -> None:
    net = CASE.quantized_net()
    blob, info = compiled(folder, net, device=DeviceOptions(69))
    assert (info.backend_id, info.soc_model, info.dsp_arch) == (abi.BACKEND_HTP, 69, 79)
    assert info.build_id.startswith("v2.")
    assert 0 < info.blob_size < blob.nbytes
    assert info.core_api[0] == 2
    assert info.devices[0].cores
    (graph,) = info.graphs
    assert graph.name == "conv_relu"
    (x,), (y,) = graph.inputs, graph.outputs
    assert (x.tensor.name, x.tensor.dims, x.tensor.kind) == ("x", (1, 32, 32, 16), TensorKind.APP_WRITE)
    assert y.tensor.quant is not None
    assert y.tensor.quant.scales == (float(np.float32(CASE.out_scale)),)
    assert x.id != y.id


@each_version("htp", "system")
def test_settings_take_effect(folder: Path) -> None:
    asked = GraphOptions(optimization=3, vtcm_mb=2, hvx_threads=6, dlbc=True)
    _, info = compiled(folder, CASE.quantized_net(), device=DeviceOptions(69), options=asked)
    blob = info.graphs[0].htp
    assert blob is not None
    assert (blob.optimization_level, blob.vtcm_size, blob.hvx_threads, blob.dlbc) == (3, 2 << 20, 6, 1)
    check_taken(info, {"conv_relu": asked}, DeviceOptions(69))
    with pytest.raises(BackendError) as caught:
        check_taken(info, {"conv_relu": replace(asked, optimization=2, hvx_threads=4)}, DeviceOptions(57))
    text = str(caught.value)
    assert "SoC 57 was asked for, but the binary is for 69" in text
    assert "graph 'conv_relu': O 2 was asked for, but the library took 3" in text
    assert "hvx_threads 4 was asked for, but the library took 6" in text


@each_version("htp", "system")
def test_switches_are_accepted(folder: Path) -> None:
    options = GraphOptions(
        fold_relu_activation_into_conv_off=True,
        short_depth_conv_on_hmx_off=True,
        advanced_activation_fusion=False,
        high_precision_sigmoid=True,
        float16=True,
        weights_packing=False,
    )
    compiled(folder, CASE.float_net(), options=options)


@each_version("htp", "system")
def test_weights_are_shared(folder: Path) -> None:
    nets = [wide("small", 8), wide("large", 16)]
    apart, _ = compiled(folder, *nets)
    options = ContextOptions(weight_sharing=True)
    shared, info = compiled(folder, *nets, context_options=options)
    assert shared.nbytes < 0.7 * apart.nbytes
    check_taken(info, {}, None, options)
    # The simulator compiles such binaries and does not load them.
    with (
        Backend(folder / "libQnnHtp.so") as htp,
        pytest.raises(BackendError, match="Shared weights buffer isn't supported on this platform"),
    ):
        Context.from_binary(htp, shared, info)


@each_version("htp", "system")
def test_each_soc_is_what_the_table_says(folder: Path) -> None:
    quant = NetQuant((0.5,), (0,))
    tensors = [
        NetTensor("x", TensorKind.APP_WRITE, abi.UFIXED_8, (1, 8, 8, 32), quant),
        NetTensor("y", TensorKind.APP_READ, abi.UFIXED_8, (1, 8, 8, 32), quant),
    ]
    net = build("g", tensors, (node("first", "Relu", ("x",), "y"),))
    for soc in SOCS:
        # A VTCM of 0 asks for all that there is.
        _, info = compiled(folder, net, device=DeviceOptions(soc.model), options=GraphOptions(vtcm_mb=0))
        blob = info.graphs[0].htp
        assert blob is not None
        assert (soc.name, info.dsp_arch, blob.vtcm_size >> 20) == (soc.name, soc.arch, soc.vtcm_mb)


def test_socs_by_name_and_number() -> None:
    assert find_soc().name == "SM8650"
    assert find_soc("sm8750").model == 69
    assert find_soc("43") == find_soc(43) == find_soc("SM8550")
    assert find_soc(30).name == "SM8350"
    assert find_soc(9999).arch is None
    assert soc_of_arch("v79").name == "SM8750"
    assert soc_of_arch(81).arch == 81
    with pytest.raises(UsageError, match="did you mean SM8650"):
        find_soc("SM8651")
    with pytest.raises(UsageError, match="known: v68"):
        soc_of_arch("v12")


@needs_cpu
def test_options_of_htp_are_refused_elsewhere() -> None:
    with Backend("cpu") as cpu:
        with pytest.raises(BackendError, match="takes no HTP context options"):
            Context(cpu, ContextOptions(weight_sharing=True))
        with Context(cpu) as context, pytest.raises(BackendError, match="takes no HTP graph options"):
            context.compose(unary("Relu", (2, 3)), options=GraphOptions(vtcm_mb=4))
        with Context(cpu) as context:
            context.compose(unary("Relu", (2, 3))).finalize()
            with pytest.raises(UsageError, match="has a graph 'g' already"):
                context.compose(unary("Relu", (2, 3)))


@needs_cpu
def test_the_cpu_library_serialises_too() -> None:
    with Backend("cpu") as cpu:
        with Context(cpu) as context:
            graph = context.compose(CASE.float_net())
            graph.finalize()
            direct = graph.execute({"x": CASE.image})["y"]
            blob = context.binary()
        info = context_info(blob)
        with Context.from_binary(cpu, blob, info) as context:
            again = context.graphs["conv_relu"].execute({"x": CASE.image})["y"]
    assert info.backend_id == abi.BACKEND_CPU
    np.testing.assert_array_equal(direct, again)


@each_version("htp", "system")
def test_a_binary_for_another_backend(folder: Path) -> None:
    blob, info = compiled(folder, CASE.quantized_net())
    with (
        Backend(folder / "libQnnHtp.so") as htp,
        pytest.raises(ModelError, match=r"is for CPU, and libQnnHtp\.so is not that one"),
    ):
        Context.from_binary(htp, blob, replace(info, backend_id=3))


@each_version("htp", "system")
def test_damaged_binaries_are_refused(folder: Path) -> None:
    blob, _ = compiled(folder, CASE.quantized_net())
    for damaged in (b"", bytes(8), bytes(4096), blob[:60].tobytes()):
        with pytest.raises(ModelError, match="context binary"):
            context_info(damaged, folder / "libQnnSystem.so")


def wide(name: str, side: int) -> Net:
    """A convolution whose weights make up most of a binary."""
    quant = NetQuant((0.1,), (-128,))
    weight = np.random.default_rng(1).integers(0, 255, (3, 3, 128, 128)).astype(np.uint8)
    dims = (1, side, side, 128)
    tensors = [
        NetTensor("x", TensorKind.APP_WRITE, abi.UFIXED_8, dims, quant),
        static("w", weight, abi.UFIXED_8, quant),
        static("b", np.zeros(128, np.int32), abi.SFIXED_32, NetQuant((0.01,), (0,))),
        NetTensor("y", TensorKind.APP_READ, abi.UFIXED_8, dims, NetQuant((5.0,), (-128,))),
    ]
    return build(name, tensors, (node("conv", "Conv2d", ("x", "w", "b"), "y", CONV_PARAMS),))
