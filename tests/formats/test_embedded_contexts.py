"""Context binaries out of other files and into EPContext models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn import Session
from openqnn.errors import ModelError
from openqnn.formats.dlc_contexts import dlc_contexts
from openqnn.formats.embedded_contexts import contexts_in, holder_of
from tests.cli.running import prepare
from tests.cli.tool import assert_refused, tool
from tests.cli.tool import openqnn as command
from tests.libraries import need
from tests.models.fetch import model_path
from tests.models.samples import sample_inputs


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("libQnnHtp.so")
    file = tmp_path_factory.mktemp("contexts") / "digits.bin"
    openqnn.compile(openqnn.convert(model_path("mnist_conv"))).save(file)
    return file


@pytest.mark.parametrize(("kind", "suffix"), [(b"ET12", ".pte"), (b"TFL3", ".tflite")])
@pytest.mark.parametrize("count", [1, 2])
def test_binaries_come_out_as_they_went_in(
    kind: bytes, suffix: str, count: int, binary: Path, tmp_path: Path
) -> None:
    """Both formats are flatbuffers with the binary somewhere inside, or behind."""
    data = binary.read_bytes()
    file = tmp_path / f"model{suffix}"
    file.write_bytes(b"\x10\0\0\0" + kind + bytes(100) + b"".join(data + bytes(36) for _ in range(count)))
    assert holder_of(file)
    assert contexts_in(file) == [data] * count
    done = command("extract", file, "-o", tmp_path / "out.bin")
    assert done.code == 0, done.err
    names = ["out.bin"] if count == 1 else ["out_0.bin", "out_1.bin"]
    assert all((tmp_path / name).read_bytes() == data for name in names)
    with Session(tmp_path / names[0], "htp") as session, Session(binary, "htp") as first:
        sample = {session.input_names[0]: next(iter(sample_inputs("mnist_conv").values()))}
        sample = {k: v.reshape(session.graph.inputs[0].shape) for k, v in sample.items()}
        for name, array in first.run(sample).items():
            np.testing.assert_array_equal(session.run(sample)[name], array)


def test_a_binary_becomes_an_epcontext_model_and_back(binary: Path, tmp_path: Path) -> None:
    for flags in ((), ("--external",)):
        target = tmp_path / f"model{len(flags)}.onnx"
        assert command("wrap", binary, "-o", target, *flags).code == 0
        assert command("extract", target, "-o", tmp_path / f"{len(flags)}.bin").code == 0
        assert (tmp_path / f"{len(flags)}.bin").read_bytes() == binary.read_bytes()
    assert_refused(command("wrap", binary, "-o", tmp_path / "model0.onnx"), "exists")
    assert_refused(command("wrap", binary, "-o", tmp_path / "m.dlc"), "--dlc MODEL.dlc", code=2)
    assert_refused(command("wrap", binary, "-o", tmp_path / "m.txt"), "an EPContext model (.onnx)", code=2)


def test_a_binary_goes_into_the_dlc_of_its_graphs_and_back(binary: Path, tmp_path: Path) -> None:
    """libQnnSystem reads the graphs as before, and what was compiled runs without compiling."""
    made = prepare("mnist_conv", tmp_path)
    target = tmp_path / "prepared.dlc"
    assert command("wrap", binary, "--dlc", made.dlc, "-o", target).code == 0
    assert dlc_contexts(target) == {"SM8650": binary.read_bytes()}
    assert openqnn.load(target).nodes
    assert command("extract", target, "-o", tmp_path / "out.bin").code == 0
    assert (tmp_path / "out.bin").read_bytes() == binary.read_bytes()
    assert made.run("--retrieve_context", target, backend="htp", to="kept").code == 0
    assert made.run("--retrieve_context", binary, backend="htp", to="alone").code == 0
    assert made.results("kept") == made.results("alone")
    again = command("wrap", binary, "--dlc", target, "-o", tmp_path / "again.dlc")
    assert_refused(again, "holds a context for SM8650 already", code=2)
    assert_refused(
        command("extract", made.dlc, "-o", tmp_path / "x.bin"), "model.dlc holds no context binary"
    )
    (tmp_path / "other").mkdir()
    other = prepare("mtcnn_onet", tmp_path / "other")
    refused = command("wrap", binary, "--dlc", other.dlc, "-o", tmp_path / "again.dlc")
    assert_refused(refused, "the context is of graph", "the DLC that the context was compiled from")
    assert not (tmp_path / "again.dlc").exists()
    damaged = bytearray(target.read_bytes())
    damaged[damaged.rindex(binary.read_bytes()[-64:])] ^= 1
    (tmp_path / "bad.dlc").write_bytes(damaged)
    assert_refused(command("extract", tmp_path / "bad.dlc", "-o", tmp_path / "x.bin"), "damaged one")


def test_a_dlc_is_prepared_with_what_was_compiled(tmp_path: Path) -> None:
    made = prepare("mnist_conv", tmp_path)
    target = tmp_path / "prepared.dlc"
    prepared = tool("qairt-dlc-prepare", "-i", made.dlc, "-o", target, "--htp_socs", "sm8550")
    assert prepared.code == 0, prepared.err
    (chip,) = dlc_contexts(target)
    assert chip == "SM8550"
    assert made.run("--retrieve_context", target, backend="htp").code == 0


def test_files_without_a_context(binary: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.pte"
    file.write_bytes(b"\x10\0\0\0ET12" + bytes(1000))
    with pytest.raises(ModelError, match="an ExecuTorch program has no context binary"):
        contexts_in(file)
    file.write_bytes(b"\x10\0\0\0ET12" + binary.read_bytes()[:-100])
    with pytest.raises(ModelError, match="is cut off"):
        contexts_in(file)
    assert_refused(command("extract", file, "-o", tmp_path / "x.bin"), "is cut off")
    assert_refused(command("extract", tmp_path / "none.pte"), "none.pte")
    assert not (tmp_path / "x.bin").exists()
