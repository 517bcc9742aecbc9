"""Graphs in files: constants come back as views of the mapped file, and damage is noticed."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import openqnn
from openqnn.errors import ModelError, OutputError
from openqnn.formats import oqnn as container
from openqnn.formats.oqnn import MAGIC, is_oqnn, read_oqnn, write_oqnn
from openqnn.ir import DType, Graph, Node, Value
from openqnn.ir.oqnn import load_graph

WEIGHT = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
ARRAYS = {
    "plain": WEIGHT,
    "transposed": WEIGHT.transpose(2, 3, 1, 0),
    "strided": WEIGHT[:, ::2],
    "broadcast": np.broadcast_to(np.float32([1, 2, 3]), (4, 3)),
    "reversed": WEIGHT[::-1],
    "scalar": np.asarray(3, np.int16),
    "empty": np.zeros((0, 3), np.float32),
    "empty turned": np.zeros((2, 0, 3), np.int8).transpose(2, 0, 1),
    "bfloat16": np.asarray([1.5, -2.25, np.inf], ml_dtypes.bfloat16),
    "float16": np.asarray([[1.5], [2]], np.float16),
    "flags": np.asarray([True, False]),
    "long": np.asarray([-(2**63), 2**63 - 1]),
    'a "name"\n/ü %': np.ones(9, np.uint8),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "arrays.oqnn"
    write_oqnn(path, "the text ü", ARRAYS)
    return path


def test_arrays_come_back(file: Path) -> None:
    text, arrays, _ = read_oqnn(file)
    assert text == "the text ü"
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert arrays[name].tobytes() == array.tobytes(), name


def test_arrays_are_aligned_views_of_the_file(file: Path) -> None:
    for array in read_oqnn(file)[1].values():
        if array.size:
            assert not array.flags.writeable, "a view of a mapping that is read-only"
            assert not array.flags.owndata
            assert array.ctypes.data % container.ALIGN == 0


def test_a_turned_array_is_written_without_a_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("copied")

    monkeypatch.setattr(container.np, "ascontiguousarray", refuse)
    write_oqnn(tmp_path / "f", "", {"w": ARRAYS["transposed"], "one": WEIGHT[:1].transpose(3, 0, 2, 1)})


def test_every_truncation_is_noticed(file: Path, tmp_path: Path) -> None:
    whole = file.read_bytes()
    cut = tmp_path / "cut.oqnn"
    for length in [*range(40), *range(40, len(whole), 37), len(whole) - 1]:
        cut.write_bytes(whole[:length])
        with pytest.raises(ModelError, match=r"cut\.oqnn: "):
            read_oqnn(cut)


@given(st.data())
def test_damage_is_a_model_error_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.oqnn"
    write_oqnn(path, "text", {"a": WEIGHT, "b": ARRAYS["bfloat16"]})
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(8, 200))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    with suppress(ModelError):
        openqnn.load(path)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"null",
        b'{"text": ""}',
        b'{"text": "", "constants": []}',
        b'{"text": "", "constants": {"a": []}}',
        b'{"text": "", "constants": {"a": ["float32", [2], [0], 99999]}}',
        b'{"text": "", "constants": {"a": ["float32", [2], [0], -64]}}',
        b'{"text": "", "constants": {"a": ["float32", [-1], [0], 0]}}',
        b'{"text": "", "constants": {"a": ["float32", [2], [1], 0]}}',
        b'{"text": "", "constants": {"a": ["float32", ["x"], [0], 0]}}',
        b'{"text": "", "constants": {"a": ["object", [1], [0], 0]}}',
        b'{"text": "", "constants": {"a": ["float32", [99999999999999999999], [0], 0]}}',
        b'{"text": "", "constants": {"a": ["float32", [4294967296, 4294967296], [0, 1], 0]}}',
        b'{"text": "", "constants": {"a": ["float32", [1], [0], 1e400]}}',
        b"[" * 100000,
    ],
)
def test_a_header_that_means_nothing_is_refused(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "bad.oqnn"
    path.write_bytes(MAGIC + len(header).to_bytes(8, "little") + header + bytes(256))
    with pytest.raises(ModelError, match=r"bad\.oqnn: the file is damaged or truncated"):
        read_oqnn(path)


def test_other_files_are_not_containers(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert not is_oqnn(path)
    for content in (b"", b"OQNN", b"hello, world"):
        path.write_bytes(content)
        assert not is_oqnn(path)
        with pytest.raises(ModelError):
            read_oqnn(path)


def test_a_graph_comes_back_with_its_constants_mapped(tmp_path: Path) -> None:
    graph = Graph("g")
    x = graph.add_input("x", DType.FLOAT_32, (1, 4))
    large = graph.constant("large weight/ü", WEIGHT.transpose(3, 2, 1, 0), DType.FLOAT_32)
    small = graph.constant("small", np.float32([1, 2]), DType.FLOAT_32)
    y = Value("y", DType.FLOAT_32, (1, 4))
    graph.add(Node("Op", "op", [x, large, small], [y]))
    graph.add_output(y)
    graph.save(tmp_path / "g.oqnn")
    loaded = load_graph(tmp_path / "g.oqnn")
    assert str(loaded) == str(graph)
    data = {v.name: v.data for v in loaded.constants()}
    assert np.array_equal(data["large weight/ü"], large.data)
    assert not data["large weight/ü"].flags.owndata


def test_a_text_that_does_not_fit_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "odd.oqnn"
    write_oqnn(path, "graph nonsense", {})
    with pytest.raises(ModelError, match=r"odd\.oqnn: .*line 1"):
        openqnn.load(path)


def test_writing_into_nowhere_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written: "):
        write_oqnn(tmp_path / "file" / "g.oqnn", "", {})
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_saving_over_the_file_that_it_was_loaded_from(tmp_path: Path) -> None:
    """The old file stays mapped until its last view is gone: the new one is written beside it."""
    path = tmp_path / "a.oqnn"
    write_oqnn(path, "one", {"w": WEIGHT})
    _, arrays, _ = read_oqnn(path)
    write_oqnn(path, "two", arrays)
    text, again, _ = read_oqnn(path)
    assert text == "two"
    assert np.array_equal(again["w"], WEIGHT)
    assert json.dumps("two").encode() in path.read_bytes()
