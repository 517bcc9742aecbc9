"""Published networks of every framework beside that framework, and on libQnnHtp.

    python -m tests.frontends.zoo.published [NAME ...] [--htp compile] [--write]

TFLite models are held against LiteRT, PyTorch's against torch (as `.pt2` files), TensorFlow's against
TensorFlow, Caffe's against OpenCV. It takes the environment of `make frameworks`. Results are kept in the
cache of the models; `--write` writes docs/framework_models.md of all that are there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import openqnn
from openqnn.errors import OpenQnnError
from openqnn.frontends.tensorflow.run_tensorflow import PYTHON
from tests.frontends.tflite.litert import cosine, litert_outputs, random_inputs
from tests.frontends.zoo import packages
from tests.models.fetch import cache_directory, model_path
from tests.models.samples import photo

Array = NDArray[Any]
PAGE = Path(__file__).resolve().parents[3] / "docs" / "framework_models.md"
LEAST, LEAST_STEPS, LEAST_HTP, SECONDS, SOC = 0.9999, 0.99, 0.999, 900.0, "SM8650"


@dataclass(frozen=True, slots=True)
class Case:
    """A model's file, data for it, and what its own framework makes of them, by the names of outputs."""

    path: Path
    inputs: Mapping[str, Array]
    wanted: Mapping[str, Array]
    options: Mapping[str, Any] = field(default_factory=dict)
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a model: cosines of its worst output, and the share of values within a step."""

    name: str
    framework: str
    nodes: int = 0
    cosine: float = 0.0
    steps: float = -1.0
    htp: float = 0.0
    compiled: bool = False
    why: str = ""


def tflite(name: str, *, fixed: bool = False) -> Callable[[Path], Case]:
    def make(_: Path) -> Case:
        path = model_path(name)
        inputs = random_inputs(path)
        return Case(path, inputs, litert_outputs(path, inputs), fixed=fixed)

    return make


def streaming(_: Path) -> Case:
    """A model with state, which starts as zeros."""
    path = model_path("microwakeword_okay_nabu")
    inputs = random_inputs(path)
    wanted = litert_outputs(path, inputs)
    with warnings.catch_warnings(action="ignore"):
        graph = openqnn.convert(path)
    zeros = {v.name: np.full(v.shape, -128, np.int8) for v in graph.inputs if v.name not in inputs}
    return Case(path, {**inputs, **zeros}, wanted, fixed=True)


def torch_program(make: Callable[[], tuple[Any, Mapping[str, Any]]]) -> Callable[[Path], Case]:
    def made(folder: Path) -> Case:
        import torch

        network, inputs = make()
        with torch.no_grad():
            found = network(*inputs.values())
        path = folder / "model.pt2"
        torch.export.save(torch.export.export(network, tuple(inputs.values())), path)
        (output,) = openqnn.convert(path).outputs
        return Case(path, {n: v.numpy() for n, v in inputs.items()}, {output.name: found.numpy()})

    return made


def saved_model(folder: Path) -> Case:
    import tensorflow as tf

    path = packages.unpacked("basic-pitch==0.4.0", folder) / "basic_pitch/saved_models/icassp_2022/nmp"
    x = np.random.default_rng(0).random((1, 43844, 1), np.float32)
    v1 = tf.compat.v1  # the loader of objects does not know what Keras 2 kept of its optimizer
    with v1.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, ["serve"], str(path)).signature_def["serving_default"]
        outputs = {n: found.name for n, found in signature.outputs.items()}
        wanted = session.run(outputs, {signature.inputs["input_2"].name: x})
    return Case(path, {"input_2": x}, wanted, {"batch": 1})


def keras_file(folder: Path) -> Case:
    import keras

    path = folder / "fer.h5"
    path.write_bytes(model_path("fer_keras").read_bytes())
    model = keras.models.load_model(path, compile=False)
    x = np.random.default_rng(0).random((1, 64, 64, 1), np.float32)
    graph = openqnn.convert(path, batch=1)
    return Case(path, {graph.inputs[0].name: x}, {graph.outputs[0].name: np.asarray(model(x))}, {"batch": 1})


def caffe(folder: Path) -> Case:
    import cv2

    path, weights = folder / "ssd.prototxt", folder / "ssd.caffemodel"
    path.write_bytes(model_path("ssd_face_caffe").read_bytes())
    weights.write_bytes(model_path("ssd_face_weights").read_bytes())
    pixels = np.asarray(photo("astronaut").resize((300, 300)), np.float32)[:, :, ::-1] - (104, 177, 123)
    x = np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], np.float32)
    net = cv2.dnn.readNetFromCaffe(str(path), str(weights))
    net.setInput(x)
    return Case(path, {"data": x}, {"detection_out": net.forward("detection_out")})


MODELS: dict[str, tuple[str, Callable[[Path], Case]]] = {
    "basic_pitch": ("TFLite", tflite("basic_pitch_tflite")),
    "face_landmark (float16)": ("TFLite", tflite("mp_face_landmark")),
    "face_landmark": ("TFLite", tflite("face_landmark_fp32")),
    "pose_landmark_full": ("TFLite", tflite("mp_pose_landmark_full")),
    "selfie_multiclass": ("TFLite", tflite("selfie_multiclass")),
    "fer (weights in 8 bits)": ("TFLite", tflite("fer_tflite")),
    "okay_nabu (int8)": ("TFLite", streaming),
    "yoha (int8)": ("TFLite", tflite("yoha_lan_int8", fixed=True)),
    "efficientnet_lite0": ("PyTorch", torch_program(packages.efficientnet_lite0)),
    "minilm": ("PyTorch", torch_program(packages.minilm)),
    "mnist_lenet5": ("PyTorch", torch_program(packages.lenet5)),
    "waifu2x_upconv7": ("PyTorch", torch_program(packages.waifu2x)),
    "basic_pitch (SavedModel)": ("TensorFlow", saved_model),
    "fer (Keras)": ("TensorFlow", keras_file),
    "res10 SSD": ("Caffe", caffe),
}
REASONS = {
    "fer (weights in 8 bits)": "LiteRT rounds the data too, by the range of each inference; the graph has the"
    " real numbers that the weights stand for",
    "yoha (int8)": "each operator by itself is within one step of LiteRT on all values"
    " (`tests/frontends/tflite/test_tflite_steps.py`), and the network makes one step many: LiteRT's own two"
    " sets of kernels agree within a step on 31 to 48 % of the 42 numbers of this output"
    " ([tflite.md](tflite.md#numbers))",
}
"""Why a model is not within the limits."""
TWIN = "its ONNX twin has 0.99578 there, for a reason ([htp_models.md](htp_models.md))"
HTP_REASONS = {
    "basic_pitch": TWIN,
    "basic_pitch (SavedModel)": TWIN,
    "res10 SSD": "its 200 detections are ordered by scores that half precision rounds; the face is where it"
    " was within 0.002 (`tests/frontends/caffe/test_caffe_models.py`)",
}
"""Why it is not on libQnnHtp."""


UNTRIED = "not run on libQnnHtp, whose simulator takes many minutes for it"
COMPILE, RUN = "compile", "run"  # what is done on libQnnHtp


def tried(name: str, htp: str = RUN) -> Row:
    framework, make = MODELS[name]
    row = Row(name, framework)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        case = make(Path(folder))
        graph = openqnn.convert(case.path, **case.options)
        if case.fixed:
            graph = openqnn.quantize(graph, float_fallback=True)
        with openqnn.Session(graph) as session:
            found = session.run(case.inputs)
        pairs = [(found[n], wanted) for n, wanted in case.wanted.items()]
        row = Row(name, framework, len(graph.nodes), min(cosine(a, b) for a, b in pairs))
        if case.fixed:
            row = Row(name, framework, row.nodes, row.cosine, min(within_a_step(a, b) for a, b in pairs))
        row = replace(row, why=UNTRIED)
        try:
            if htp == COMPILE:
                openqnn.compile(graph, "htp", soc=SOC, timeout=SECONDS)
                row = replace(row, compiled=True)
            if htp == RUN:
                with openqnn.Session(graph, "htp", timeout=SECONDS) as session:
                    there = session.run(case.inputs)
                least = min(cosine(there[n], v) for n, v in case.wanted.items())
                row = replace(row, htp=least, why="")
        except OpenQnnError as e:
            row = replace(row, why=e.message.splitlines()[0])
        return row


def within_a_step(found: Array, wanted: Array) -> float:
    """The share of values that are at most one step of 8 bits apart; the step is 1/256 of the range."""
    if found.dtype.kind != "f":
        return float((np.abs(found.astype(int) - wanted.astype(int)) <= 1).mean())
    step = np.ptp(wanted) / 255
    return float((np.abs(found - wanted) <= step * 1.001).mean())


def kept_file() -> Path:
    return cache_directory() / "framework_models.json"


def kept() -> dict[str, Row]:
    path = kept_file()
    return {n: Row(**row) for n, row in json.loads(path.read_text()).items()} if path.exists() else {}


def keep(row: Row) -> None:
    kept_file().write_text(json.dumps({n: asdict(r) for n, r in (kept() | {row.name: row}).items()}))


INTRODUCTION = f"""\
# Published networks of every framework

