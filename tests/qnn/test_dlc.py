"""Graphs into DLC files and back, through the real libraries of every QNN version at hand."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from openqnn.errors import BackendError, ModelError, OutputError, UsageError
from openqnn.qnn import abi
from openqnn.qnn.backend import Backend
from openqnn.qnn.context import Context
from openqnn.qnn.dlc import compose_dlc, read_dlc, write_dlc
from openqnn.qnn.dlc_merge import DlcFile
from openqnn.qnn.dlc_renames import RENAMED, UNREADABLE, UNWRITABLE
from openqnn.qnn.net import Net, NetNode, NetQuant, NetScalar, NetTensor, TensorKind
from openqnn.qnn.recorder import Recorder
from openqnn.qnn.system_api import SystemApi
from tests.qnn.nets import ConvRelu, build, each_version, needs_cpu, node, static, u32, unary


@each_version("ir", "system")
def test_what_is_written_comes_back(folder: Path, tmp_path: Path) -> None:
    for net in (many_kinds(), ConvRelu().quantized_net(), ConvRelu().float_net()):
        assert round_trip(folder, tmp_path, net) == [as_stored(net)]


@each_version("ir", "system")
def test_several_graphs_in_one_file(folder: Path, tmp_path: Path) -> None:
    case = ConvRelu()
    nets = [
        case.float_net(),
        replace(unary("Relu", (2, 3)), name="without_weights"),
        replace(case.per_channel_net(), name="per_channel"),
        replace(many_kinds(), name="kinds"),
    ]
    assert round_trip(folder, tmp_path, *nets) == [as_stored(net) for net in nets]


@each_version("ir", "system")
@pytest.mark.parametrize("bitwidth", [None, 4])
def test_encodings_per_channel_come_back(folder: Path, tmp_path: Path, bitwidth: int | None) -> None:
    net = ConvRelu().per_channel_net(bitwidth)
    with Backend(folder / "libQnnIr.so") as ir:
        if bitwidth and ir.api.core_version < (2, 40, 0):
            with pytest.raises(BackendError, match=r"'w': .* loses the scales of 4-bit channels"):
                write_dlc(ir, [net], tmp_path / "x.dlc")
            return
    assert round_trip(folder, tmp_path, net) == [as_stored(net)]


@each_version("ir", "system")
def test_every_renamed_operation_keeps_its_name(folder: Path, tmp_path: Path) -> None:
    nets = [replace(single(op), name=op) for op in [*RENAMED, "Relu6", "Relu1"]]
    nets += [replace(family(name, number), name=f"{name}_{number}") for name, number in RENAMED.values()]
    back = round_trip(folder, tmp_path, *nets)
    assert [net.nodes[0].op for net in back] == [net.nodes[0].op for net in nets]
    assert back == [as_stored(net) for net in nets]


@each_version("ir", "system")
def test_a_strangers_file_gets_single_operations(folder: Path, tmp_path: Path) -> None:
    from openqnn.qnn import dlc

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dlc, "notes", lambda net: {})
        (add, floor) = round_trip(
            folder,
            tmp_path,
            family("ElementWiseBinary", 0),
            replace(family("ElementWiseBinary", 4), name="floor"),
        )
    assert add.nodes[0].op == "ElementWiseAdd"
    assert floor.nodes[0].op == "ElementWiseBinary"  # the single one is wrong on HTP


@each_version("ir", "system")
def test_resize_comes_back_whole(folder: Path, tmp_path: Path) -> None:
    params = (
        ("exclude_outside", NetScalar(abi.BOOL_8, False)),
        ("interpolation_mode", NetScalar(abi.UINT_32, 1)),
        ("transformation_mode", NetScalar(abi.UINT_32, 1)),
    )
    net = unary("Resize", (1, 4, 4, 2), params, to=(1, 8, 8, 2))
    assert round_trip(folder, tmp_path, net) == [as_stored(net)]


@each_version("ir", "system")
def test_an_input_left_out_stays_out(folder: Path, tmp_path: Path) -> None:
    tensors = [*unary("Relu", (2, 3)).tensors.values(), static("beta", np.ones(3, np.float32))]
    params = (u32("axes", [1]), ("epsilon", NetScalar(abi.FLOAT_32, 0.5)))
    net = build("norm", tensors, (node("norm", "LayerNorm", ("x", None, "beta"), "y", params),))
    assert round_trip(folder, tmp_path, net) == [as_stored(net)]


@each_version("ir")
@pytest.mark.parametrize("op", sorted(UNREADABLE | UNWRITABLE))
def test_operations_that_dlc_cannot_hold_are_refused(folder: Path, tmp_path: Path, op: str) -> None:
    with Backend(folder / "libQnnIr.so") as ir, pytest.raises(BackendError, match=f"DLC: {op} 'first'"):
        write_dlc(ir, [unary(op, (2, 3))], tmp_path / "x.dlc")
    assert not list(tmp_path.iterdir())


@each_version("ir")
def test_refusals_leave_nothing_behind(folder: Path, tmp_path: Path) -> None:
    relu = unary("Relu", (2, 3))
    with Backend(folder / "libQnnIr.so") as ir:
        with pytest.raises(UsageError, match="different names"):
            write_dlc(ir, [relu, relu], tmp_path / "x.dlc")
        with pytest.raises(OutputError, match="cannot write"):
            write_dlc(ir, [relu], tmp_path / "none" / "x.dlc")
        broken = replace(relu, name="other", nodes=(node("first", "Relu", ("nowhere",), "y"),))
        with pytest.raises(BackendError, match="no tensor 'nowhere'"):
            write_dlc(ir, [relu, broken], tmp_path / "x.dlc")
    assert not list(tmp_path.iterdir())


@each_version("ir", "system")
def test_a_damaged_record_is_told_by_name_with_what_to_do(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.dlc"
    with Backend(folder / "libQnnIr.so") as ir:
        write_dlc(ir, [ConvRelu().float_net()], path)
        record, content = DlcFile(path).records["model"], bytearray(path.read_bytes())
        content[record.offset + 8 : record.offset + 16] = b"\xff" * 8
        path.write_bytes(content)
        with pytest.raises(ModelError, match="damaged: record 'model' does not have its checksum") as caught:
            read_dlc(ir, SystemApi(folder / "libQnnSystem.so"), path)
    assert "copy the file again" in str(caught.value.hint)


@each_version("ir", "system")
def test_files_that_are_no_dlc(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.dlc"
    with Backend(folder / "libQnnIr.so") as ir:
        system = SystemApi(folder / "libQnnSystem.so")
        for content in (b"", b"no", b"PK\x05\x06" + bytes(18)):
            path.write_bytes(content)
            with pytest.raises(ModelError, match=r"x\.dlc"):
                read_dlc(ir, system, path)
        with pytest.raises(ModelError, match="is not a DLC file"):
            read_dlc(ir, system, tmp_path / "none.dlc")


@each_version("ir")
def test_weights_that_graphs_have_in_common_are_stored_once(folder: Path, tmp_path: Path) -> None:
    case = ConvRelu()
    other = ConvRelu()
    other.bias = other.bias + 1
    nets = [c.float_net() for c in (case, case, other)]
    nets = [replace(net, name=f"net{i}") for i, net in enumerate(nets)]
    with Backend(folder / "libQnnIr.so") as ir:
        write_dlc(ir, nets, tmp_path / "x.dlc")
        found = read_dlc(ir, SystemApi(folder / "libQnnSystem.so"), tmp_path / "x.dlc")
    weights = DlcFile(tmp_path / "x.dlc").read("model.params.bin")
    for bias in (case.bias, other.bias):
        assert weights.count(struct.pack("<32f", *bias)) == 1
    for net, wanted in zip(found, (case, case, other), strict=True):
        biases = [t.data for t in net.tensors.values() if t.data is not None and t.data.size == 32]
        np.testing.assert_array_equal(biases[0].ravel(), wanted.bias)


def round_trip(folder: Path, tmp_path: Path, *nets: Net) -> list[Net]:
    path = tmp_path / "x.dlc"
    with Backend(folder / "libQnnIr.so") as ir:
        write_dlc(ir, nets, path)
        return read_dlc(ir, SystemApi(folder / "libQnnSystem.so"), path)


def many_kinds() -> Net:
    """Convolution, Relu, concat, reduction and slice: parameters of each kind, two inputs and outputs."""
    f32 = abi.FLOAT_32
    tensors = [
        NetTensor("b_input", TensorKind.APP_WRITE, f32, (1, 8, 8, 3)),
        NetTensor("a_input", TensorKind.APP_WRITE, f32, (1, 8, 8, 4)),
        static("weight", np.arange(3 * 3 * 3 * 4, dtype=np.float32).reshape(3, 3, 3, 4)),
        NetTensor("conv_out", TensorKind.NATIVE, f32, (1, 8, 8, 4)),
        NetTensor("relu_out", TensorKind.NATIVE, f32, (1, 8, 8, 4)),
        NetTensor("cat_out", TensorKind.NATIVE, f32, (1, 8, 8, 8)),
        NetTensor("z_sum", TensorKind.APP_READ, f32, (1, 1, 1, 8)),
        NetTensor("c_slice", TensorKind.APP_READ, f32, (1, 4, 8, 8)),
    ]
    ranges = static("ranges", np.array([[0, 1, 1], [0, 8, 2], [0, 8, 1], [0, 8, 1]], np.int32))
    zero = NetScalar(abi.UINT_32, 0)
    masks = tuple((name, zero) for name in ("begin_mask", "end_mask", "new_axes_mask", "shrink_axes"))
    conv_params = (
        u32("dilation", [1, 1]),
        ("group", NetScalar(abi.UINT_32, 1)),
        u32("pad_amount", [[1, 1], [1, 1]]),
        u32("stride", [1, 1]),
    )
    nodes = (
        node("conv", "Conv2d", ("b_input", "weight"), "conv_out", conv_params),
        node("relu", "Relu", ("conv_out",), "relu_out"),
        node("cat", "Concat", ("relu_out", "a_input"), "cat_out", (("axis", NetScalar(abi.UINT_32, 3)),)),
        node("sum", "ReduceSum", ("cat_out",), "z_sum", (
            u32("axes", [1, 2]), ("keep_dims", NetScalar(abi.BOOL_8, True)),
        )),
        node("slice", "StridedSlice", ("cat_out",), "c_slice", (*masks[:3], ("ranges", ranges), masks[3])),
    )  # fmt: skip
    net = build("many_kinds", tensors, nodes)
    return replace(net, outputs=("z_sum", "c_slice"))


def as_stored(net: Net) -> Net:
    """What a file can hold: float32 scales and parameters in alphabetical order."""
    tensors = {name: replace(t, quant=_float32(t.quant)) for name, t in net.tensors.items()}
    return replace(net, tensors=tensors, nodes=tuple(_stored_node(n) for n in net.nodes))


def _stored_node(n: NetNode) -> NetNode:
    return replace(n, params=tuple(sorted(n.params, key=lambda item: item[0])))


def _float32(quant: NetQuant | None) -> NetQuant | None:
    if quant is None:
        return None
    return replace(quant, scales=tuple(float(np.float32(scale)) for scale in quant.scales))


def single(op: str) -> Net:
    """One operation of a family, with the parameters that it needs."""
    number = {"Elu": ("alpha",), "ReluMinMax": ("max_value", "min_value")}.get(op, ())
    number = ("beta", "threshold") if op == "ElementWiseSoftplus" else number
    params = tuple((name, NetScalar(abi.FLOAT_32, 1.5)) for name in number)
    if RENAMED.get(op, ("",))[0] == "ElementWiseBinary":
        return binary(op, params)
    return unary(op, (2, 3), params)


def family(name: str, number: int) -> Net:
    operation = (("operation", NetScalar(abi.UINT_32, number)),)
    return binary(name, operation) if name == "ElementWiseBinary" else unary(name, (2, 3), operation)


def binary(op: str, params: tuple[tuple[str, NetScalar], ...]) -> Net:
    net = unary(op, (2, 3), params)
    other = NetTensor("z", TensorKind.APP_WRITE, abi.FLOAT_32, (2, 3))
    tensors = [net.tensors["x"], other, net.tensors["y"]]
    return build("g", tensors, (node("first", op, ("x", "z"), "y", params),))


@needs_cpu
def test_a_file_is_composed_where_it_runs(tmp_path: Path) -> None:
    case, path = ConvRelu(), tmp_path / "x.dlc"
    with Backend("ir") as ir:
        write_dlc(ir, [case.float_net()], path)
    with Backend("cpu") as cpu, Context(cpu) as context:
        recorder = Recorder(cpu.api)
        (net,) = recorder.nets(compose_dlc(context, cpu, SystemApi(), path, recorder))
        graph = context.adopt(net, recorder.handle(net.name), recorder.tensor_ids(net.name))
        graph.finalize()
        result = graph.execute({"x": case.image})["y"]
    np.testing.assert_allclose(result, case.reference(), atol=1e-5)


@needs_cpu
def test_borrowed_weights_are_those_of_the_file(tmp_path: Path) -> None:
    path, rng = tmp_path / "x.dlc", np.random.default_rng(0)
    weights = [rng.standard_normal((200, 200)).astype(np.float32) for _ in range(4)]
    tensors = [NetTensor("x0", TensorKind.APP_WRITE, abi.FLOAT_32, (1, 200))]
    nodes = []
    for index, weight in enumerate(weights):
        kind = TensorKind.NATIVE if index < 3 else TensorKind.APP_READ
        tensors += [static(f"w{index}", weight), NetTensor(f"x{index + 1}", kind, abi.FLOAT_32, (1, 200))]
        nodes.append(node(f"n{index}", "FullyConnected", (f"x{index}", f"w{index}"), f"x{index + 1}"))
    with Backend("ir") as ir:
        write_dlc(ir, [build("g", tensors, tuple(nodes))], path)
        (copied,) = read_dlc(ir, SystemApi(), path)
        (borrowed,) = read_dlc(ir, SystemApi(), path, borrow=True)
    assert borrowed == copied
    for index, weight in enumerate(weights):
        np.testing.assert_array_equal(borrowed.tensors[f"w{index}"].data, weight)
