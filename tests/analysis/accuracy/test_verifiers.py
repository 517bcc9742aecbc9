"""Verifiers against scipy's formulas written out and small calculations by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from openqnn.analysis.accuracy.tensor_folder import TensorFolder, write_tensors
from openqnn.analysis.accuracy.verification import (
    NodeInfo,
    plan_of,
    read_graph_struct,
    read_tensor_mapping,
    read_verifier_config,
    verify,
    write_verification,
)
from openqnn.analysis.accuracy.verifiers import VERIFIERS, read_verifier
from openqnn.errors import InputError, UsageError

GOLDEN = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
FOUND = np.array([1.0, 2.1, 2.9, 4.4], np.float32)


def value(*words: str, golden: np.ndarray = GOLDEN, found: np.ndarray = FOUND) -> float:
    return read_verifier(words)([golden], [found])


def test_there_are_ten() -> None:
    names = "RtolAtol AdjustedRtolAtol TopK L1Error CosineSimilarity MSE MAE SQNR MeanIOU ScaledDiff"
    assert [v.name for v in VERIFIERS.values()] == names.split()


def test_values_by_hand() -> None:
    x, y = GOLDEN.astype(np.float64), FOUND.astype(np.float64)
    assert value("mse") == pytest.approx(np.mean((x - y) ** 2), abs=1e-9)
    assert value("MAE") == pytest.approx(np.mean(np.abs(x - y)), abs=1e-9)
    assert value("sqnr") == pytest.approx(10 * np.log10((x @ x) / ((x - y) @ (x - y))), abs=1e-6)
    assert value("CosineSimilarity") == pytest.approx(x @ y / np.sqrt((x @ x) * (y @ y)), abs=1e-9)
    assert value("L1Error", "multiplier", "2", "scale", "4") == pytest.approx(np.mean(np.abs(x - y)) / 2)
    assert value("ScaledDiff") == pytest.approx(0.4 / 4, abs=1e-6)
    assert value("rtolatol,rtolmargin,0.01,atolmargin,0.01") == pytest.approx(75.0)
    assert value("rtolatol,rtolmargin,0.11,atolmargin,0.0") == pytest.approx(0.0)
    assert value("AdjustedRtolAtol,levels_num,10") == pytest.approx(25.0)


def test_top_k_in_order_and_without() -> None:
    other = np.array([1.0, 2.0, 4.0, 3.0], np.float32)
    assert value("TopK", "k", "2", found=other) == 1.0
    assert value("TopK", "k", "2", "ordered", "true", found=other) == 0.0


def test_overlap_of_boxes() -> None:
    boxes = np.array([[0, 0, 2, 2], [5, 5, 6, 6]], np.float32)
    shifted = np.array([[0, 1, 2, 3], [5, 5, 6, 6]], np.float32)
    classes = np.array([3, 1], np.float32)
    assert read_verifier(["MeanIOU"])([boxes, classes], [shifted, classes]) == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", [n for n in VERIFIERS if n != "meaniou"])
def test_equal_tensors_match(name: str) -> None:
    chosen = read_verifier([name])
    assert chosen.is_match(chosen([GOLDEN], [GOLDEN]))


def test_what_cannot_be_is_told() -> None:
    with pytest.raises(UsageError, match="no verifier 'cosin'"):
        read_verifier(["cosin"])
    with pytest.raises(UsageError, match="no parameter 'k'"):
        read_verifier(["mse,k,5"])
    with pytest.raises(UsageError, match="must be a number"):
        read_verifier(["topk,k,many"])
    with pytest.raises(UsageError, match="has no value"):
        read_verifier(["rtolatol,rtolmargin"])
    assert read_verifier(["CosineSimilarity", "param1", "1", "param2", "2"]).parameters == {}


def folders(tmp_path: Path) -> tuple[TensorFolder, TensorFolder]:
    image = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    write_tensors(tmp_path / "golden", {"a/b": GOLDEN, "image": image, "lonely": GOLDEN})
    channels_last = np.ascontiguousarray(image.transpose(0, 2, 3, 1))
    write_tensors(tmp_path / "found", {"a_b": FOUND, "image": channels_last, "other": FOUND})
    return TensorFolder(tmp_path / "golden"), TensorFolder(tmp_path / "found")


def test_names_and_layouts_are_undone(tmp_path: Path) -> None:
    golden, found = folders(tmp_path)
    graph = {"image": NodeInfo("Conv2d", (1, 3, 4, 2), 0), "a_b": NodeInfo("Relu", (4,), 1)}
    rows = verify(golden, found, plan_of([["mse"], ["sqnr"]], ""), {}, graph)
    assert [r.name for r in rows] == ["image", "a_b"]
    assert rows[0].values["mse"] == 0
    assert rows[1].golden == "a/b"
    write_verification(tmp_path / "out", rows, ["MSE", "SQNR"], extremes=True)
    head = (tmp_path / "out" / "summary.csv").read_text().splitlines()[0]
    assert head == "Name,LayerType,Size,Tensor_dims,mse,sqnr,golden_min,golden_max,target_min,target_max"
    assert (tmp_path / "out" / "mse" / "a_b.html").is_file()
    assert len(json.loads((tmp_path / "out" / "summary.json").read_text())) == 2


def test_a_tensor_that_is_fused_with_the_clip_behind_it(tmp_path: Path) -> None:
    """Fixed point has what the clip gives in its place, which is no error of the layer in front."""
    clip = np.maximum(GOLDEN - 2, 0)
    write_tensors(tmp_path / "golden", {"conv": GOLDEN - 2, "relu": clip})
    write_tensors(tmp_path / "found", {"conv": clip, "relu": clip})
    struct = tmp_path / "graph_struct.json"
    nodes = {"c": ("Conv2d", "x", "conv"), "r": ("Relu", "conv", "relu")}
    written = {
        name: {"type": op, "input_tensors": {read: [4]}, "output_tensors": {made: [4]}}
        for name, (op, read, made) in nodes.items()
    }
    struct.write_text(json.dumps(written))
    golden, found = TensorFolder(tmp_path / "golden"), TensorFolder(tmp_path / "found")
    rows = verify(golden, found, plan_of([["mse"]], ""), {}, read_graph_struct(str(struct)))
    assert [(r.name, r.values["mse"]) for r in rows] == [("conv", 0), ("relu", 0)]
    assert "holds what 'relu' does" in rows[0].notes[0]
    write_tensors(tmp_path / "apart", {"conv": clip + 1, "relu": clip})
    rows = verify(
        golden, TensorFolder(tmp_path / "apart"), plan_of([["mse"]], ""), {}, read_graph_struct(str(struct))
    )
    assert rows[0].values["mse"] > 0
    assert not rows[0].notes


def test_folders_that_do_not_fit(tmp_path: Path) -> None:
    golden, _ = folders(tmp_path)
    write_tensors(tmp_path / "strange", {"nothing": FOUND})
    with pytest.raises(InputError, match="no tensor in common"):
        verify(golden, TensorFolder(tmp_path / "strange"), plan_of([["mse"]], ""), {}, {})
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"holds no \.raw"):
        TensorFolder(tmp_path / "empty")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "a.raw").write_bytes(b"12345")
    with pytest.raises(InputError, match="no whole number of float32"):
        TensorFolder(tmp_path / "odd").read("a")


def test_a_golden_nan_is_told_and_other_sizes_lose_nothing(tmp_path: Path) -> None:
    with_nan = GOLDEN.copy()
    with_nan[0] = np.nan
    write_tensors(tmp_path / "golden", {"x": with_nan, "y": GOLDEN})
    write_tensors(tmp_path / "found", {"x": FOUND, "y": FOUND[:3]})
    golden, found = TensorFolder(tmp_path / "golden"), TensorFolder(tmp_path / "found")
    rows = {r.name: r for r in verify(golden, found, plan_of([["mse"]], ""), {}, {})}
    assert "1 NaN" in rows["x"].notes[0]
    assert "golden has 4" in rows["y"].notes[0]
    assert rows["y"].values == {}


def test_config_files(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"TopK": {"parameters": {"k": 5, "ordered": false}, "tensors": [["a"], ["b"]]}}')
    assert [names for _, names in read_verifier_config(str(path))] == [("a",), ("b",)]
    path.write_text('{"TopK": {"tensor": []}}')
    with pytest.raises(InputError, match="unknown keys: tensor"):
        read_verifier_config(str(path))
    path.write_text('{"MeanIOU": {"tensors": [["boxes"]]}}')
    with pytest.raises(InputError, match="takes 2 tensors"):
        read_verifier_config(str(path))
    path.write_text("[1]")
    with pytest.raises(InputError, match="no JSON object"):
        read_tensor_mapping(str(path))
