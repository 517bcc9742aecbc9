"""The tutorial's Python as it is printed: what it leaves out is filled in by `openqnn.guide`."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import openqnn
from openqnn import guide
from openqnn.qnn.library import find_library
from tests.docs.blocks import blocks_of
from tests.guide.test_guide import simple_model
from tests.libraries import need

PAGE = Path(__file__).parent / "printed" / "tutorial.txt"


def printed(words: str) -> tuple[str, str]:
    """The block with these words: its definitions, and the use of them that follows."""
    (text,) = (block.text for block in blocks_of(PAGE) if words in block.text)
    definitions, _, use = text.partition("\n# Usage\n")
    return definitions, use


def defined(words: str, **given: Any) -> dict[str, Any]:
    names = {"np": np, **given}
    exec(compile(printed(words)[0], str(PAGE), "exec"), names)
    return names


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = simple_model()
    for end in (*made.graph.input, *made.graph.output):
        end.type.tensor_type.shape.dim[0].dim_value = 1
    target = tmp_path_factory.mktemp("printed") / "model.onnx"
    onnx.save(made, target)
    return target


@pytest.fixture
def data() -> Any:
    return np.random.default_rng(0).normal(size=(1, 3, 32, 32)).astype(np.float32)


def test_dynamic_quantization(model: Path, data: Any) -> None:
    """`forward_hooks` is nowhere in the tutorial; its statistics are pairs of a name and an array."""

    class Pairs(list[Any]):
        def append(self, seen: Mapping[str, Any]) -> None:
            self.extend(seen.items())

    base = defined("class DynamicQuantization:")["DynamicQuantization"]
    ours = guide.DynamicQuantization(model)
    theirs = type("Filled", (base,), {"forward_hooks": lambda _, sample: ours.forward_hooks(sample)})(model)
    theirs.calibration_data = Pairs()
    theirs.collect_statistics([data])
    ours.collect_statistics([data])
    found, wanted = theirs.compute_quantization_params(), ours.compute_quantization_params()
    assert found.keys() == wanted.keys() and len(found) > 5
    for name, params in found.items():
        if params["min"] <= 0 <= params["max"]:  # ours has zero in every range
            assert params["scale"] == pytest.approx(wanted[name]["scale"], rel=1e-5)
            assert abs(params["offset"] - wanted[name]["offset"]) <= 1  # cut off there, rounded here
    config = theirs.apply_quantization(found)
    assert config.keys() == ours.apply_quantization(wanted).keys()


def test_inference_and_memory(
    model: Path,
    data: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The class loads ./libQnn.so, and leaves out how a model is opened and run."""
    need("libQnnHtp.so")
    monkeypatch.chdir(tmp_path)
    library = find_library("libQnnSystem.so")
    ctypes.CDLL(str(library))  # with what it needs, which stands beside it
    Path("libQnn.so").symlink_to(library)
    samples = [{"input": data}]
    openqnn.quantize(model, samples, algorithms=(), act_bw=8).save("model_optimized.oqnn")

    def opened(self: Any) -> None:
        self.context = guide.QNNInference(self.model_path, self.backend)
        for name in ("is_quantized", "input_scale", "input_offset", "output_scale", "output_offset"):
            setattr(self, name, getattr(self.context, name))

    names = defined("class QNNInference:")
    filled = {
        "_initialize": opened,
        "_run_inference": lambda self, stored: self.context._run_inference(stored),
    }
    names["QNNInference"] = type("Filled", (names["QNNInference"],), filled)
    names |= {"input_tensor": data, "input_data": data}
    for words in ("class QNNInference:", "# Monitor memory usage"):
        definitions, use = printed(words)
        text = (use or definitions).replace("model_optimized.so", "model_optimized.oqnn")
        exec(compile(text, str(PAGE), "exec"), names)
    said = capsys.readouterr().out
    assert "Inference result:" in said and "Peak memory usage:" in said
    with guide.QNNInference("model_optimized.oqnn") as engine:
        np.testing.assert_allclose(names["result"], engine.inference(data), atol=engine.output_scale)
    names["inference_engine"].context.close()


def test_the_profiler(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("psutil")
    names = defined("class QNNProfiler:")
    given = {f"{backend}_inference": np.abs for backend in ("htp", "gpu", "cpu")}
    exec(printed("class QNNProfiler:")[1], names | given | {"test_data": np.ones(10)})
    ours = guide.QNNProfiler().profile_inference(abs, 1, num_runs=2)
    assert names["QNNProfiler"]().profile_inference(abs, 1, num_runs=2).keys() == ours.keys()
    assert "GPU Performance:" in capsys.readouterr().out


def test_the_choice_of_a_backend(capsys: pytest.CaptureFixture[str]) -> None:
    names = defined("class BackendSelector:")
    exec(printed("class BackendSelector:")[1], names)
    assert capsys.readouterr().out == "Recommended backend: htp\n"
    theirs, ours = names["BackendSelector"](), guide.BackendSelector()
    for operations in (["Conv2d"], ["Conv2d", "Softmax"], ["Loop"]):
        for size in (1 << 20, 32 << 20, 100 << 20):
            info = {"operations": operations, "max_tensor_size": size, "precision": "int8"}
            for constraints in ({}, {"power_critical": True}, {"performance_critical": True}):
                assert ours.select_optimal_backend(info, constraints) == theirs.select_optimal_backend(
                    info, constraints
                )


@pytest.mark.parametrize("scale", [1 / 255, 8 / 255])
def test_ranges(scale: float, data: Any) -> None:
    """The threshold is nowhere in the tutorial."""
    names = defined("def validate_quantization_range", threshold=scale**2 / 4)
    ours = guide.validate_quantization_range(data, scale, 128)
    assert names["validate_quantization_range"](data, scale, 128) is np.bool_(ours)


def test_support_of_backends(tmp_path: Path) -> None:
    """It loads libraries from the working folder, in a process of its own here."""
    need("libQnnHtp.so")
    library = find_library("libQnnHtp.so")
    needed = library.parent.with_name(f"{library.parent.name}.libs")
    (tmp_path / "libQnnHtp.so").symlink_to(library)
    text = f"import ctypes\n{printed('def check_backend_support')[0]}\ncheck_backend_support()\n"
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True,
        env=os.environ | {"LD_LIBRARY_PATH": f"{library.parent}:{needed}"},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["HTP backend available", "GPU backend not available"]


def test_the_debugger(model: Path, data: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """`get_layer_names` is nowhere in the tutorial, and the body that runs a layer is left out."""
    need("libQnnCpu.so")
    import time

    base = defined("class QNNDebugger:", time=time)["QNNDebugger"]
    ours = guide.QNNDebugger(model)
    theirs = type("Filled", (base,), {"get_layer_names": lambda _: ours.get_layer_names()})(str(model))
    theirs.profile_layers(data)
    assert set(theirs.layer_timings) == set(ours.get_layer_names())
    theirs.layer_timings = ours.profile_layers(data)
    theirs.analyze_bottlenecks()
    shown = capsys.readouterr().out
    ours.analyze_bottlenecks()
    assert capsys.readouterr().out == shown
    assert set(theirs.suggest_optimizations()) <= set(ours.suggest_optimizations())  # ours knows kinds, too
