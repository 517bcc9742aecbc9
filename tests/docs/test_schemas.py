"""docs/schemas describes what every command prints with --json: real results, on a real network."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import numpy as np
import onnx
import pytest

from openqnn.cli.registry import command_names
from tests.cli.tool import openqnn, tool
from tests.docs.schema_pages import FOLDER, files
from tests.docs.valid import valid_record
from tests.libraries import need
from tests.models.fetch import model_path

CPU, HTP = "libQnnCpu.so", "libQnnHtp.so"
RUNS: tuple[tuple[str, str, str], ...] = (
    ("convert digits.onnx -o digits.oqnn", "", "digits.oqnn"),
    ("check digits.onnx", "", ""),
    ("check digits.onnx --backend htp", HTP, ""),
    ("check digits.onnx --matrix", HTP, ""),
    ("inspect digits.oqnn", "", ""),
    ("run digits.oqnn --input Input3=digit.npy --output_dir out", "", "out/Plus214_Output_0.npy"),
    ("quantize digits.onnx --data samples -o fixed.oqnn", "", "fixed.oqnn"),
    ("quantize digits.onnx --data samples --target_sqnr 60 -o wide.oqnn", "", "wide.oqnn"),
    ("encodings fixed.oqnn", "", ""),
    ("encodings fixed.oqnn --to 1.0.0 -o digits.encodings", "", "digits.encodings"),
    ("encodings digits.onnx --lint digits.encodings", "", ""),
    ("doctor", "", ""),
    ("completion bash", "", ""),
    ("diff digits.oqnn fixed.oqnn", "", ""),
    ("compile fixed.oqnn -o digits.bin", HTP, "digits.bin"),
    ("inspect digits.bin", HTP, ""),
    ("context check digits.bin", HTP, ""),
    ("compare fixed.oqnn --data samples", HTP, ""),
    ("wrap digits.bin -o digits_ctx.onnx", HTP, "digits_ctx.onnx"),
    ("extract digits_ctx.onnx -o again.bin", HTP, "again.bin"),
    ("estimate fixed.oqnn", HTP, ""),
    ("lint digits.oqnn", "", ""),
    ("view digits.oqnn fixed.oqnn --html page.html", "", "page.html"),
    ("bench digits.onnx --runs 3", "", ""),
    ("debug digits.onnx --data samples", "", ""),
    ("evaluate digits.onnx --data samples --work_dir evaluated", "", "evaluated/metrics-info.csv"),
    ("deploy fixed.oqnn -o bundle", HTP, "bundle/run.sh"),
    ("explain 1002", "", ""),
    ("models list", "", ""),
    ("models fetch mnist_conv", "", ""),
    ("partition digits.oqnn -o partition.yaml", HTP, "partition.yaml"),
    ("profile run/qnn-profiling-data_0.log", CPU, ""),
    ("profile diff run/qnn-profiling-data_0.log run/qnn-profiling-data_0.log", CPU, ""),
    ("sdk-tree sdk", "", "sdk/bin/envsetup.sh"),
)
"""Command lines in order, the library that they need, and a file that each writes."""
ELSEWHERE = {"demo", "fuse", "op-package", "reduce"}
"""Commands whose own tests hold their results against the schema."""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A folder with a network that reads digits, data for it, and a profiling log."""
    folder = tmp_path_factory.mktemp("json")
    before = Path.cwd()
    os.chdir(folder)
    (folder / "digits.onnx").write_bytes(Path(model_path("mnist_conv")).read_bytes())
    digit = onnx.numpy_helper.to_array(onnx.load_tensor(model_path("mnist_digit")))
    np.save("digit.npy", digit)
    Path("samples").mkdir()
    for shift in range(4):
        np.save(f"samples/{shift}.npy", np.roll(digit, shift, axis=3))
    digit.tofile("digit.raw")
    Path("list.txt").write_text("Input3:=digit.raw\n")
    yield folder
    os.chdir(before)


@pytest.mark.parametrize(("line", "library", "writes"), RUNS, ids=[line for line, *_ in RUNS])
def test_what_is_printed_is_what_the_schema_says(work: Path, line: str, library: str, writes: str) -> None:
    if library:
        need(library)
    if line.startswith("profile") and not Path("run").exists():
        words = "--profiling_level detailed --input_list list.txt --output_dir run"
        assert not tool("qnn-net-run", "--model", "digits.onnx", "--backend", CPU, *words.split()).code
    result = openqnn(*line.split(), "--json")
    assert result.code == (1 if line.startswith(("lint", "diff")) else 0), result.err
    valid_record(line.split(maxsplit=1)[0], result.out)
    assert not writes or (work / writes).stat().st_size


def test_every_command_is_tried() -> None:
    assert {line.split()[0] for line, *_ in RUNS} | ELSEWHERE == set(command_names())


def test_files_are_up_to_date() -> None:
    made = files()
    assert {path.name for path in FOLDER.iterdir()} == set(made)
    stale = [name for name, text in made.items() if (FOLDER / name).read_text(encoding="utf-8") != text]
    assert not stale, "python -m tests.docs.schema_pages"


def test_a_record_that_says_something_else_is_found() -> None:
    with pytest.raises(Exception, match="is a required property"):
        valid_record("convert", '{"output": "x", "nodes": 3}')
    with pytest.raises(AssertionError, match="Infinity is no JSON"):
        valid_record("convert", '{"output": "x", "nodes": 3, "bytes": Infinity}')
