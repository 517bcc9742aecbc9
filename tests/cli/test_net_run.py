"""qnn-net-run on real networks and real libraries: sources, inputs, outputs, execution, profiling."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

import openqnn
from openqnn.emit import lower
from openqnn.emit.model_source import write_model_source
from openqnn.ir import DType, Graph
from openqnn.ops import Builder
from openqnn.passes.boundary.layouts import Borders
from openqnn.qnn import abi
from openqnn.qnn.net import NetTensor, TensorKind
from tests.cli.running import Prepared, assert_done, prepare
from tests.cli.tool import assert_refused, environment, tool
from tests.models.fetch import model_path
from tests.qnn.nets import needs_cpu, needs_htp

pytestmark = needs_cpu
BACKENDS = [pytest.param("cpu", marks=needs_cpu), pytest.param("htp", marks=needs_htp)]


@pytest.fixture
def mnist(tmp_path: Path) -> Prepared:
    return prepare("mnist_conv", tmp_path)


def compiled(case: Prepared, backend: str, *source: object) -> Path:
    given = ("--backend", backend, "--binary_file", "c", "--output_dir", case.folder)
    assert_done(tool("qnn-context-binary-generator", *source, *given))
    return case.folder / "c.bin"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("model", ["mnist_conv", "mtcnn_onet"])
def test_every_source_gives_the_same_bits(model: str, backend: str, tmp_path: Path) -> None:
    case = prepare(model, tmp_path, lines=1)
    assert_done(case.run("--model", tmp_path / "model.oqnn", to="graph", backend=backend))
    assert_done(case.run("--dlc_path", case.dlc, "--model", "libQnnModelDlc.so", to="dlc", backend=backend))
    binary = compiled(case, backend, "--dlc_path", case.dlc)
    assert_done(case.run("--retrieve_context", binary, "--use_mmap", to="bin", backend=backend))
    wanted = case.results("graph")
    assert len(wanted) == len(case.graph.outputs)
    assert case.results("dlc") == wanted
    assert case.results("bin") == wanted


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_recurrent_network_gives_the_same_bits(backend: str, tmp_path: Path) -> None:
    case = prepare("silero_seq", tmp_path, lines=1, dlc=False)  # libQnnIr cannot write an Lstm
    assert_done(case.run("--model", tmp_path / "model.oqnn", to="graph", backend=backend))
    binary = compiled(case, backend, "--model", tmp_path / "model.oqnn")
    assert_done(case.run("--retrieve_context", binary, to="bin", backend=backend))
    assert case.results("bin") == case.results("graph")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_library_gives_the_same_bits(mnist: Prepared, backend: str) -> None:
    write_model_source([lower(mnist.graph)], mnist.folder / "model.cpp")
    files = ("-c", mnist.folder / "model.cpp", "-b", mnist.folder / "model.bin", "-o", mnist.folder / "lib")
    assert_done(tool("qnn-model-lib-generator", *files, "-t", "x86_64-linux-clang"))
    library = next((mnist.folder / "lib").rglob("*.so"))
    assert_done(mnist.run("--model", library, to="lib_out", backend=backend))
    assert_done(mnist.run("--dlc_path", mnist.dlc, to="dlc", backend=backend))
    assert mnist.results("lib_out") == mnist.results("dlc")
    refused = mnist.run("--model", library, "--model_prefix", "Other", to="none", backend=backend)
    assert_refused(refused, "Other_composeGraphs")


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_library_with_an_input_that_no_node_reads(mnist: Prepared, backend: str) -> None:
    """From another converter: ours leaves it out. Libraries forget it, and refuse to be given it."""
    net = lower(mnist.graph)
    idle = NetTensor("length", TensorKind.APP_WRITE, abi.INT_32, (1,))
    net = replace(net, tensors=net.tensors | {"length": idle}, inputs=(*net.inputs, "length"))
    write_model_source([net], mnist.folder / "model.cpp")
    files = ("-c", mnist.folder / "model.cpp", "-b", mnist.folder / "model.bin", "-o", mnist.folder / "lib")
    assert_done(tool("qnn-model-lib-generator", *files, "-t", "x86_64-linux-clang"))
    library = next((mnist.folder / "lib").rglob("*.so"))
    result = mnist.run("--model", library, backend=backend)
    assert_done(result)
    assert "input 'length': no node reads it, and libraries leave it out" in result.err


def test_the_record_of_a_finished_run(mnist: Prepared) -> None:
    assert_done(mnist.run("--dlc_path", mnist.dlc))
    record = yaml.safe_load((mnist.folder / "out/execution_metadata.yaml").read_text())
    (graph,) = record["graphs"]
    assert (graph["num_inferences"], graph["num_results"]) == (2, 2)
    assert graph["output_tensors"][0]["file_name"] == "Plus214_Output_0.raw"
    assert not list(mnist.folder.glob(".out*"))


def test_a_second_run_replaces_the_first(mnist: Prepared) -> None:
    assert_done(mnist.run("--dlc_path", mnist.dlc))
    (mnist.folder / "out/notes.txt").write_text("mine")
    assert_done(mnist.run("--dlc_path", mnist.dlc, "--num_inferences", 1))
    names = sorted(path.name for path in (mnist.folder / "out").iterdir())
    assert names == ["Result_0", "execution_metadata.yaml", "notes.txt"]


def test_what_else_is_in_a_folder_named_as_a_graph_stays(mnist: Prepared) -> None:
    """Several graphs have folders of their own, beside whatever there is."""
    other = Graph("other")
    other.add_output(Builder(other)("Relu", other.add_input("x", DType.FLOAT_32, (1, 784)), name="y"))
    other.save(mnist.folder / "other.dlc")
    (mnist.folder / "other.txt").write_text("Input3.raw\n")
    kept = mnist.folder / "out" / "other" / "notes.txt"
    (kept.parent / "Result_7").mkdir(parents=True)
    kept.write_text("mine")
    files, lists = f"{mnist.dlc},{mnist.folder / 'other.dlc'}", f"{mnist.list},{mnist.folder / 'other.txt'}"
    assert_done(mnist.run("--dlc_path", files, lists=lists))
    assert sorted(path.name for path in kept.parent.iterdir()) == ["Result_0", "notes.txt"]
    assert kept.read_text() == "mine"


@pytest.mark.parametrize(
    "text",
    [
        "Input3:=Input3.raw\r\n\r\nInput3:=Input3.raw\r\n",
        "Input3.raw\n\n# a comment\nInput3.raw",
        "\ufeff%Plus214_Output_0\nInput3:=Input3.raw\nInput3.raw\n",
        "#Parameter194_reshape1 nothing\nInput3.raw\nInput3.raw",
    ],
)
def test_forms_of_input_lists(mnist: Prepared, text: str) -> None:
    mnist.list.write_bytes(text.encode())
    assert_done(mnist.run("--dlc_path", mnist.dlc))
    assert mnist.results(number=0) == mnist.results(number=1)
    assert not (mnist.folder / "out/Result_2").exists()


def test_files_in_the_types_of_the_graph(mnist: Prepared) -> None:
    """By the flags' newer and older names."""
    types = {"Input3": DType.UINT_8, "Plus214_Output_0": DType.INT_32}
    graph = openqnn.convert(model_path("mnist_conv"), borders=Borders(dtypes=types))
    graph.save(mnist.folder / "bytes.dlc")
    np.full(28 * 28, 7, np.uint8).tofile(mnist.folder / "Input3.raw")
    source = ("--dlc_path", mnist.folder / "bytes.dlc")
    assert_done(mnist.run(*source, "--use_native_input_files", "--use_native_output_files", to="new"))
    older = ("--input_data_type", "native", "--output_data_type", "native_only")
    assert_done(mnist.run(*source, *older, to="old"))
    assert list(mnist.results("old")) == ["Plus214_Output_0_native.raw"]
    assert mnist.results("old") == mnist.results("new")
    assert_done(mnist.run(*source, "--use_native_input_files", to="real"))
    both = ("--use_native_input_files", "--output_data_type", "float_and_native")
    assert_done(mnist.run(*source, *both, to="both"))
    assert mnist.results("both") == mnist.results("real") | mnist.results("new")
    assert_refused(mnist.run(*source, "--input_data_type", "float", to="bad"), "but 3,136 are needed")
    np.full(28 * 28, 7, np.int32).tofile(mnist.folder / "Input3.raw")  # as large as floats
    words = "line 1, input 'Input3': the numbers look like integers", "uint8, use --use_native_input_files"
    assert_refused(mnist.run(*source, to="bad"), *words)
    np.full(28 * 28, 7.5, np.float32).tofile(mnist.folder / "Input3.raw")
    assert_done(mnist.run(*source, "--use_native_output_files", to="floats"))
    assert mnist.results("floats") == mnist.results("new")


