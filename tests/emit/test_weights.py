"""model.bin: a plain tar, byte for byte as the original tools write it."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from openqnn.emit.emission_order import WeightNames
from openqnn.emit.weights import write_weights
from openqnn.errors import BackendError, ModelError
from openqnn.formats.tar import tar_members, write_tar
from openqnn.qnn.net import Net
from tests.emit import graphs
from tests.qnn.nets import ConvRelu, static


def written(net: Net, path: Path) -> bytes:
    write_weights(WeightNames([net]), path)
    return path.read_bytes()


def test_members(tmp_path: Path) -> None:
    net, _ = graphs.conv_relu()
    written(net, tmp_path / "m.bin")
    with tarfile.open(tmp_path / "m.bin", "r:") as archive:
        entries = archive.getmembers()
        contents = [archive.extractfile(entry) for entry in entries]
        data = [file.read() for file in contents if file is not None]
    assert [entry.name for entry in entries] == ["_conv_weight.raw", "bias.raw", "_1x1_weight.raw"]
    for entry in entries:
        assert (entry.mode, entry.uid, entry.gid, entry.mtime, entry.type) == (0o644, 0, 0, 0, b"0")
        assert (entry.uname, entry.gname) == ("", "")
    tensors = [net.tensors[entry.name.removesuffix(".raw")].data for entry in entries]
    assert data == [tensor.tobytes() for tensor in tensors if tensor is not None]


def test_bytes_of_the_header(tmp_path: Path) -> None:
    net, _ = graphs.conv_relu()
    data = written(net, tmp_path / "m.bin")
    assert len(data) == 10240
    assert data[:16] == b"_conv_weight.raw"
    assert data[257:265] == b"ustar\x0000"
    assert data[124:136] == b"%011o\0" % (3 * 3 * 3 * 4 * 4)
    assert data[136:148] == b"00000000000\0"
    with_names = io.BytesIO()
    with tarfile.open(fileobj=with_names, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in ("_conv_weight", "bias", "_1x1_weight"):
            tensor = net.tensors[name].data
            assert tensor is not None
            info = tarfile.TarInfo(f"{name}.raw")
            info.size = tensor.nbytes
            archive.addfile(info, io.BytesIO(tensor.tobytes()))
    assert data == with_names.getvalue()


def test_positions_point_at_the_data(tmp_path: Path) -> None:
    net, _ = graphs.per_channel()
    data = written(net, tmp_path / "m.bin")
    for member in tar_members(tmp_path / "m.bin"):
        tensor = net.tensors[member.name.removesuffix(".raw")].data
        assert tensor is not None
        assert data[member.offset : member.offset + member.size] == tensor.tobytes()


def test_long_names_and_empty_members(tmp_path: Path) -> None:
    name = "layer_" * 40 + ".raw"
    with open(tmp_path / "m.bin", "wb") as file:
        write_tar(file, [(name, memoryview(b"abc")), ("none.raw", memoryview(b""))])
    assert [(m.name, m.size) for m in tar_members(tmp_path / "m.bin")] == [(name, 3), ("none.raw", 0)]


def test_views_are_written_in_order(tmp_path: Path) -> None:
    conv = ConvRelu()
    net = conv.float_net()
    turned = np.ascontiguousarray(conv.weight.transpose(3, 2, 0, 1)).transpose(2, 3, 1, 0)
    assert not turned.flags.c_contiguous
    view = replace(net, tensors={**net.tensors, "w": static("w", turned)})
    assert written(view, tmp_path / "a.bin") == written(net, tmp_path / "b.bin")


def test_failed_write_leaves_nothing(tmp_path: Path) -> None:
    net, _ = graphs.conv_relu()
    short = replace(net.tensors["bias"], data=np.zeros(3, np.float32))
    bad = replace(net, tensors={**net.tensors, "bias": short})
    with pytest.raises(BackendError, match="'bias'"):
        written(bad, tmp_path / "m.bin")
    none = replace(net, tensors={**net.tensors, "bias": replace(short, data=None)})
    with pytest.raises(ModelError, match="'bias' has no data"):
        written(none, tmp_path / "m.bin")
    assert not list(tmp_path.iterdir())
