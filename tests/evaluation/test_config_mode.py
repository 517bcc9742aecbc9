"""Config mode: accuracy on real labelled data equals a direct count, sweeps, stages, and bad configs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.labels import LABELLED, Labelled
from openqnn import Session
from openqnn.api.files import load
from openqnn.evaluation.plugins.registry import CUSTOM
from openqnn.runtime.onnx_runner import OnnxRuntimeRunner
from tests.cli.tool import Result, assert_refused, tool
from tests.evaluation.data import RAISES, config, schema, write_config, write_digits
from tests.models.fetch import model_path
from tests.models.sets import shapes_of

NAME = "qnn-accuracy-evaluator"
ORT = schema(name="onnxrt", precision="fp32")
SWEPT = schema(
    name="qnn", precision="quant", backend="htp", target_arch="x86_64-linux-clang", tag="swept",
    converter_params={"param_quantizer": "tf | enhanced", "use_per_channel_quantization": "True | False"},
)  # fmt: skip
NARROW = schema(name="qnn", precision="int8", backend="htp", converter_params={"weight_bw": 4})
READS_TEXT = '''
import numpy as np

from benchmarks.labels import ALPHABET
from openqnn.evaluation.plugins import PostprocessPlugin, Result, plugin


@plugin("ppocr_text")
class PpOcrText(PostprocessPlugin):
    """The likeliest character of each column, repetitions and blanks left out."""

    def process(self, result, context):
        best = np.argmax(result.arrays[0][0], axis=-1)
        kept = [c for i, c in enumerate(best) if c and (i == 0 or c != best[i - 1])]
        return Result(result.item, result.arrays, "".join(ALPHABET[c] for c in kept))
'''


@pytest.fixture(autouse=True)
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CUSTOM, str(tmp_path / "plugins"))


def run(place: Path, content: Mapping[str, Any], *words: object) -> Result:
    return tool(NAME, "-config", write_config(place, content), "-work_dir", place / "work", *words)


def rows(place: Path) -> dict[str, dict[str, Any]]:
    record = json.loads((place / "work" / "metrics-info.json").read_text())
    return {row["schema"]: row for row in record["rows"]}


def test_digits_are_counted_right(tmp_path: Path) -> None:
    """Before and after each quantization."""
    labels = write_digits(tmp_path, 40)
    result = run(tmp_path, config(tmp_path, ORT, schema(name="qnn", backend="cpu"), SWEPT, NARROW))
    assert result.code == 0, result.err
    found = rows(tmp_path)
    assert len(found) == 7
    raw = [np.fromfile(tmp_path / f"d{i}.raw", np.float32).reshape(1, 1, 28, 28) for i in range(40)]
    for label, row in found.items():
        graph = tmp_path / "work" / "infer" / label / "qnn_ir" / "model.oqnn"
        runner = Session(load(graph)) if graph.is_file() else OnnxRuntimeRunner(model_path("mnist_conv"))
        hits = [
            int(label == int(next(iter(runner.run({"Input3": x}).values())).argmax()))
            for x, label in zip(raw, labels, strict=True)
        ]
        runner.close()
        assert row["metrics"]["top1"] == pytest.approx(np.mean(hits), abs=1e-6), label
    assert found["schema0_onnxrt_fp32"]["reference"]
    assert {row["tag"] for row in found.values()} == {"", "swept"}


def files(place: Path, name: str, count: int) -> tuple[Labelled, list[dict[str, Any]], list[Any]]:
    """Raw files of labelled samples with their truth and their list."""
    labelled = next(each for each in LABELLED if each.model == name)
    feeds, truths = labelled.load()
    feeds, truths = feeds[:count], [t[0] if isinstance(t, tuple) else t for t in truths[:count]]
    text = name != "magika"
    kinds = [] if text else json.loads(model_path("magika_config").read_text())["target_labels_space"]
    for i, feed in enumerate(feeds):
        next(iter(feed.values())).tofile(place / f"s{i}.raw")
    lines = [f"s{i}.raw {t if text else kinds.index(t)}" for i, t in enumerate(truths)]
    (place / "truth.txt").write_text("\n".join(lines) + "\n")
    (place / "inputlist.txt").write_text("\n".join(f"s{i}.raw" for i in range(count)) + "\n")
    (place / "plugins").mkdir()
    return labelled, feeds, truths


@pytest.mark.parametrize(("name", "count"), [("magika", 16), ("ppocrv4_rec_en", 5)])
def test_files_and_text_are_counted_right(name: str, count: int, tmp_path: Path) -> None:
    labelled, feeds, truths = files(tmp_path, name, count)
    text = name != "magika"
    (tmp_path / "calib.txt").write_text("0,1,2,3\n")
    (tmp_path / "plugins" / "reads_text.py").write_text(READS_TEXT)
    content = config(tmp_path, ORT, schema(name="qnn", precision="quant", backend="htp"))
    content["model"]["processing"] = {
        "postprocessing": {"transformations": [{"plugin": {"name": "ppocr_text"}}] if text else []}
    }
    metric = {"name": "precision"} if text else {"name": "topk", "params": {"kval": 1, "round": 7}}
    content["model"]["evaluator"]["metrics"] = [{"plugin": metric}]
    engine = content["model"]["inference-engine"]
    engine["model_path"] = str(model_path(name))
    shapes = shapes_of(name)
    engine["inputs_info"] = [
        {n: {"type": feeds[0][n].dtype.name, "shape": ["*", *s[1:]]}} for n, s in shapes.items()
    ]
    result = run(tmp_path, content)
    assert result.code == 0, result.err
    for label, row in rows(tmp_path).items():
        graph = tmp_path / "work" / "infer" / label / "qnn_ir" / "model.oqnn"
        runner = (
            Session(load(graph))
            if graph.is_file()
            else OnnxRuntimeRunner(model_path(name), input_shapes=shapes)
        )
        right = [labelled.answer(runner.run(f)) == t for f, t in zip(feeds, truths, strict=True)]
        runner.close()
        assert row["metrics"]["precision" if text else "top1"] == pytest.approx(np.mean(right), abs=1e-6)


def test_what_the_command_line_says_counts_more(tmp_path: Path) -> None:
    write_digits(tmp_path, 6)
    content = config(tmp_path, ORT, SWEPT, NARROW)
    content["model"]["globals"] = {"count": 5}
    content["model"]["dataset"]["transformations"] = [
        {"plugin": {"name": "filter_dataset", "params": {"max_inputs": "$count", "max_calib": -1}}}
    ]
    content["model"]["dataset"]["calibration"]["file"] = "few.txt"
    (tmp_path / "few.txt").write_text("0\n1\n")
    result = run(
        tmp_path,
        content,
        "-set_global",
        "count:4",
        "-inference_schema",
        "qnn",
        "-inference_schema_tag",
        "swept",
    )
    assert result.code == 0, result.err
    assert set(rows(tmp_path)) == {f"schema1_qnn_{q}{c}" for q in ("tf", "enhanced") for c in ("", "_pcq")}
    assert len(list((tmp_path / "work" / "infer" / "schema1_qnn_tf").glob("Result_*"))) == 4
    assert (tmp_path / "work" / "preproc" / "processed-input-list.txt").read_text().count("\n") == 4


def test_preprocessed_files_need_no_dataset(tmp_path: Path) -> None:
    write_digits(tmp_path, 4)
    content = config(tmp_path, ORT, SWEPT)
    del content["model"]["dataset"], content["model"]["evaluator"]["metrics"]
    raw = tmp_path / "raw.txt"
    result = run(tmp_path, content, "-preproc_file", raw, "-calib_file", raw, "-use_memory_plugins")
    assert result.code == 0, result.err
    assert not (tmp_path / "work" / "preproc").exists()


def test_batches(tmp_path: Path) -> None:
    """Items of a batch are judged one by one; what fills the last batch is not."""
    files(tmp_path, "magika", 5)
    content = config(tmp_path, ORT)
    del content["model"]["dataset"]["calibration"]
    content["model"]["processing"]["preprocessing"]["transformations"] = [
        {"plugin": {"name": "create_batch"}}
    ]
    content["model"]["evaluator"]["metrics"][0]["plugin"]["params"]["kval"] = "1,2,3"
    engine = content["model"]["inference-engine"]
    engine["model_path"] = str(model_path("magika"))
    engine["inputs_info"] = [{"bytes": {"type": "int32", "shape": ["*", 2048]}}]
    single = run(tmp_path, content)
    assert single.code == 0, single.err
    alone = rows(tmp_path)["schema0_onnxrt_fp32"]["metrics"]
    result = run(tmp_path, content, "-batchsize", 2)
    assert result.code == 0, result.err
    assert rows(tmp_path)["schema0_onnxrt_fp32"]["metrics"] == alone
    place = tmp_path / "work" / "infer" / "schema0_onnxrt_fp32"
    assert len(list(place.glob("Result_*"))) == 3


def test_half_precision_and_libraries(tmp_path: Path) -> None:
    """HTP's own library in fixed point gives what the simulation gives."""
    write_digits(tmp_path, 2)
    backends = (("htp", "a"), ("libQnnHtp", "b"), ("libQnnCpu.so", "c"))
    quantized = [schema(name="qnn", backend=b, precision="quant", tag=t) for b, t in backends]
    half = schema(name="qnn", backend="built-in", precision="fp16", tag="d")
    content = config(tmp_path, ORT, *quantized, half)
    del content["model"]["dataset"]["calibration"]
    result = run(tmp_path, content)
    assert result.code == 0, result.err
    by_tag = {row["tag"]: row for row in rows(tmp_path).values()}
    assert by_tag["a"]["outputs"] == by_tag["b"]["outputs"]
    assert by_tag["c"]["overall"] > 99.9
    assert by_tag["d"]["overall"] > 99.9999


