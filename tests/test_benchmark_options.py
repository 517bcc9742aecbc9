"""Options that the benchmarks share."""

from __future__ import annotations

import argparse

import pytest

from benchmarks.options import add_models


def parsed(*arguments: str) -> list[str] | None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*")
    add_models(parser, ["one", "two", "three"])
    return parser.parse_args(arguments).models


def test_models_are_named_with_spaces_or_commas() -> None:
    assert parsed("--models", "two", "one") == ["two", "one"]
    assert parsed("part", "--models", "two,one", "three") == ["two", "one", "three"]


def test_no_models_are_not_all_models() -> None:
    assert parsed() is None
    assert parsed("--models", "") == []


def test_a_model_that_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--models", "two,four")
    assert "no model 'four'; there are: one, two, three" in capsys.readouterr().err
