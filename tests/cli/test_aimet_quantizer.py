"""qairt-quantizer --use_aimet_quantizer where it cannot be: what is said, and what is to be done."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.api.files import save_dlc
from openqnn.cli.registry import run_tool
from tests.models.fetch import model_path, static_shapes
from tests.models.samples import sample_inputs
from tests.qnn.nets import needs_htp

MODEL = "mnist_conv"


def run(folder: Path, *options: str) -> int:
    words = ["--input_dlc", str(folder / "m.dlc"), "--use_aimet_quantizer", *options]
    return run_tool("qairt-quantizer", words)


@pytest.mark.parametrize(
    "options",
    [
        ("--float_bitwidth", "16"),
        ("--float_bias_bitwidth", "16"),
        ("--restrict_quantization_steps", "-0x80 0x7F"),
    ],
)
def test_options_that_exclude_it(
    options: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(tmp_path, "--input_list", "list.txt", *options) != 0
    assert f"{options[0]} cannot be given with --use_aimet_quantizer" in capsys.readouterr().err


def test_float_fallback_excludes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--float_fallback") != 0
    assert "--float_fallback cannot be given with --use_aimet_quantizer" in capsys.readouterr().err


@needs_htp
@pytest.mark.skipif(importlib.util.find_spec("aimet_onnx") is not None, reason="aimet-onnx is installed")
def test_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIMET_ENV_PYTHON", raising=False)
    save_dlc(openqnn.convert(model_path(MODEL), input_shapes=static_shapes(MODEL)), tmp_path / "m.dlc")
    (sample,) = sample_inputs(MODEL).values()
    sample.astype(np.float32).tofile(tmp_path / "0.raw")
    (tmp_path / "list.txt").write_text(f"{tmp_path / '0.raw'}\n", encoding="utf-8")
    assert run(tmp_path, "--input_list", str(tmp_path / "list.txt")) != 0
    said = capsys.readouterr().err
    assert "aimet-onnx is not installed in " in said
    assert "aimet_env_setup.sh" in said and "AIMET_ENV_PYTHON" in said
    monkeypatch.setenv("AIMET_ENV_PYTHON", "/no/python")
    assert run(tmp_path, "--input_list", str(tmp_path / "list.txt")) != 0
    assert "AIMET_ENV_PYTHON: /no/python cannot be run" in capsys.readouterr().err