def test_what_raises_is_told_and_nothing_computed_is_lost(tmp_path: Path) -> None:
    write_digits(tmp_path, 3)
    (tmp_path / "plugins" / "raises.py").write_text(RAISES)
    content = config(tmp_path, ORT, SWEPT)
    del content["model"]["dataset"]["calibration"]
    content["model"]["evaluator"]["metrics"].append({"plugin": {"name": "raises"}})
    result = run(tmp_path, content)
    assert result.code == 1
    assert "metric plugin raises failed on the results: ZeroDivisionError: division by zero" in result.out
    row = rows(tmp_path)["schema1_qnn_tf_pcq"]
    assert row["overall"] > 99
    content["model"]["evaluator"]["metrics"].pop()
    again = run(tmp_path, content)
    assert again.code == 0
    assert "5 of 5 inferences were there from an earlier run" in again.out


def changed(tmp_path: Path, where: str, value: object) -> dict[str, Any]:
    content = config(tmp_path, ORT, SWEPT)
    *path, last = where.split("/")
    part: Any = content["model"]
    for word in path:
        part = part[int(word) if word.isdigit() else word]
    part[int(last) if last.isdigit() else last] = value
    return content


PLUGIN = "processing/preprocessing/transformations/0/plugin"
SCHEMA = "inference-engine/inference_schemas/1/inference_schema"


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        ("datset", {}, "unknown key datset"),
        ("dataset/inputlist", "x", "unknown key dataset.inputlist"),
        ("dataset/name", "", "dataset has no name"),
        ("dataset/calibration/type", "files", "dataset.calibration.type is 'files'"),
        ("dataset/inputlist_file", "none.txt", "none.txt: cannot be read"),
        ("dataset/inputlist_file", "empty.txt", "the dataset is empty"),
        ("dataset/annotation_file", "none.txt", "none.txt: no such file"),
        (f"{PLUGIN}/name", "resise", "there is no preprocessing plugin 'resise'"),
        (f"{PLUGIN}/name", "topk", "it is a metric plugin"),
        (f"{PLUGIN}/params", {"dim": 3}, "params.dim: plugin resize has no such parameter"),
        (f"{PLUGIN}/params", {}, "plugin resize needs the parameter dims"),
        (f"{PLUGIN}/params", {"dims": "big"}, "'big' is not sizes with commas"),
        (f"{PLUGIN}/params", {"dims": "28,28", "library": "cv"}, "'cv' is none of opencv, pillow"),
        (f"{PLUGIN}/params", {"dims": "32,32"}, "input 'Input3' is [1, 1, 28, 28]"),
        (f"{SCHEMA}/name", "qn", "there is no engine 'qn'"),
        (f"{SCHEMA}/precision", "int4", "'int4' is none of fp32"),
        (f"{SCHEMA}/backend", "gpu", "the GPU's library"),
        (f"{SCHEMA}/converter_params/param_quantiser", "tf", "converter_params.param_quantiser"),
        (f"{SCHEMA}/converter_params/param_quantizer", "tf | best", "no quantizer 'best'"),
        (f"{SCHEMA}/converter_params/act_bw", "8 | 12", "act_bw is 12"),
        (f"{SCHEMA}/backend_extensions", {"vtcm": 4}, "backend_extensions.vtcm"),
        (f"{SCHEMA}/netrun_params", {"profiling": "basic"}, "netrun_params.profiling"),
        (f"{SCHEMA}/contextbin_params", {"profiling_level": "basic"}, ""),
        ("inference-engine/model_path", "none.onnx", "there is no none.onnx"),
        ("evaluator/comparator/type", "cosine", "no comparator 'cosine'"),
        ("globals", {"a": 1}, ""),
        ("dataset/path", "$nowhere", "there is no symbol 'nowhere'"),
    ],
)
def test_a_bad_config_is_one_message(where: str, value: object, said: str, tmp_path: Path) -> None:
    write_digits(tmp_path, 2)
    (tmp_path / "empty.txt").write_text("\n")
    content = changed(tmp_path, where, value)
    content["model"]["dataset"].get("calibration", {}).update({"file": "few.txt"})
    (tmp_path / "few.txt").write_text("0\n")
    result = run(tmp_path, content)
    if not said:
        assert result.code == 0, result.err
    elif where.endswith("annotation_file"):  # found out when all is computed, which stays
        assert said in result.out
        assert result.code == 1
    else:
        assert_refused(result, said, code=result.code)
        assert result.code in (1, 2)


def test_yaml_that_is_none(tmp_path: Path) -> None:
    for text, said in (
        ("model: {a: [}", "line 1: no YAML"),
        ("model:\n  dataset: {}\n  dataset: {}\n", "key 'dataset' stands twice"),
        ("- a\n", "no keys in it"),
        ("model: 3\n", "model has no keys"),
    ):
        (tmp_path / "c.yaml").write_text(text)
        assert_refused(tool(NAME, "-config", tmp_path / "c.yaml", "-work_dir", tmp_path / "w"), said, code=1)


def test_a_model_that_does_not_convert(tmp_path: Path) -> None:
    write_digits(tmp_path, 1)
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x01nothing")
    content = changed(tmp_path, "inference-engine/model_path", str(tmp_path / "bad.onnx"))
    assert_refused(run(tmp_path, content), "bad.onnx", code=1)


def test_a_plugin_file_that_cannot_be_read(tmp_path: Path) -> None:
    write_digits(tmp_path, 1)
    (tmp_path / "plugins" / "broken.py").write_text("import nothing_of_the_kind\n")
    assert_refused(run(tmp_path, config(tmp_path, ORT)), "broken.py: ModuleNotFoundError", code=1)
