"""Published networks beside their frameworks, and torchvision's and Keras' networks with random weights.

They take TensorFlow, torch, torchvision and transformers: `make frameworks`. What is tried on libQnnHtp too
stands in docs/framework_models.md and docs/zoo.md, which the two sweeps write.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import openqnn
from openqnn.errors import OpenQnnError
from openqnn.frontends.tensorflow.run_tensorflow import PYTHON

pytest.importorskip("torch", reason="make frameworks brings torch")
pytest.importorskip("tensorflow", reason="make frameworks brings TensorFlow")

from tests.frontends.zoo import packages, published, sweep

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]
REFUSED = {  # package, path in it, shapes, and what the message says
    "silero": (
        "silero-vad==6.2.3",
        "silero_vad/data/silero_vad.jit",
        {"x": (1, 512), "sr": ()},
        "torch exports",
    ),
    "foolnltk": ("foolnltk==0.1.7", "foolnltk-0.1.7/data/seg.pb", {}, "the graph has loops"),
    "guesslang": ("guesslang==2.2.1", "guesslang/data/model", {}, "'inputs' is text"),
}


@pytest.fixture(autouse=True)
def with_this_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PYTHON, os.environ.get(PYTHON) or sys.executable)


@pytest.mark.parametrize("name", [n for n in published.MODELS if n not in published.REASONS])
def test_a_published_network_gives_the_numbers_of_its_framework(name: str) -> None:
    row = published.tried(name, htp="")
    assert row.cosine >= published.LEAST
    assert row.steps < 0 or row.steps >= published.LEAST_STEPS


@pytest.mark.parametrize("name", REFUSED)
def test_a_network_that_no_graph_can_say(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Refused with a reason, and without what the framework prints."""
    package, path, shapes, reason = REFUSED[name]
    with pytest.raises(OpenQnnError, match=reason):
        openqnn.convert(packages.unpacked(package) / path, input_shapes=shapes)
    assert not capfd.readouterr().out


@pytest.mark.parametrize("kind", sweep.KINDS)
def test_networks_with_random_weights(kind: str) -> None:
    """In a process of its own, for it makes one of each network."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.frontends.zoo.sweep", kind, "--no_compile"]
    subprocess.run(command, check=True)
    rows = sweep.kept(kind)
    wrong = [f"{r.name}: {r.cosine:.6f} {r.why}" for r in rows if not r.matches]
    assert len(wrong) <= (1 - sweep.CONVERT_SHARE) * len(rows), wrong
