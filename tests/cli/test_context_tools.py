"""qnn-context-binary-generator, qnn-context-binary-utility, openqnn compile and extract."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.cli.running import Prepared, assert_done, prepare
from tests.cli.tool import Result, assert_refused, environment, openqnn, tool
from tests.qnn.nets import needs_htp

pytestmark = needs_htp


@pytest.fixture
def mnist(tmp_path: Path) -> Prepared:
    return prepare("mnist_conv", tmp_path)


def generate(case: Prepared, *flags: object, backend: str = "htp", source: object = None) -> Result:
    given = ("--dlc_path", source or case.dlc, "--backend", backend, "--output_dir", case.folder / "ctx")
    return tool("qnn-context-binary-generator", *given, *flags)


def described(case: Prepared, name: str = "c") -> dict[str, object]:
    target = case.folder / f"{name}.json"
    made = tool(
        "qnn-context-binary-utility",
        "--context_binary",
        case.folder / f"ctx/{name}.bin",
        "--json_file",
        target,
    )
    assert_done(made)
    return json.loads(target.read_text())


def config(case: Prepared, **inner: object) -> Path:
    (case.folder / "inner.json").write_text(json.dumps(inner))
    outer = {"backend_extensions": {"shared_library_path": "x.so", "config_file_path": "inner.json"}}
    (case.folder / "outer.json").write_text(json.dumps(outer))
    return case.folder / "outer.json"


def test_the_default_soc_is_named(mnist: Prepared) -> None:
    result = generate(mnist, "--binary_file", "c")
    assert_done(result)
    assert "SM8650" in result.err
    info = described(mnist)["info"]
    assert info["socModel"] == 57
    assert info["contextMetadata"]["info"]["dspArch"] == 75


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
from openqnn.cli.registry import run_tool
sys.exit(run_tool("qnn-context-binary-generator", sys.argv[1:]))
"""