@needs_htp
def test_inputs_that_htp_takes_in_another_form_are_told(mnist: Prepared) -> None:
    """Read in the task, and before it."""
    graph = openqnn.convert(model_path("mnist_conv"), borders=Borders(dtypes={"Input3": DType.INT_8}))
    graph.save(mnist.folder / "bytes.dlc")
    words = "input 'Input3': int8 1x1x28x28 in the file, int32 1x1x28x28 for HTP"
    flags = ("--dlc_path", mnist.folder / "bytes.dlc", "--backend", "htp")
    inputs = ("--input_list", mnist.list, "--output_dir", mnist.folder / "out")
    result = tool("qnn-net-run", *flags, *inputs)
    assert_done(result)
    assert words in result.err
    name = "qnn-context-binary-generator"
    call = f"import sys; from openqnn.cli.prewarm import run_prewarmed as f; sys.exit(f({name!r}))"
    made = subprocess.run(
        [sys.executable, "-c", call, *map(str, flags), "--binary_file", "c", "--output_dir", mnist.folder],
        capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert words in made.stderr
    plain = mnist.run("--dlc_path", mnist.dlc, backend="htp")
    assert "for HTP" not in plain.err


@needs_htp
@pytest.mark.parametrize("dtype", [DType.UINT_8, DType.UINT_32, DType.INT_64])
def test_types_that_htp_casts_stay_those_of_the_file(mnist: Prepared, dtype: DType) -> None:
    """At both ends: an application hands over what the file says."""
    graph = Graph("steps")
    b = Builder(graph, "test")
    doubled = b.mul(b.cast(graph.add_input("x", dtype, (1, 4)), DType.INT_32), 2)
    graph.add_output(b.cast(doubled, dtype))
    graph.save(mnist.folder / "typed.dlc")
    given = np.array([[0, 1, 100, 7]], dtype.numpy)
    given.tofile(mnist.folder / "x.raw")
    (mnist.folder / "typed.txt").write_text(f"x:={mnist.folder / 'x.raw'}\n")
    native = ("--use_native_input_files", "--use_native_output_files", "--output_dir", mnist.folder / "typed")
    inputs = ("--input_list", mnist.folder / "typed.txt", *native)
    result = tool("qnn-net-run", "--dlc_path", mnist.folder / "typed.dlc", "--backend", "htp", *inputs)
    assert_done(result)
    assert "for HTP" not in result.err
    (written,) = (mnist.folder / "typed" / "Result_0").iterdir()
    assert np.fromfile(written, dtype.numpy).tolist() == [0, 2, 200, 14]


def test_how_many_inferences_and_results(mnist: Prepared) -> None:
    result = mnist.run(
        "--dlc_path", mnist.dlc, "--num_inferences", 5, "--keep_num_outputs", 3, "--synchronous"
    )
    assert_done(result)
    assert "5 inference(s)" in result.out
    assert "3 result(s)" in result.out
    assert len(list((mnist.folder / "out").glob("Result_*"))) == 3
    result = mnist.run("--dlc_path", mnist.dlc, "--duration", 0.3, "--keep_num_outputs", 0)
    assert "0 result(s)" in result.out
    for flag, value in (("--max_input_cache_tensor_sets", -1), ("--max_input_cache_size_mb", 0)):
        assert_done(mnist.run("--dlc_path", mnist.dlc, flag, value, "--num_inferences", 5))
        assert mnist.results(number=4) == mnist.results(number=0)


def test_every_layer_and_chosen_tensors(mnist: Prepared) -> None:
    assert_done(mnist.run("--dlc_path", mnist.dlc))
    plain = mnist.results()
    assert_done(mnist.run("--dlc_path", mnist.dlc, "--debug", to="all"))
    layers = mnist.results("all")
    assert len(layers) == sum(len(node.outputs) for node in mnist.graph.nodes)
    assert layers["Plus214_Output_0.raw"] == plain["Plus214_Output_0.raw"]
    chosen = next(name for name in layers if name not in plain).removesuffix(".raw")
    assert_done(mnist.run("--dlc_path", mnist.dlc, "--set_output_tensors", chosen, to="some"))
    assert mnist.results("some") == {f"{chosen}.raw": layers[f"{chosen}.raw"], **plain}
    result = mnist.run("--dlc_path", mnist.dlc, "--set_output_tensors", "nowhere:x", to="none")
    assert_refused(result, "there is no graph 'nowhere'")
    result = mnist.run("--dlc_path", mnist.dlc, "--set_output_tensors", f"{chosen}x", to="none")
    assert_refused(result, f"computes no tensor '{chosen}x'", f"it computes {chosen}")
    result = mnist.run("--dlc_path", mnist.dlc, "--set_output_tensors", ";", to="none")
    assert "it names no tensor" in result.err
    assert not (mnist.folder / "none").exists()


def test_an_input_list_names_layers_and_tensors(mnist: Prepared) -> None:
    layer = next(node for node in lower(mnist.graph).nodes if node.name not in node.outputs)
    mnist.list.write_text(f"#{layer.name} nothing\nInput3.raw\n")
    result = mnist.run("--dlc_path", mnist.dlc)
    assert_done(result)
    assert f"{layer.outputs[0]}.raw" in mnist.results()
    assert "an input list asks for 'nothing', and no graph has a tensor or layer of that name" in result.err
    binary = compiled(mnist, "cpu", "--dlc_path", mnist.dlc)
    result = mnist.run("--retrieve_context", binary, to="binary")
    assert_done(result)
    assert f"asks for '{layer.name}', and outputs are compiled into a context binary" in result.err


@needs_htp
def test_a_larger_batch_on_htp(mnist: Prepared) -> None:
    rng = np.random.default_rng(1)
    for i in range(5):
        rng.standard_normal((1, 1, 28, 28)).astype(np.float32).tofile(mnist.folder / f"{i}.raw")
    mnist.list.write_text("".join(f"{i}.raw\n" for i in range(5)))
    assert_done(mnist.run("--dlc_path", mnist.dlc, to="one", backend="htp"))
    result = mnist.run("--dlc_path", mnist.dlc, "--batch_multiplier", 3, to="three", backend="htp")
    assert "2 inference(s)" in result.out
    for i in range(5):
        assert mnist.results("three", i) == mnist.results("one", i)
    refused = mnist.run("--dlc_path", mnist.dlc, "--batch_multiplier", 2)
    assert_refused(refused, "runs the batch that the graph was composed with")


def _of_batches(folder: Path) -> None:
    """A graph of batches of two: what is by elements, what is not, and files of one element and of two."""
    graph = Graph("pairs")
    builder = Builder(graph)
    x = graph.add_input("x", DType.FLOAT_32, (2, 3))
    graph.add_output(builder("Relu", x, name="by_element"))
    graph.add_output(builder("ReduceSum", x, axes=(0, 1), keep_dims=False, name="sum"))
    graph.add_output(builder("Transpose", x, perm=(1, 0), name="turned"))
    graph.save(folder / "pairs.dlc")
    for number in range(4):
        np.full(3, number, np.float32).tofile(folder / f"one{number}.raw")
        np.full((2, 3), number, np.float32).tofile(folder / f"two{number}.raw")


def _batched(
    mnist: Prepared, files: str, backend: str, *flags: object
) -> tuple[str, list[dict[str, list[float]]]]:
    (mnist.folder / "pairs.txt").write_text("".join(f"{files}{number}.raw\n" for number in range(4)))
    source = ("--dlc_path", mnist.folder / "pairs.dlc")
    result = mnist.run(*source, *flags, backend=backend, lists=mnist.folder / "pairs.txt")
    assert_done(result)
    found = [mnist.results(number=number) for number in range(4)]
    return result.err, [
        {k: np.frombuffer(v, np.float32).round(3).tolist() for k, v in each.items()} for each in found
    ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_outputs_that_are_not_by_elements_of_a_batch(mnist: Prepared, backend: str) -> None:
    _of_batches(mnist.folder)
    told, found = _batched(mnist, "one", backend)
    assert "output 'sum': it is not by elements of the batch" in told
    assert "'by_element'" not in told
    assert [each["by_element.raw"] for each in found] == [[n] * 3 for n in range(4)]
    assert [each["sum.raw"] for each in found] == [[3.0], [3.0], [15.0], [15.0]]
    assert [each["turned.raw"] for each in found[2:]] == [[2, 3, 2, 3, 2, 3]] * 2


@needs_htp
@pytest.mark.parametrize("factor", [2, 3])
def test_files_of_the_composed_batch_make_a_larger_one(mnist: Prepared, factor: int) -> None:
    _of_batches(mnist.folder)
    _, plain = _batched(mnist, "two", "htp")
    told, found = _batched(mnist, "two", "htp", "--batch_multiplier", factor)
    assert found == plain and "not by elements" not in told


def test_the_queue_of_a_configuration_file(mnist: Prepared) -> None:
    config = mnist.folder / "config.json"
    config.write_text(json.dumps({
        "context_configs": {"async_execute_queue_depth": 4, "context_priority": "high"},
        "async_graph_execution_config": {"execute_enqueue_tasks_limit": 2},
    }))  # fmt: skip
    assert_done(mnist.run("--dlc_path", mnist.dlc, to="plain"))
    result = mnist.run("--dlc_path", mnist.dlc, "--config_file", config, "--num_inferences", 7)
    assert_done(result)
    assert "a queue of ours of depth 2" in result.err
    assert "context_priority" in result.err
    assert mnist.results(number=6) == mnist.results("plain")
    config.write_text('{"graph_configs": [{"graph_name": "other", "graph_profiling_num_executions": 1}]}')
    assert_refused(mnist.run("--dlc_path", mnist.dlc, "--config_file", config), "is for graph 'other'")
    config.write_text('{"context_configs": {"colour": 1}}')
    assert_refused(mnist.run("--dlc_path", mnist.dlc, "--config_file", config), "no setting", "colour")


def test_settings_that_do_nothing_beside_the_flags_are_told(mnist: Prepared) -> None:
    config = mnist.folder / "config.json"
    config.write_text(json.dumps({
        "context_configs": {"async_execute_queue_depth": 4, "enable_graphs": ["other"]},
        "graph_configs": [{"graph_name": lower(mnist.graph).name, "graph_profiling_num_executions": 1}],
    }))  # fmt: skip
    given = ("--dlc_path", mnist.dlc, "--config_file", config)
    result = mnist.run(*given)
    assert_done(result)
    assert "enable_graphs: it chooses among the graphs of a context binary" in result.err
    assert "nothing is profiled without --profiling_level" in result.err
    result = mnist.run(*given, "--profiling_level", "basic")
    assert_done(result)
    assert "nothing is profiled" not in result.err
    assert "note: no asynchronous execution: profiling measures" in result.err


@needs_htp
def test_settings_of_htp_are_read_back_or_told(mnist: Prepared) -> None:
    config = mnist.folder / "config.json"
    given = ("--dlc_path", mnist.dlc, "--config_file", config)
    taken = {"O": 3, "vtcm_mb": 2}
    chip = {"soc_model": 43, "profiling_level": "linting"}
    config.write_text(json.dumps({"graphs": taken, "devices": chip}))
    result = mnist.run(*given, "--soc", "SM8650", backend="htp")
    assert_done(result)
    assert "the chip of the configuration file gives way to SM8650" in result.err
    assert "linting goes with --profiling_level backend" in result.err
    config.write_text(json.dumps({"graphs": {**taken, "hvx_threads": 2}}))
    refused = mnist.run(*given, backend="htp", to="untaken")
    assert_refused(refused, "settings that did not take effect", "hvx_threads 2 was asked for")
    assert not (mnist.folder / "untaken").exists()


@pytest.mark.parametrize("level", ["basic", "detailed", "client"])
def test_profiling_writes_the_log(mnist: Prepared, level: str) -> None:
    result = mnist.run(
        "--dlc_path", mnist.dlc, "--profiling_level", level, "--graph_profiling_num_executions", 1,
        "--graph_profiling_start_delay", 0,
    )  # fmt: skip
    assert_done(result)
    link = mnist.folder / "out/qnn-profiling-data.log"
    assert link.is_symlink()
    assert link.resolve().name == "qnn-profiling-data_0.log"
    assert link.stat().st_size > 100


@needs_htp
def test_the_backend_level_and_its_limits(mnist: Prepared) -> None:
    assert_done(mnist.run("--dlc_path", mnist.dlc, "--profiling_level", "backend", backend="htp"))
    result = mnist.run("--dlc_path", mnist.dlc, "--profiling_level", "backend")
    assert_refused(result, "no profiling level of its own", code=2)
    result = mnist.run("--dlc_path", mnist.dlc, "--profiling_level", "basic", "--profiling_option", "optrace")
    assert_refused(result, "goes with --profiling_level detailed", code=2)


def test_what_excludes_or_needs_something_else(mnist: Prepared) -> None:
    for flags, words in (
        ((), "one of --model, --dlc_path and --retrieve_context"),
        (("--retrieve_context", "x.bin", "--debug"), "compiled into it"),
        (("--dlc_path", mnist.dlc, "--use_mmap"), "--use_mmap goes with --retrieve_context"),
        (("--dlc_path", mnist.dlc, "--retrieve_context_timeout", 5), "goes with --retrieve_context"),
        (("--dlc_path", mnist.dlc, "--graph_profiling_start_delay", 5), "profiling needs a level"),
        (("--dlc_path", mnist.dlc, "--profiling_option", "optrace"), "hint: --profiling_level detailed"),
        (("--dlc_path", mnist.dlc, "--soc", "SM8650"), "only be chosen for HTP"),
        (("--dlc_path", mnist.dlc, "--model_prefix", "My"), "--model_prefix goes with a model library"),
        (("--retrieve_context", "x.bin", "--model_prefix", "My"), "--model_prefix goes with a model library"),
        (("--model", "libQnnModelDlc.so"), "needs a DLC file"),
    ):
        assert_refused(mnist.run(*flags), words, code=2)
    assert_refused(tool("qnn-net-run", "--dlc_path", "m"), "--backend is required", code=2)


def test_versions() -> None:
    result = tool("qnn-net-run", "--version")
    assert result.code == 0
    assert "libQnnCpu.so v2." in result.out
