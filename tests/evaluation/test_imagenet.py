"""Twenty labelled photographs of ImageNet through EfficientNet-Lite0: accuracy equals a direct count."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from openqnn import Session
from openqnn.api.files import load
from openqnn.runtime.onnx_runner import OnnxRuntimeRunner
from tests.analysis.accuracy.faults import EXPORTED, source_of
from tests.cli.tool import tool
from tests.evaluation.data import config, schema, write_config
from tests.models.fetch import model_path
from tests.models.sets import IMAGENET

CALIBRATED = 8
SWEPT = {"param_quantizer": "tf | symmetric", "use_per_channel_quantization": "True | False"}
SCHEMAS = (
    schema(name="onnxrt", precision="fp32"),
    schema(name="qnn", precision="fp32", backend="built-in"),
    schema(name="qnn", precision="quant", backend="htp", converter_params=SWEPT),
)
STEPS = [
    {"plugin": {"name": "resize", "params": {"dims": "224,224", "library": "pillow", "type": "imagenet"}}},
    {
        "plugin": {
            "name": "normalize",
            "params": {"means": dict.fromkeys("RGB", 127 / 255), "std": dict.fromkeys("RGB", 128 / 255)},
        }
    },
    {"plugin": {"name": "convert_nchw"}},
]


def labelled(place: Path) -> list[int]:
    """The photographs in a folder with their lists; the last number of a name is the class."""
    (place / "plugins").mkdir()
    labels = [int(name.rpartition("_")[2]) for name in IMAGENET]
    for name in IMAGENET:
        Image.open(model_path(name)).convert("RGB").save(place / f"{name}.png")
    files = [f"{name}.png" for name in IMAGENET]
    (place / "inputlist.txt").write_text("\n".join(files) + "\n")
    (place / "truth.txt").write_text("".join(f"{f} {n}\n" for f, n in zip(files, labels, strict=True)))
    (place / "calib.txt").write_text("\n".join(map(str, range(CALIBRATED))) + "\n")
    return labels


@pytest.mark.slow
@pytest.mark.skipif(source_of(EXPORTED) is None, reason="benchmarks/export_efficientnet.py was not run")
def test_photographs_are_counted_right(tmp_path: Path) -> None:
    source = source_of(EXPORTED)
    assert source is not None
    labels = labelled(tmp_path)
    content = config(tmp_path, *SCHEMAS)
    content["model"]["processing"] = {"preprocessing": {"transformations": STEPS}}
    content["model"]["inference-engine"]["model_path"] = str(source)
    content["model"]["evaluator"]["comparator"] = {"type": "cos"}
    words = ["-config", write_config(tmp_path, content), "-work_dir", tmp_path / "work"]
    done = tool("qnn-accuracy-evaluator", *words)
    assert done.code == 0, done.err
    listed = (tmp_path / "work" / "preproc" / "processed-input-list.txt").read_text().split()
    inputs = [np.fromfile(tmp_path / "work" / "preproc" / f, np.float32) for f in listed]
    inputs = [x.reshape(1, 3, 224, 224) for x in inputs]
    first = np.asarray(Image.open(tmp_path / f"{IMAGENET[0]}.png"), np.float32)
    assert inputs[0].max() <= (first.max() - 127) / 128 + 1e-6
    rows = json.loads((tmp_path / "work" / "metrics-info.json").read_text())["rows"]
    assert len(rows) == 6
    found: dict[str, float] = {}
    for row in rows:
        graph = tmp_path / "work" / "infer" / row["schema"] / "qnn_ir" / "model.oqnn"
        runner = Session(load(graph)) if graph.is_file() else OnnxRuntimeRunner(source)
        outputs = [next(iter(runner.run({"x": x}).values())).reshape(-1) for x in inputs]
        runner.close()
        ranks = [int((o > o[n]).sum()) for o, n in zip(outputs, labels, strict=True)]
        assert row["metrics"]["top1"] == pytest.approx(np.mean([r < 1 for r in ranks]), abs=1e-6)
        assert row["metrics"]["top5"] == pytest.approx(np.mean([r < 5 for r in ranks]), abs=1e-6)
        found[row["schema"]] = row["metrics"]["top1"]
    assert found["schema0_onnxrt_fp32"] >= 0.8, found
    print(found)
