"""Every type of layer gives the numbers of OpenCV, or of the formula of Caffe's documentation."""

from __future__ import annotations

import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.frontends.caffe.importer import FAMILIES
from openqnn.frontends.caffe.table import TABLE
from tests.frontends.caffe.build import Blobs, inputs_text, layer_text, write_network
from tests.frontends.caffe.cases import CASES, Array, Case

cv2 = pytest.importorskip("cv2")


def numbers(case: Case) -> tuple[list[Array], Blobs]:
    """Inputs and weights, the same in every run."""
    random = np.random.default_rng(zlib.crc32(case.id.encode()))
    draw = random.random if case.positive else random.standard_normal
    inputs = [draw(shape).astype(np.float32) for shape in case.shapes]
    if case.kind == "ROIPooling":
        inputs[1] = np.float32([[0, 0, 0, 8, 12], [0, 2, 3, 9, 15]])
    blobs = [random.random(shape).astype(np.float32) + 0.25 for shape in case.weights]
    return inputs, {"it": blobs} if blobs else {}


def judged(path: Path, inputs: list[Array]) -> list[Array]:
    weights = path.with_suffix(".caffemodel")
    net = cv2.dnn.readNetFromCaffe(str(path), str(weights) if weights.exists() else "")
    for i, x in enumerate(inputs):
        net.setInput(x, f"x{i}")
    return list(net.forward(net.getUnconnectedOutLayersNames()))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_a_layer_gives_the_right_numbers(case: Case, tmp_path: Path) -> None:
    inputs, blobs = numbers(case)
    text = inputs_text(case.shapes) + layer_text(case.kind, case.params, len(inputs), case.tops)
    path = write_network(tmp_path, text, blobs)
    tops = ["y"] if case.tops == 1 else [f"y{i}" for i in range(case.tops)]
    if case.formula is not None:
        made = case.formula(*inputs, *blobs.get("it", ()))
        wanted = made if isinstance(made, list) else [np.asarray(made, np.float32)]
    else:
        wanted = judged(path, inputs)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no node reads", openqnn.OpenQnnWarning)
        graph = openqnn.convert(path)
    with openqnn.Session(graph) as session:
        found = session.run({v.name: inputs[int(v.name[1:])] for v in graph.inputs})
    assert sorted(found) == tops
    for name, array in zip(tops, wanted, strict=True):
        assert found[name].shape == array.shape
        np.testing.assert_allclose(found[name], array, rtol=2e-4, atol=2e-5)


def test_every_type_has_a_case() -> None:
    assert FAMILIES
    others = {"ConvolutionDepthwise", "DepthwiseConvolution"}  # as Convolution with a group for each channel
    models = {"DetectionOutput"}  # on a real detector
    assert {name for _, name in TABLE.known()} - {c.kind for c in CASES} == others | models
