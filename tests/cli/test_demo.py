"""openqnn demo: the whole job, whose numbers agree with ONNX Runtime and with each other."""

from __future__ import annotations

from pathlib import Path

from openqnn.cli.commands.demo import DemoOptions
from openqnn.cli.main import parser
from openqnn.options.field import read_options
from tests.cli.tool import openqnn
from tests.docs.valid import valid_record


def test_a_folder_need_not_be_named() -> None:
    assert read_options(parser(["demo"]).parse_args(["demo"]), DemoOptions).folder == "openqnn-demo"


def test_the_whole_job(tmp_path: Path) -> None:
    result = openqnn("demo", tmp_path / "demo", "--json", "--quiet")
    assert result.code == 0, result.err
    assert "[1/6]" not in result.err
    record = valid_record("demo", result.out)
    assert abs(record["float"] - record["onnxruntime"]) < 1e-4
    assert abs(record["fixed"] - record["float"]) < 0.1
    assert record["htp"] is None or abs(record["htp"] - record["fixed"]) < 0.02
    for name in ("face.oqnn", "face.quantized.oqnn", "report.html", "graph.html"):
        assert (tmp_path / "demo" / name).stat().st_size > 10_000
