"""A single damage of a file is told wherever the format has or can have a checksum."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import openqnn
from openqnn.emit import lower
from openqnn.emit.epcontext import read_epcontext, write_epcontext
from openqnn.emit.model_lib import LibraryJob, build_model_library
from openqnn.emit.model_source import write_model_source
from openqnn.errors import ModelError, OpenQnnError, ResourceError
from openqnn.formats.oqnn import read_oqnn, write_oqnn
from openqnn.qnn.library import find_library
from openqnn.qnn.load_errors import explain_load, is_cut_off
from openqnn.vendor import jobs, remote
from openqnn.vendor.library_worker import LibraryWorker
from openqnn.worker.child import Child
from openqnn.worker.messages import Task
from openqnn.worker.serve import Reporter
from tests.libraries import need
from tests.onnx_models import add_weight, save
from tests.qnn.nets import needs_htp

DAMAGES = 24
WEIGHT = np.random.default_rng(1).normal(size=(64, 2, 3)).astype(np.float32)


@pytest.fixture
def graph(tmp_path: Path) -> openqnn.Graph:
    return openqnn.convert(save(add_weight(WEIGHT), tmp_path / "m.onnx"))


def same(one: openqnn.Graph, other: openqnn.Graph) -> bool:
    arrays = [{v.name: v.data for v in g.constants()} for g in (one, other)]
    alike = arrays[0].keys() == arrays[1].keys()
    return alike and all(np.array_equal(arrays[0][n], arrays[1][n]) for n in arrays[0])  # type: ignore[arg-type]


def damaged(data: bytes, seed: int) -> bytes:
    """The bytes with one bit turned over, or a sector zeroed."""
    chance, made = random.Random(seed), bytearray(data)
    at = chance.randrange(len(made))
    if seed % 4:
        made[at] ^= 1 << chance.randrange(8)
    else:
        made[at : at + 512] = bytes(len(made[at : at + 512]))
    return bytes(made)


@pytest.mark.parametrize("suffix", ["oqnn", "dlc"])
def test_no_damage_changes_weights_without_a_word(suffix: str, graph: openqnn.Graph, tmp_path: Path) -> None:
    if suffix == "dlc":
        need("ir")
    whole, file = tmp_path / f"whole.{suffix}", tmp_path / f"x.{suffix}"
    graph.save(whole)
    data, right = whole.read_bytes(), openqnn.load(whole)
    for seed in range(DAMAGES):
        file.write_bytes(damaged(data, seed))
        try:
            found = openqnn.load(file)
        except OpenQnnError:
            continue
        assert same(found, right), f"seed {seed}"


def test_weights_that_are_not_those_of_the_source(graph: openqnn.Graph, tmp_path: Path) -> None:
    written = write_model_source([lower(graph)], tmp_path / "m")
    assert written.bin is not None
    data = bytearray(written.bin.read_bytes())
    data[1000] ^= 4
    written.bin.write_bytes(data)
    with pytest.raises(ModelError, match="its checksum differs"):
        build_model_library(LibraryJob(written.cpp, written.bin), tmp_path, ["x86_64-linux-clang"])


@needs_htp
@pytest.mark.parametrize("external", [False, True])
def test_a_context_binary_in_or_beside_a_model(external: bool, graph: openqnn.Graph, tmp_path: Path) -> None:
    made = openqnn.compile(graph)
    files = write_epcontext(tmp_path / "ep.onnx", made.blob, made.info, embed=not external)
    assert read_epcontext(files[0]).binary() == made.blob.tobytes()
    data = bytearray(files[-1].read_bytes())
    data[-5000] ^= 1
    files[-1].write_bytes(data)
    with pytest.raises(ModelError, match="its checksum differs"):
        read_epcontext(files[0]).binary()


def test_external_data_with_a_checksum(tmp_path: Path) -> None:
    path = save(add_weight(WEIGHT), tmp_path / "m.onnx")
    model = onnx.load(path)
    onnx.save_model(model, path, save_as_external_data=True, location="w.data", size_threshold=0)
    model = onnx.load(path, load_external_data=False)
    digest = hashlib.sha1((tmp_path / "w.data").read_bytes()).hexdigest()
    entry = model.graph.initializer[0].external_data.add()
    entry.key, entry.value = "checksum", digest
    path.write_bytes(model.SerializeToString())
    openqnn.convert(path)
    data = bytearray((tmp_path / "w.data").read_bytes())
    data[40] ^= 1
    (tmp_path / "w.data").write_bytes(data)
    with pytest.raises(ModelError, match="does not have the checksum"):
        openqnn.convert(path)


@pytest.mark.parametrize("size", [20, 64])
def test_a_graph_that_is_overwritten_under_an_open_session(
    size: int, graph: openqnn.Graph, tmp_path: Path
) -> None:
    file, other = tmp_path / "m.oqnn", tmp_path / "other.oqnn"
    graph.save(file)
    openqnn.convert(save(add_weight(WEIGHT[:size] * 2), tmp_path / "other.onnx")).save(other)
    loaded = openqnn.load(file)
    x = {loaded.inputs[0].name: np.zeros(loaded.inputs[0].shape, np.float32)}
    with openqnn.Session(loaded) as session:
        first = session.run(x)
        file.rename(tmp_path / "moved")
        shutil.copyfile(other, file)  # another file of the same name
        assert all(np.array_equal(a, b) for a, b in zip(first.values(), session.run(x).values(), strict=True))
        shutil.copyfile(other, tmp_path / "moved")  # the very file
        (tmp_path / "moved").rename(file)
        with pytest.raises(ModelError, match="was overwritten while its weights were in use"):
            session.run(x)
    with pytest.raises(ModelError, match="was overwritten"):
        loaded.save(tmp_path / "copy.oqnn")


def test_a_constant_of_another_type_than_the_text_says(graph: openqnn.Graph, tmp_path: Path) -> None:
    graph.save(tmp_path / "m.oqnn")
    text, constants, _ = read_oqnn(tmp_path / "m.oqnn")
    turned = {name: array.view(np.int32) for name, array in constants.items()}
    write_oqnn(tmp_path / "n.oqnn", text, turned)
    with pytest.raises(ModelError, match="is float32, and its data int32"):
        openqnn.load(tmp_path / "n.oqnn")


# -- sound files, on a machine that fails


def killed(reporter: Reporter, **_: object) -> None:
    reporter.step("work")
    os.kill(os.getpid(), signal.SIGKILL)


def aborted(reporter: Reporter) -> None:
    del reporter
    print("terminate called after throwing an instance of 'std::bad_alloc'", flush=True)
    os.abort()


@pytest.mark.parametrize("work", [killed, aborted])
def test_a_child_without_memory_is_no_crash_of_a_library(work: Callable[..., None]) -> None:
    child = Child(Task(work))
    try:
        with pytest.raises(ResourceError, match="ended by the system"):
            child.answer("libX.so", 30)
    finally:
        child.end()


def test_a_file_is_not_to_blame_for_a_killed_child(
    graph: openqnn.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("ir")
    graph.save(tmp_path / "m.dlc")
    monkeypatch.setattr(jobs, "read_dlc_file", killed)
    with LibraryWorker() as worker, pytest.raises(ResourceError, match="for lack of memory"):
        remote.read_dlc(tmp_path / "m.dlc", worker=worker)


def test_too_little_memory_for_a_library() -> None:
    need("system")
    words = "libQnnSystem.so: failed to map segment from shared object: Cannot allocate memory"
    reason, hint = explain_load(str(find_library("system")), words)
    assert "not enough memory" in reason
    assert "ulimit" in hint


def test_a_library_whose_table_of_segments_lies_nowhere(tmp_path: Path) -> None:
    head = bytearray(64)
    head[:5] = b"\x7fELF\x02"
    head[32:40] = (1 << 63).to_bytes(8, "little")
    (tmp_path / "x.so").write_bytes(head)
    assert is_cut_off(tmp_path / "x.so")
