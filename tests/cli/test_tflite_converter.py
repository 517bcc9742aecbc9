"""TFLite models on the command line: qnn-tflite-converter, qairt-converter, and the commands of openqnn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openqnn
from tests.cli.tool import assert_refused, tool
from tests.cli.tool import openqnn as command_line
from tests.models.fetch import model_path

FACE, WORD = "face_landmark_fp32", "microwakeword_okay_nabu"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_model_becomes_source_weights_and_a_description() -> None:
    done = tool(
        "qnn-tflite-converter", "-i", model_path(FACE), "-d", "input_1", "1,192,192,3", "-o", "face.cpp"
    )
    assert done.code == 0, done.err
    assert "input input_1: float32 1x192x192x3" in done.out
    assert all(Path(name).stat().st_size for name in ("face.cpp", "face.bin", "face_net.json"))


def test_the_models_own_encodings_are_used() -> None:
    done = tool("qnn-tflite-converter", "-i", model_path(WORD), "--float_fallback", "-o", "word.cpp")
    assert done.code == 0, done.err
    assert "keeps state" in done.err
    assert "UFIXED_POINT_8" in Path("word.cpp").read_text(encoding="utf-8")
    assert "_out: " in done.out


def test_a_graph_ends_where_it_is_told() -> None:
    name = "conv2d_30"
    done = tool(
        "qnn-tflite-converter",
        "-i",
        model_path(FACE),
        "--out_node",
        name,
        "--show_unconsumed_nodes",
        "-o",
        "f.cpp",
    )
    assert done.code == 0, done.err
    assert "unconsumed nodes:" in done.out and "CONV_2D 'conv2d_20'" in done.out
    assert "output conv2d_20" not in done.out


def test_a_signature_that_is_not_there_lists_those_that_are() -> None:
    pitch = model_path("basic_pitch_tflite")
    done = tool("qnn-tflite-converter", "-i", pitch, "--signature_name", "main", "-o", "f.cpp")
    assert_refused(done, "no signature 'main'", "serving_default", code=2)
    done = tool("qairt-converter", "-i", pitch, "--tflite_signature_name", "serving_default", "-o", "p.dlc")
    assert done.code == 0, done.err


def test_a_dlc_runs_as_the_model_does() -> None:
    done = tool("qairt-converter", "-i", model_path(FACE), "-o", "face.dlc")
    assert done.code == 0, done.err
    inputs = {"input_1": np.random.default_rng(0).random((1, 192, 192, 3), np.float32)}
    with openqnn.Session(openqnn.load("face.dlc")) as session:
        found = session.run(inputs)
    with openqnn.Session(openqnn.convert(model_path(FACE))) as session:
        wanted = session.run(inputs)
    np.testing.assert_allclose(found["conv2d_20"], wanted["conv2d_20"], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_the_commands_know_a_model_by_its_content(command: str) -> None:
    named_otherwise = Path("model.bin_")
    named_otherwise.write_bytes(model_path(FACE).read_bytes())
    done = command_line(command, named_otherwise)
    assert done.code == 0, done.err
    assert "PRELU" in done.out or "Prelu" in done.out


def test_another_kind_of_file_is_no_tflite_model() -> None:
    Path("m.tflite").write_bytes(b"PK\x03\x04 and more than eight bytes")
    assert_refused(tool("qnn-tflite-converter", "-i", "m.tflite"), "m.tflite", "ZIP archive")
