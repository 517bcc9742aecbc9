"""The commands on a real network: exit codes, what is printed, what is written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import openqnn as api
from openqnn.cli.registry import command_names, tool_names
from openqnn.ir.graph_text import parse_graph
from tests.cli.tool import Result, assert_refused, environment, openqnn
from tests.models.fetch import model_path
from tests.models.reference import reference_outputs
from tests.models.samples import sample_inputs
from tests.onnx_models import model, relu, save, tensor

MODEL, INPUT = "mnist_conv", "Input3"


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def network() -> Path:
    """The digit classifier, converted."""
    result = openqnn("convert", model_path(MODEL), "-o", "mnist.oqnn", "--input_shape", f"{INPUT}=1,1,28,28")
    assert result.code == 0, result.err
    return Path("mnist.oqnn")


def digit() -> np.ndarray:
    return sample_inputs(MODEL)[INPUT]


def reference() -> np.ndarray:
    return next(iter(reference_outputs(MODEL).values()))


# --- convert


def test_convert_says_what_it_wrote(network: Path) -> None:
    result = openqnn("convert", model_path(MODEL), "-o", network)
    nodes = len(api.load(network).nodes)
    assert result.out == f"mnist.oqnn: {nodes} nodes, {network.stat().st_size:,} bytes\n"
    assert not result.err


def test_convert_quietly() -> None:
    result = openqnn("convert", model_path(MODEL), "-o", "q.oqnn", "--quiet")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_convert_names_the_result_after_the_model() -> None:
    save(relu(), Path("my model.v2.onnx"))
    assert openqnn("convert", "my model.v2.onnx").out.startswith("my model.v2.oqnn: 1 nodes")


def test_convert_explains_its_passes() -> None:
    result = openqnn("convert", model_path(MODEL), "-o", "e.oqnn", "--explain")
    assert result.code == 0
    assert len(result.out.splitlines()) > 3


# --- check


def test_a_converted_graph_is_written_in_another_form(network: Path) -> None:
    assert openqnn("convert", network, "-o", "again.oqnn").code == 0
    assert Path("again.oqnn").read_bytes() == network.read_bytes()


def test_check_of_a_good_model() -> None:
    result = openqnn("check", model_path(MODEL))
    assert result.code == 0, result.err
    rows = [line.split() for line in result.out.splitlines()]
    assert ["Conv", "2", "supported"] in rows
    assert result.out.endswith("0 not.\n")


def _unsupported() -> Path:
    nodes = [helper.make_node("Frobnicate", ["x"], [f"v{i}"], name=f"f[bold]{i}") for i in range(3)]
    nodes += [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Relu", ["v0"], ["z"])]
    return save(model(nodes), Path("odd.onnx"))


def test_check_tells_all_problems_in_a_table() -> None:
    result = openqnn("check", _unsupported())
    assert result.code == 1
    assert "Frobnicate" in result.out and "not supported" in result.out
    assert "f[bold]0" in result.out, "names are not taken for markup"
    assert "1 nodes supported, 3 not." in result.out


def test_check_as_json() -> None:
    good = openqnn("check", model_path(MODEL), "--json")
    assert good.code == 0
    report = json.loads(good.out)
    assert report["ok"] is True and report["supported"]["Conv"] == 2 and report["problems"] == []
    bad = openqnn("check", _unsupported(), "--json")
    assert bad.code == 1
    report = json.loads(bad.out)
    assert [p["node"] for p in report["problems"]] == ["f[bold]0", "f[bold]1", "f[bold]2"]
    assert report["problems"][0]["op"] == "Frobnicate"
    assert report["problems"][0]["reason"]


# --- inspect


def test_inspect_adds_up(network: Path) -> None:
    result = openqnn("inspect", network, "--json")
    summary = json.loads(result.out)
    graph = api.load(network)
    assert summary["parameters"] == sum(v.size for v in graph.constants())
    assert summary["macs"] == sum(row["macs"] for row in summary["rows"]) > 100_000
    assert sum(row["count"] for row in summary["rows"]) == len(graph.nodes)
    assert summary["inputs"] == [f"{INPUT}: float32[1,1,28,28]"]
    text = openqnn("inspect", network)
    assert text.code == 0
    assert f"{summary['macs']:,}" in text.out and "Conv2d" in text.out


def test_inspect_text_parses_back(network: Path) -> None:
    result = openqnn("inspect", network, "--text")
    graph = api.load(network)
    data = {v.name: v.data for v in graph.constants() if v.data is not None}
    assert str(parse_graph(result.out, data)) == result.out == str(graph)


def test_inspect_prints_text_or_json(network: Path) -> None:
    assert_refused(openqnn("inspect", network, "--text", "--json"), "--text and --json", code=2)


def test_inspect_converts_a_model_on_the_way() -> None:
    assert openqnn("inspect", model_path(MODEL), "--text").out.startswith('graph "')


def test_shapes_do_not_apply_to_a_converted_graph(network: Path) -> None:
    result = openqnn("inspect", network, "--batch", "2")
    assert_refused(result, "mnist.oqnn has static shapes: batch does not apply", code=2)


# --- run


@pytest.mark.parametrize("kind", ["npy", "raw"])
def test_run_on_arrays_from_files(network: Path, kind: str) -> None:
    digit().tofile("in.raw")
    np.save("in.npy", digit())
    result = openqnn("run", network, "--input", f"{INPUT}=in.{kind}", "--output_dir", "results")
    assert result.code == 0, result.err
    (file,) = Path("results").iterdir()
    np.testing.assert_allclose(np.load(file), reference(), rtol=1e-4)
    assert str(file) in result.out


def test_run_of_a_source_model_with_random_input() -> None:
    result = openqnn("run", model_path(MODEL), "--random", "--threads", "1")
    assert result.code == 0, result.err
    assert [np.load(f).shape for f in Path("output").iterdir()] == [(1, 10)]


def test_run_writes_intermediate_tensors_by_name(network: Path) -> None:
    np.save("in.npy", digit())
    middle = api.load(network).nodes[2].out
    result = openqnn("run", network, "--input", f"{INPUT}=in.npy", "--output", middle.name)
    assert result.code == 0, result.err
    (file,) = Path("output").iterdir()
    assert np.load(file).shape == middle.shape


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], ("no file for input 'Input3'", "--input Input3=FILE.npy, or --random")),
        (["--input", "Input4=in.npy"], ("the graph has no input 'Input4'", "'Input3'")),
        (["--input", "Input3=gone.npy"], ("input 'Input3': gone.npy cannot be read",)),
        (["--input", "Input3=gone.raw"], ("input 'Input3': gone.raw cannot be read",)),
        (["--input", "Input3=text.npy"], ("input 'Input3': text.npy cannot be read",)),
        (["--input", "Input3=text.raw"], ("text.raw has 12 bytes, float32[1, 1, 28, 28] needs 3136",)),
        (["--input", "Input3=short.npy"], ("input 'Input3' has shape [3], the graph wants [1, 1, 28, 28]",)),
        (["--input", "Input3=double.npy"], ("input 'Input3' is int64, the graph wants float32",)),
        (
            ["--random", "--output", "Plus214_Output_1"],
            ("no tensor 'Plus214_Output_1'", "did you mean 'Plus214_"),
        ),
        (["--random", "--backend", "libNothing.so"], ("libNothing.so",)),
        (["--random", "--output_dir", "text.raw"], ("text.raw",)),
    ],
)
def test_run_on_what_does_not_fit(network: Path, argv: list[str], words: tuple[str, ...]) -> None:
    for name in ("text.npy", "text.raw"):
        Path(name).write_text("hello, world")
    np.save("short.npy", np.zeros(3, np.float32))
    np.save("double.npy", np.zeros((1, 1, 28, 28), np.int64))
    assert_refused(openqnn("run", network, *argv), *words)
    assert not Path("output").exists()


def test_outputs_whose_names_differ_only_in_odd_characters() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a/b"]), helper.make_node("Neg", ["x"], ["a:b"])]
    path = save(model(nodes, outputs=[tensor("a/b", (2, 3)), tensor("a:b", (2, 3))]), Path("m.onnx"))
    assert openqnn("run", path, "--random").code == 0
    assert len(list(Path("output").iterdir())) == 2


def test_run_with_integers_beyond_32_bits() -> None:
    node = helper.make_node("Add", ["x", "x"], ["y"])
    infos = [[tensor(n, (2,), TensorProto.INT64)] for n in "xy"]
    path = save(model([node], *infos), Path("m.onnx"))
    np.save("in.npy", np.asarray([1 << 40, 0]))
    assert_refused(openqnn("run", path, "--input", "x=in.npy"), "input 'x' has values beyond int32")
    np.save("in.npy", np.asarray([1 << 20, -5]))
    assert openqnn("run", path, "--input", "x=in.npy").code == 0
    assert np.load("output/y.npy").tolist() == [1 << 21, -10]
    assert np.load("output/y.npy").dtype == np.int64


# --- the program itself


def test_a_bug_of_ours_shows_a_traceback_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("openqnn.api.convert.convert", bug)
    result = openqnn("convert", save(relu(), Path("m.onnx")))
    assert result.code == 3
    assert "Traceback" in result.err and "oops" in result.err
    assert result.err.endswith(
        "error: this is a bug in openqnn; please report it with the traceback above [OQ900]\n"
    )


def test_memory_that_is_not_there_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 4 TiB")

    monkeypatch.setattr("openqnn.api.convert.convert", exhausted)
    result = openqnn("convert", save(relu(), Path("m.onnx")))
    assert_refused(result, "error: not enough memory: Unable to allocate 4 TiB")


def test_a_reader_that_goes_away_is_no_error(network: Path) -> None:
    command = [sys.executable, "-m", "openqnn.cli.main", "inspect", str(network.resolve()), "--text"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=60), err) == (0, b"")


PARSERS = {
    "openqnn": "from openqnn.cli.main import parser; parser()",
    **{
        name: f"from openqnn.cli.registry import tool_named, tool_parser; tool_parser(tool_named({name!r}))"
        for name in tool_names()
    },
}


@pytest.mark.parametrize("command", PARSERS)
def test_commands_start_without_the_heavy_libraries(command: str) -> None:
    """Help and usage errors are for people who wait: they import neither onnx nor onnxruntime."""
    script = (
        f"import sys; {PARSERS[command]}\n"
        "print([m for m in ('onnx', 'onnxruntime', 'rich', 'yaml') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment(), check=True
    )
    assert done.stdout == "[]\n"


def test_compiling_a_file_imports_no_frontend() -> None:
    """What a DLC file needs to be read and compiled: all of it goes before the library's own work."""
    script = (
        "import sys, openqnn.cli.prewarm, openqnn.targets.registry\n"
        "import openqnn.cli.tools.qnn_context_binary_generator\n"
        "print([m for m in ('onnx', 'onnxruntime', 'yaml') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment(), check=True
    )
    assert done.stdout == "[]\n"


def test_models_in_memory_convert_too() -> None:
    proto = onnx.load(model_path(MODEL))
    assert str(api.convert(proto)).splitlines()[1:] == str(api.convert(model_path(MODEL))).splitlines()[1:]


def test_every_command_can_be_quiet_and_speak_json() -> None:
    for name in command_names():
        told = openqnn(name, "--help").out
        assert "--json" in told and "--quiet" in told, name


def test_results_as_json_or_not_at_all(network: Path) -> None:
    """`network` is a graph file already: what a command makes of it is in its record."""
    result = openqnn("run", network, "--random", "--json")
    (output,) = json.loads(result.out)["outputs"].values()
    assert output["shape"] == [1, 10] and Path(output["file"]).is_file()
    assert openqnn("inspect", network, "--quiet").out == ""
    assert openqnn("run", network, "--random", "--quiet") == Result(0, "", "")
