"""What libQnnSaver wrote comes back as graphs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.emit import lower
from openqnn.errors import ModelError
from openqnn.qnn.net import Net, NetTensor
from openqnn.vendor.remote import save_bundle
from openqnn.vendor.saver_library import read_saver
from openqnn.vendor.trust import trusting
from tests.cli.running import converted
from tests.cli.tool import openqnn as command
from tests.models.samples import sample_inputs
from tests.qnn.nets import ConvRelu, each_version

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler")
SOURCE = "saver_output.c"


def as_written(net: Net) -> Net:
    """Scales are in float32, and where a node came from is not in the file."""
    tensors = {name: _narrow(tensor) for name, tensor in net.tensors.items()}
    return replace(net, tensors=tensors, nodes=tuple(replace(node, source="") for node in net.nodes))


def _narrow(tensor: NetTensor) -> NetTensor:
    if tensor.quant is None:
        return tensor
    scales = tuple(float(np.float32(scale)) for scale in tensor.quant.scales)
    return replace(tensor, quant=replace(tensor.quant, scales=scales))


@each_version("saver")
def test_several_graphs_and_their_encodings(folder: Path, tmp_path: Path) -> None:
    case = ConvRelu()
    nets = [
        case.float_net(),
        replace(case.quantized_net(), name="fixed"),
        replace(case.per_channel_net(), name="channels"),
    ]
    save_bundle(nets, tmp_path, library=folder / "libQnnSaver.so")
    assert [as_written(net) for net in read_saver(tmp_path / SOURCE)] == [as_written(net) for net in nets]


@each_version("saver")
def test_a_real_network(folder: Path, tmp_path: Path) -> None:
    graph, inputs = converted("mtcnn_onet"), sample_inputs("mtcnn_onet")
    save_bundle([lower(graph)], tmp_path, library=folder / "libQnnSaver.so")
    with trusting(), openqnn.Session(graph) as first, openqnn.Session(tmp_path / SOURCE) as second:
        wanted = list(first.run(inputs).values())
        found = second.run(dict(zip(second.input_names, inputs.values(), strict=True)))
    for one, other in zip(wanted, found.values(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert command("inspect", tmp_path / SOURCE, "--run_code").code == 0


CALLS = """
   Qnn_ProfileHandle_t profile;
   VALIDATE(error, interface.profileCreate(backend_0, (QnnProfile_Level_t)1, &profile));
   const QnnProfile_EventId_t* events;
   uint32_t count;
   VALIDATE(error, interface.profileGetEvents(profile, &events, &count));
   VALIDATE(error, interface.profileFree(profile));
   Qnn_ContextBinarySize_t size;
   VALIDATE(error, interface.contextGetBinarySize(context_0, &size));
"""


@each_version("saver")
def test_a_program_that_also_measures_and_saves(folder: Path, tmp_path: Path) -> None:
    net = ConvRelu().float_net()
    save_bundle([net], tmp_path, library=folder / "libQnnSaver.so")
    program = (tmp_path / SOURCE).read_text()
    end = program.index("   VALIDATE(error, interface.contextFree")
    (tmp_path / SOURCE).write_text(program[:end] + CALLS + program[end:])
    assert [as_written(found) for found in read_saver(tmp_path / SOURCE)] == [as_written(net)]


@each_version("saver")
def test_what_is_not_whole(folder: Path, tmp_path: Path) -> None:
    save_bundle([ConvRelu().float_net()], tmp_path, library=folder / "libQnnSaver.so")
    weights = (tmp_path / "params.bin").read_bytes()
    (tmp_path / "params.bin").write_bytes(weights[:-4])
    with pytest.raises(ModelError, match=r"params\.bin is cut off"):
        openqnn.load(tmp_path / SOURCE, trust=True)
    whole = (tmp_path / SOURCE).read_bytes()
    (tmp_path / SOURCE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="cannot be built") as refused:
        openqnn.load(tmp_path / SOURCE, trust=True)
    assert "whole" in refused.value.hint
    (tmp_path / "params.bin").unlink()
    with pytest.raises(ModelError, match=r"there is no params\.bin beside it"):
        openqnn.load(tmp_path / SOURCE, trust=True)