def test_a_full_disk_leaves_nothing(mnist: Prepared) -> None:
    """The library writes into the mapped file; there must be room for it before."""
    flags = ("--dlc_path", mnist.dlc, "--backend", "htp", "--output_dir", mnist.folder / "ctx")
    done = subprocess.run(
        [sys.executable, "-c", FULL, *map(str, flags), "--binary_file", "c"],
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "c.bin: cannot be written" in done.stderr
    assert not list((mnist.folder / "ctx").iterdir())


def test_json_has_the_keys_in_their_order(mnist: Prepared) -> None:
    assert_done(generate(mnist, "--binary_file", "c.bin", "--soc", "SM8550"))
    record = described(mnist)
    assert list(record) == ["header", "version", "info"]
    assert list(record["info"]) == [
        "backendId", "buildId", "coreApiVersion", "backendApiVersion", "socVersion", "contextBlobVersion",
        "contextBlobSize", "numContextTensors", "contextTensors", "numGraphs", "graphs", "platformInfo",
        "contextMetadataSize", "contextMetadata", "socModel",
    ]  # fmt: skip
    graph = record["info"]["graphs"][0]
    assert list(graph["info"]) == [
        "graphName", "numGraphInputs", "graphInputs", "numGraphOutputs", "graphOutputs",
        "numUpdateableTensors", "updateableTensors", "graphBlobInfoSize", "graphBlobInfo", "graphBlobInfoV2",
        "startOpIndex", "endOpIndex",
    ]  # fmt: skip
    tensor = graph["info"]["graphInputs"][0]["info"]
    assert list(tensor) == [
        "id", "name", "type", "dataFormat", "dataType", "rank", "dimensions", "memType", "quantizeParams",
    ]  # fmt: skip
    text = (mnist.folder / "c.json").read_text()
    assert text.startswith('{\n    "header": {\n        "artifact_type": "CONTEXT_BINARY_INFO"')


UTILITY = (
    "import sys; from openqnn.cli.registry import run_tool; sys.exit(run_tool(sys.argv[1], sys.argv[2:]))"
)


def test_json_has_nothing_that_the_library_left_unset(mnist: Prepared) -> None:
    """Memory that is not zero shows it: two fields are not written by older libraries."""
    assert_done(generate(mnist, "--binary_file", "c", "--soc", "SM8650"))
    target = mnist.folder / "c.json"
    flags = ("--context_binary", mnist.folder / "ctx/c.bin", "--json_file", target)
    subprocess.run(
        [sys.executable, "-c", UTILITY, "qnn-context-binary-utility", *map(str, flags)],
        env=environment() | {"MALLOC_PERTURB_": "85"}, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert json.loads(target.read_text()) == described(mnist, "c")
    graph = described(mnist, "c")["info"]["graphs"][0]["info"]
    assert (graph["startOpIndex"], graph["endOpIndex"]) == (0, 0)


def test_several_graphs_in_one_context(mnist: Prepared, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = prepare("mtcnn_onet", tmp_path / "other", lines=1)
    assert_done(generate(mnist, "--binary_file", "c", source=f"{mnist.dlc},{other.dlc}"))
    assert described(mnist)["info"]["numGraphs"] == 2
    binary = mnist.folder / "ctx/c.bin"
    lists = f"{mnist.list},{other.list}"
    assert_done(mnist.run("--retrieve_context", binary, lists=lists, to="both", backend="htp"))
    folders = sorted(path.name for path in (mnist.folder / "both").iterdir() if path.is_dir())
    assert len(folders) == 2
    assert_done(mnist.run("--dlc_path", mnist.dlc, to="alone", backend="htp"))
    mine = next(name for name in folders if "mnist" in name)
    assert mnist.results(f"both/{mine}") == mnist.results("alone")
    assert_done(mnist.run("--retrieve_context", binary, lists=f"{mnist.list},__", to="one", backend="htp"))
    twice = generate(mnist, "--binary_file", "d", "--soc", "SM8650", source=f"{mnist.dlc},{mnist.dlc}")
    assert_refused(twice, "two graphs are called")


def test_settings_are_applied_and_read_back(mnist: Prepared) -> None:
    name = _graph_name(mnist)
    settings = {"graph_names": [name], "O": 3, "vtcm_mb": 4}
    path = config(mnist, graphs=[settings], devices=[{"soc_model": 43}])
    assert_done(generate(mnist, "--binary_file", "c", "--config_file", path))
    info = described(mnist)["info"]
    blob = info["graphs"][0]["info"]["graphBlobInfo"]["info"]
    assert info["socModel"] == 43
    assert (blob["optimizationLevel"], blob["vtcmSize"]) == (3, 4 << 20)
    cpu = generate(mnist, "--binary_file", "d", "--config_file", path, backend="cpu")
    assert_refused(cpu, "settings of HTP", code=2)
    untaken = config(mnist, graphs=[{**settings, "hvx_threads": 2}], devices=[{"soc_model": 43}])
    refused = generate(mnist, "--binary_file", "e", "--config_file", untaken)
    assert_refused(refused, "hvx_threads 2 was asked for, but the library took 4")
    assert not (mnist.folder / "ctx/e.bin").exists()
    large = config(mnist, graphs=[{**settings, "vtcm_mb": 16}], devices=[{"soc_model": 43}])
    refused = generate(mnist, "--binary_file", "e", "--config_file", large)
    assert_refused(refused, "vtcm_mb is 16", "SM8550 (SoC 43, HTP v73) has 8 MB", code=2)
    wrong = config(mnist, graphs=[{"graph_names": ["nobody"], "O": 3}])
    refused = generate(mnist, "--binary_file", "d", "--config_file", wrong, "--soc", "SM8650")
    assert_refused(refused, "graph 'nobody'")


@pytest.mark.parametrize("backend", ["saver", "ir"])
def test_libraries_that_make_no_binaries(
    mnist: Prepared, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mnist.folder)
    refused = generate(mnist, "--binary_file", "c", backend=backend)
    assert_refused(refused, "makes no context binaries", "qnn-net-run --backend saver", code=2)
    assert_refused(generate(mnist, backend=backend), "makes no context binaries", code=2)
    assert not (mnist.folder / "saver_output").exists()


def test_a_folder_appears_with_what_belongs_there(mnist: Prepared) -> None:
    assert_refused(generate(mnist, "--binary_file", "c", source="none.dlc"), "none.dlc: no such file")
    assert not (mnist.folder / "ctx").exists()
    (mnist.folder / "ctx").write_text("")
    assert_refused(generate(mnist, "--profiling_level", "basic"), "ctx is no directory")
    (mnist.folder / "ctx").unlink()
    assert_done(generate(mnist, "--profiling_level", "basic"))
    assert (mnist.folder / "ctx/qnn-profiling-data.log").exists()


def test_results_do_not_take_the_place_of_their_source(mnist: Prepared) -> None:
    model, wrapped = mnist.folder / "model.oqnn", mnist.folder / "c.onnx"
    assert_done(openqnn("compile", model, "-o", wrapped))
    assert_done(generate(mnist, "--binary_file", "c"))
    binary, before = mnist.folder / "ctx/c.bin", wrapped.read_bytes()
    renamed = mnist.folder / "model.onnx"
    renamed.write_bytes(model.read_bytes())
    for refused in (
        openqnn("compile", renamed, "-o", renamed),
        openqnn("extract", wrapped, "-o", wrapped),
        tool("qnn-context-binary-utility", "--context_binary", binary, "--json_file", binary),
    ):
        assert_refused(refused, "is the source itself")
    assert renamed.read_bytes() == model.read_bytes()
    assert wrapped.read_bytes() == before
    assert_done(tool("qnn-context-binary-utility", "--context_binary", binary))


def test_options_of_compile_that_cannot_take_effect(mnist: Prepared) -> None:
    target = mnist.folder / "c.bin"
    for flags, words in (
        ((mnist.dlc, "-o", mnist.folder / "x.dlc"), "saved as .bin or .onnx"),
        ((mnist.dlc, "-o", target, "--external"), "--external goes with an EPContext model"),
        ((mnist.dlc, "-o", target, "--batch", 2), "model.dlc has static shapes: batch does not apply"),
        ((mnist.dlc, "-o", target, "--dim", "n=2"), "dims does not apply"),
    ):
        assert_refused(openqnn("compile", *flags), words, code=2)
    assert not target.exists()


def test_weights_are_not_taken_for_an_older_binary(
    mnist: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A converter leaves them under the name that a binary would get; a binary may be made anew."""
    monkeypatch.chdir(tmp_path)
    assert_done(openqnn("compile", mnist.dlc))
    assert_done(openqnn("compile", mnist.dlc))
    with tarfile.open("model.bin", "w") as archive:
        archive.add(mnist.dlc, "w.raw")
    before = Path("model.bin").read_bytes()
    assert_refused(openqnn("compile", mnist.dlc), "model.bin holds the weights of a model")
    assert Path("model.bin").read_bytes() == before
    assert_refused(openqnn("compile", mnist.dlc, "-o", "model.bin"), "model.bin is an archive")
    assert Path("model.bin").read_bytes() == before


def _graph_name(case: Prepared) -> str:
    assert_done(generate(case, "--binary_file", "name"))
    return described(case, "name")["info"]["graphs"][0]["info"]["graphName"]


def test_intermediate_tensors_become_outputs(mnist: Prepared) -> None:
    assert_done(generate(mnist, "--binary_file", "c", "--enable_intermediate_outputs"))
    outputs = described(mnist)["info"]["graphs"][0]["info"]["graphOutputs"]
    names = [tensor["info"]["name"] for tensor in outputs]
    assert len(names) > 5
    chosen = next(name for name in names if name != "Plus214_Output_0")
    assert_done(generate(mnist, "--binary_file", "d", "--set_output_tensors", chosen))
    assert described(mnist, "d")["info"]["graphs"][0]["info"]["numGraphOutputs"] == 2


def test_other_flags(mnist: Prepared) -> None:
    assert_done(generate(mnist, "--binary_file", "c", "--htp_arch", "v73", "--profiling_level", "detailed"))
    assert described(mnist)["info"]["contextMetadata"]["info"]["dspArch"] == 73
    assert (mnist.folder / "ctx/qnn-profiling-data.log").stat().st_size > 100
    assert "nothing was written" in generate(mnist).err
    memory = generate(mnist, "--binary_file", "c", "--input_output_tensor_mem_type", "memhandle")
    assert memory.code == 0 and "memory handles are a matter of the device" in memory.err
    assert_refused(generate(mnist, "--soc", "SM1"), "there is no SoC 'SM1'", code=2)
    log = generate(mnist, "--log_level", "verbose")
    assert len(log.err.splitlines()) > 10
    assert len(generate(mnist, "--verbose").err.splitlines()) > 10
    assert_refused(generate(mnist, "--verbose", "--log_level", "info"), "exclude each other", code=2)


def test_a_binary_runs_as_the_chip_that_it_is_for(mnist: Prepared) -> None:
    assert_done(generate(mnist, "--binary_file", "c", "--soc", "SM8550"))
    binary = mnist.folder / "ctx/c.bin"
    assert_done(mnist.run("--retrieve_context", binary, "--soc", "SM8550", backend="htp"))
    other = mnist.run("--retrieve_context", binary, "--soc", "SM8650", backend="htp")
    assert_refused(other, "c.bin is compiled for SM8550", "not for SM8650", "openqnn context check", code=2)
    path = config(mnist, graphs=[{"vtcm_mb": 2}])
    late = mnist.run("--retrieve_context", binary, "--config_file", path, backend="htp")
    assert_done(late)
    assert "settings of graphs do nothing here" in late.err


def test_the_utility_refuses_what_is_no_binary(mnist: Prepared) -> None:
    utility = "qnn-context-binary-utility"
    assert_refused(tool(utility), "--context_binary is required", code=2)
    assert_refused(tool(utility, "--context_binary", mnist.dlc), "holds no context binary")
    assert_refused(tool(utility, "--context_binary", "nothing.bin"), "no such file")
    assert_done(generate(mnist, "--binary_file", "c"))
    binary = mnist.folder / "ctx/c.bin"
    assert "1 graph(s)" in tool(utility, "--context_binary", binary).out
    result = tool(utility, "--context_binary", binary, "--json_file", mnist.folder / "no/x.json")
    assert_refused(result, "there is no folder")


def test_compile_and_extract(mnist: Prepared) -> None:
    folder = mnist.folder
    assert_done(openqnn("compile", folder / "model.oqnn", "-o", folder / "c.bin"))
    assert_done(openqnn("compile", mnist.dlc, "-o", folder / "c.onnx", "--soc", "SM8650"))
    assert_done(openqnn("extract", folder / "c.onnx", "-o", folder / "x.bin"))
    for name in ("c.bin", "c.onnx", "x.bin"):
        assert_done(mnist.run("--retrieve_context", folder / name, to=f"out_{name}", backend="htp"))
    assert mnist.results("out_c.bin") == mnist.results("out_c.onnx") == mnist.results("out_x.bin")
    assert_refused(openqnn("extract", mnist.dlc), "holds no context binary")