Written by `python -m tests.frontends.zoo.published --write`; `make frameworks` holds these networks against
their frameworks.

Each model is converted as it is published, and run beside its own framework on the same data: random
numbers, for the detector a photograph. Figures are of the worst output. Asked are a cosine of {LEAST} on the
built-in backend and of {LEAST_HTP} on libQnnHtp, in half precision or in the model's own integers; of
integers, 99 % of the values within one step of 8 bits. "compiles": libQnnHtp compiles it for {SOC}.

| model | framework | QNN nodes | cosine | within a step | cosine on libQnnHtp | reason |
| --- | --- | ---: | ---: | ---: | ---: | --- |
"""
REFUSED = """
Refused with a reason, as they must be: `mp_selfie` (TFLite; a custom operator), `silero_vad.jit`
(TorchScript; branches on its state that torch cannot export), `foolnltk` (TensorFlow; loops over words) and
`guesslang` (TensorFlow; takes text).
"""


def page(before: str = "") -> str:
    """All rows that are kept; of models that were not tried on this machine, those that the page had."""
    old = {text.split(" | ")[0].removeprefix("| "): text for text in before.splitlines() if text[:2] == "| "}
    new = {name: line(row) for name, row in kept().items()}
    found = [new.get(name) or old.get(name) for name in MODELS]
    return INTRODUCTION + "\n".join(filter(None, found)) + "\n" + REFUSED


def line(r: Row) -> str:
    steps = f"{r.steps:.1%}" if r.steps >= 0 else ""
    htp = f"{r.htp:.5f}" if r.htp else "compiles" if r.compiled else "no"
    why = "; ".join(filter(None, (REASONS.get(r.name, ""), HTP_REASONS.get(r.name, ""), r.why)))
    return f"| {r.name} | {r.framework} | {r.nodes} | {r.cosine:.6f} | {steps} | {htp} | {why} |"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--htp", choices=("", COMPILE, RUN), default=RUN, help="what is done on libQnnHtp")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault(PYTHON, sys.executable)
    for name in options.names or ([] if options.write else MODELS):
        row = tried(name, options.htp)
        keep(row)
        print(row, flush=True)
    if options.write:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
