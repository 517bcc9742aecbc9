"""Damaged and hostile .pt2 files are refused with one message: nothing is unpickled or written."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import openqnn
from openqnn.errors import ModelError, OpenQnnError
from tests.frontends.torch.test_read_pt2 import PROGRAMS

WHOLE = (PROGRAMS / "cnn.pt2").read_bytes()


def changed(tmp_path: Path, change: Callable[[str, bytes], tuple[str, bytes] | None]) -> Path:
    """The program with some entries changed or left out."""
    target = tmp_path / "m.pt2"
    with (
        zipfile.ZipFile(PROGRAMS / "cnn.pt2") as old,
        zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as new,
    ):
        for name in old.namelist():
            kept = change(name, old.read(name))
            if kept is not None:
                new.writestr(*kept)
    return target


def edited(tmp_path: Path, ending: str, edit: Callable[[dict], object]) -> Path:
    def change(name: str, data: bytes) -> tuple[str, bytes]:
        if not name.endswith(ending):
            return name, data
        parsed = json.loads(data)
        edit(parsed)
        return name, json.dumps(parsed).encode()

    return changed(tmp_path, change)


@pytest.mark.parametrize("size", [0, 3, 100, 5000, len(WHOLE) // 2, len(WHOLE) - 30])
def test_truncated(tmp_path: Path, size: int) -> None:
    path = tmp_path / "m.pt2"
    path.write_bytes(WHOLE[:size])
    with pytest.raises(ModelError):
        openqnn.convert(path)


def test_a_weight_whose_size_lies(tmp_path: Path) -> None:
    def edit(parsed: dict) -> None:
        parsed["config"]["head.weight"]["tensor_meta"]["sizes"][0]["as_int"] = 1 << 40

    with pytest.raises(ModelError, match=r"head\.weight.*needs .* bytes"):
        openqnn.convert(edited(tmp_path, "weights_config.json", edit))


def test_negative_strides_and_offsets(tmp_path: Path) -> None:
    def edit(parsed: dict) -> None:
        parsed["config"]["head.weight"]["tensor_meta"]["strides"][0]["as_int"] = -7

    with pytest.raises(ModelError, match="sizes that cannot be"):
        openqnn.convert(edited(tmp_path, "weights_config.json", edit))


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil"])
def test_entries_that_leave_the_archive(tmp_path: Path, name: str) -> None:
    path = changed(tmp_path, lambda n, d: (n, d))
    with zipfile.ZipFile(path, "a") as zipped:
        zipped.writestr(name, b"x")
    with pytest.raises(ModelError, match="leaves the archive"):
        openqnn.convert(path)


def test_a_missing_weight(tmp_path: Path) -> None:
    path = changed(tmp_path, lambda n, d: None if n.endswith("weight_0") else (n, d))
    with pytest.raises(ModelError, match=r"no entry .*weight_0"):
        openqnn.convert(path)


def test_a_pickled_weight_is_not_opened(tmp_path: Path) -> None:
    def edit(parsed: dict) -> None:
        parsed["config"]["head.weight"]["use_pickle"] = True

    with pytest.raises(OpenQnnError, match=r"head\.weight.*pickle, which is not opened"):
        openqnn.convert(edited(tmp_path, "weights_config.json", edit))


def test_no_json(tmp_path: Path) -> None:
    path = changed(tmp_path, lambda n, d: (n, b"{[") if n.endswith("model.json") else (n, d))
    with pytest.raises(ModelError, match="is no JSON"):
        openqnn.convert(path)


def test_another_shape_of_json(tmp_path: Path) -> None:
    path = edited(tmp_path, "models/model.json", lambda p: p["graph_module"].pop("signature"))
    with pytest.raises(ModelError, match="not as torch writes it"):
        openqnn.convert(path)


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    def edit(parsed: dict) -> None:
        node = next(n for n in parsed["graph_module"]["graph"]["nodes"] if "conv2d" in n["target"])
        node["inputs"][3]["arg"] = {"as_string": "wide"}

    with pytest.raises(OpenQnnError, match="argument 'stride' is a str"):
        openqnn.convert(edited(tmp_path, "models/model.json", edit))
