"""Caffe files that are damaged or incomplete are refused with a reason, and all problems at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.errors import DynamicShapeError, ModelError, UnsupportedError, UsageError
from tests.cli.tool import openqnn as command
from tests.frontends.caffe.build import caffemodel, inputs_text, layer_text, part, write_network

CONV = "convolution_param { num_output: 2 kernel_size: 3 }"
WEIGHTS = {"it": [np.ones((2, 4, 3, 3), np.float32), np.ones(2, np.float32)]}
IMAGE = (1, 4, 8, 8)


def convolution(folder: Path) -> Path:
    text = inputs_text([IMAGE]) + layer_text("Convolution", CONV, 1, 1)
    return write_network(folder, text, WEIGHTS)


def test_weights_that_are_missing(tmp_path: Path) -> None:
    path = convolution(tmp_path)
    path.with_suffix(".caffemodel").unlink()
    with pytest.raises(ModelError, match="with the weights of 'it' is missing") as e:
        openqnn.convert(path)
    assert "net.caffemodel" in e.value.hint
    with pytest.raises(ModelError, match=r"other\.caffemodel: no such file"):
        openqnn.convert(path, source_options={"caffemodel": str(tmp_path / "other.caffemodel")})


def test_weights_without_their_network(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(caffemodel(WEIGHTS))
    with pytest.raises(ModelError, match="without their network") as e:
        openqnn.convert(path)
    assert "a.prototxt" in e.value.hint


def test_weights_of_another_network(tmp_path: Path) -> None:
    path = convolution(tmp_path)
    path.with_suffix(".caffemodel").write_bytes(caffemodel({"other": WEIGHTS["it"]}))
    with pytest.raises(UnsupportedError, match="the file of weights has none for it"):
        openqnn.convert(path)
    path.with_suffix(".caffemodel").write_bytes(caffemodel({"it": [np.ones((3, 4, 3, 3), np.float32)] * 2}))
    with pytest.raises(UnsupportedError, match="does not fit num_output 2"):
        openqnn.convert(path)


@pytest.mark.parametrize("old", [False, True])
def test_both_forms_of_the_file_of_weights(old: bool, tmp_path: Path) -> None:
    path = convolution(tmp_path)
    path.with_suffix(".caffemodel").write_bytes(caffemodel(WEIGHTS, old=old))
    with openqnn.Session(openqnn.convert(path)) as session:
        found = session.run({"x0": np.ones(IMAGE, np.float32)})
    np.testing.assert_array_equal(found["y"], np.full((1, 2, 6, 6), 37, np.float32))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[: len(data) // 2], "truncated"),
        (lambda data: b"", "the file is empty"),
        (lambda data: b"\x89PNG" + data, "no weights of Caffe"),
        (lambda data: part(1, b"net"), "no layer in it has weights"),
        (lambda data: data.replace(b"\x02\x04\x03\x03", b"\x02\x04\x03\x04"), "has 72 values"),
        (lambda data: data.replace(b"\x02\x04\x03\x03", b"\xff\xff\xff\x7f"), "has 72 values"),
    ],
)
def test_damaged_weights(damage, reason: str, tmp_path: Path) -> None:
    path = convolution(tmp_path)
    weights = path.with_suffix(".caffemodel")
    weights.write_bytes(damage(weights.read_bytes()))
    with pytest.raises(ModelError, match=reason):
        openqnn.convert(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("layer { name: 'a' type: 'ReLU'", r"net\.prototxt:2: '}' is missing; the file may be truncated"),
        ("layer { name }", "':' or '{' is expected behind 'name'"),
        ("layer { name: }", "a value is expected, not '}'"),
        ("layer { } }", "'}' closes nothing"),
        ("layer { name: 'a\n' }", "cannot be read"),
        ("layer { " * 40, "nested too deeply"),
        ("layer { name: 'x' type: 'Data' top: 'd' }", "reads a data set"),
        ("layers { layer { name: 'x' type: 'conv' } }", "in the oldest form"),
        ("input: 'data'\nbase_lr: 0.1", "the network has no layers"),
        ("layer { name: 'r' type: 'ReLU' bottom: 'd' top: 'd' }", "declares no input"),
    ],
)
def test_damaged_text(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=reason):
        openqnn.convert(write_network(tmp_path, text))


def test_unknown_layers_are_named_all_at_once(tmp_path: Path) -> None:
    text = inputs_text([IMAGE]) + (
        'layer { name: "a" type: "Python" bottom: "x0" top: "a" }\n'
        'layer { name: "b" type: "ReLU" bottom: "a" top: "b" }\n'
        'layer { name: "c" type: "Proposal" bottom: "b" top: "c" }\n'
        'layer { name: "d" type: "ReLU" bottom: "nowhere" top: "d" }\n'
        'layer { name: "e" type: "Pooling" bottom: "x0" top: "e" pooling_param { pool: STOCHASTIC } }\n'
    )
    path = write_network(tmp_path, text)
    with pytest.raises(UnsupportedError) as e:
        openqnn.convert(path)
    assert [(p.op, p.node) for p in e.value.problems] == [
        ("Python", "a"), ("Proposal", "c"), ("ReLU", "d"), ("Pooling", "e"),
    ]  # fmt: skip
    said = command("check", path)
    assert said.code == 1 and "Proposal" in said.out and "Traceback" not in said.err


def test_a_size_that_is_left_open_is_asked_for(tmp_path: Path) -> None:
    text = "input: 'data'\n" + layer_text("ReLU", "", 1, 1).replace("x0", "data")
    path = write_network(tmp_path, text)
    with pytest.raises(DynamicShapeError, match="input 'data' has no shape"):
        openqnn.convert(path)
    graph = openqnn.convert(path, input_shapes={"data": (1, 2)})
    assert graph.outputs[0].shape == (1, 2)
    with pytest.raises(UsageError, match="the network has no blob 'z'"):
        openqnn.convert(path, input_shapes={"data": (1, 2)}, outputs=["z"])


def test_what_another_layer_writes_over_stays_apart(tmp_path: Path) -> None:
    """In Caffe a layer may write over its bottom; what was there before is another tensor."""
    text = inputs_text([(1, 2)]) + (
        'layer { name: "p" type: "Power" bottom: "x0" top: "y" power_param { shift: -1 } }\n'
        'layer { name: "r" type: "ReLU" bottom: "y" top: "y" }\n'
        'layer { name: "s" type: "Eltwise" bottom: "y" bottom: "x0" top: "z" }\n'
        'layer { name: "train" type: "Power" bottom: "y" top: "y" include { phase: TRAIN } }\n'
    )
    graph = openqnn.convert(write_network(tmp_path, text))
    with openqnn.Session(graph) as session:
        found = session.run({"x0": np.float32([[0, 3]])})
    np.testing.assert_array_equal(found["z"], [[0, 5]])
