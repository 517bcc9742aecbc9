"""The inference engine: convert, build, compile and run by the tools that users know."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openqnn.cli.shared.accuracy_debugger.debugger_request import DebuggerRequest
from openqnn.cli.shared.accuracy_debugger.framework_diagnosis import framework_of
from openqnn.cli.shared.accuracy_debugger.run_folder import RunFolder
from openqnn.errors import BackendError, InputError, UnsupportedError, UsageError
from openqnn.formats.atomic import replacing
from openqnn.targets.registry import CPU_LIBRARY, HTP, find_target
from openqnn.targets.target import Target

MODE = "inference_engine"
HOST = "x86_64-linux-clang"
CHIPS = {
    "htp": "", "dsp": "", "dspv68": "SM8350", "dspv69": "SM8450", "dspv73": "SM8550", "dspv75": "SM8650",
    "dspv79": "SM8750",
}  # fmt: skip
_NO_SIMULATOR = ("no simulator has this architecture", "--runtime dspv68 to dspv79")
ELSEWHERE = {
    "gpu": ("the GPU's library runs on a device", "--runtime cpu or htp"),
    "dspv65": _NO_SIMULATOR, "dspv66": _NO_SIMULATOR,
}  # fmt: skip
CONVERTERS = {
    "onnx": "qnn-onnx-converter", "tflite": "qnn-tflite-converter", "tensorflow": "qnn-tensorflow-converter",
    "pytorch": "qnn-pytorch-converter",
}  # fmt: skip


class StepError(BackendError):
    """A step of the engine that failed: `status` is what reports call it."""

    status = "err_exec"


class ConvertError(StepError):
    status = "err_con"


class LibraryBuildError(StepError):
    status = "err_lib"


class ContextError(StepError):
    status = "err_cntx"


@dataclass(frozen=True, slots=True)
class EngineResult:
    """The folder of a run, that of its first result, and the files for verification."""

    folder: Path
    results: Path
    tensor_mapping: Path | None
    graph_struct: Path | None
    net_json: Path | None


def check_runtime(request: DebuggerRequest) -> None:
    """What this host cannot run is told before anything is done."""
    runtime, architecture = request.stage.runtime, request.stage.architecture
    if request.run.device_id and request.run.target:
        raise UsageError("--deviceId and --target both name a device", hint="leave one of them out")
    if device := device_of(request):
        from openqnn.vendor.deploy.devices import find_device

        find_device(device).run("true")
    if runtime in ELSEWHERE:
        reason, hint = ELSEWHERE[runtime]
        raise UnsupportedError(f"--runtime {runtime}: {reason}", hint=hint)
    if architecture and architecture != HOST and not device_of(request):
        raise UnsupportedError(
            f"--architecture {architecture}: such libraries run on a device, and none is named",
            hint=f"--target or --deviceId names one; --architecture {HOST} takes the libraries of this host",
        )


def target_of_runtime(request: DebuggerRequest) -> Target:
    """The target that the runtime stands for."""
    return find_target(HTP if request.stage.runtime in CHIPS else CPU_LIBRARY)


def device_of(request: DebuggerRequest) -> str:
    """The device that the run is on, as qnn-net-run has it; empty for this process."""
    return f"adb:{request.run.device_id}" if request.run.device_id else request.run.target


def run_inference_engine(
    request: DebuggerRequest, name: str = "", golden: Path | None = None
) -> EngineResult:
    """Runs the model from its stage on; all that it leaves is in one folder."""
    request.need(runtime=request.stage.runtime, input_list=request.stage.input_list)
    check_runtime(request)
    folder = RunFolder(request.folders.working_dir, MODE, name)
    folder.write_options(request.options)
    with folder.logged():
        return _Engine(request, folder.path, golden).run()


class _Engine:
    def __init__(self, request: DebuggerRequest, folder: Path, golden: Path | None) -> None:
        self.request, self.folder, self.golden = request, folder, golden
        self.stem = folder / request.run.model_name
        self.target = target_of_runtime(request)

    def run(self) -> EngineResult:
        shutil.copyfile(self._list(), self.folder / "image_list.txt")
        self._notes()
        self._versions()
        library = self._library()
        net_json = self._net_json()
        struct = self._graph_struct(net_json)
        self._link(net_json, struct)
        self._execute(library, net_json)
        results = self.folder / "output" / "Result_0"
        mapping = self._mapping(results)
        print(f"{results}: {len(list(results.glob('*.raw')))} tensors")
        return EngineResult(self.folder, results, mapping, struct, net_json)

    def _list(self) -> Path:
        path = Path(self.request.stage.input_list)
        if not path.is_file():
            raise InputError(f"--input_list {path}: no such file")
        return path

    def _notes(self) -> None:
        """Flags that have nothing to choose here."""
        for flag, value in (
            ("--engine_path", self.request.stage.engine_path),
            ("--engine_version", self.request.run.engine_version),
        ):
            if value:
                print(f"note: {flag} {value}: the libraries of the installed package run")

    def _versions(self) -> None:
        """An empty folder with the version of the libraries in its name, as the original leaves one."""
        from openqnn.qnn.library import find_library
        from openqnn.qnn.probe import probe_library

        found = probe_library(find_library(self.target.libraries[0]))
        version = (found.build_id or found.core_api or "unknown").removeprefix("v")
        (self.folder / f"qnn-v{version}").mkdir(exist_ok=True)
        if self.request.run.print_version:
            print(f"QNN {version}")

    # -- from the source model to a library ------------------------------------------------------------------

    def _library(self) -> Path:
        stage = self.request.stage
        if stage.stage == "compiled":
            self.request.need(qnn_model_binary_path=stage.qnn_model_binary_path)
            return _existing(stage.qnn_model_binary_path)
        if stage.stage == "converted":
            self.request.need(qnn_model_cpp_path=stage.qnn_model_cpp_path)
            cpp = _copied(stage.qnn_model_cpp_path, self.stem.with_suffix(".cpp"))
            weights = self.stem.with_suffix(".bin")
            if stage.qnn_model_bin_path:
                _copied(stage.qnn_model_bin_path, weights)
            return self._built(cpp, weights)
        self._convert()
        return self._built(self.stem.with_suffix(".cpp"), self.stem.with_suffix(".bin"))

    def _convert(self) -> None:
        self.request.need(model_path=self.request.model.model_path)
        framework = framework_of(self.request)
        words = ["-i", self.request.model.model_path, "-o", str(self.stem.with_suffix(".cpp"))]
        words += ["--preserve_io", "layout"]
        for row in self.request.model.input_tensor:
            words += ["-d", row[0].removesuffix(":0"), row[1]]
        for name in self.request.model.output_tensor:
            words += ["--out_node", name.removesuffix(":0")]
        words += self._quantizer_words() + extra_words(self.request.run.extra_converter_args)
        _tool(CONVERTERS[framework], words, ConvertError)

    def _quantizer_words(self) -> list[str]:
        given, words = self.request.quantization, list[str]()
        if given.precision == "fp16" or (not self.target.compiles and not given.quantization_overrides):
            return ["--float_bw", "16"] if given.precision == "fp16" or given.float_bitwidth == 16 else []
        words += ["--input_list", str(self.request.stage.input_list)]
        words += ["--bias_bw", str(given.bias_bitwidth), "--act_bw", str(given.act_bitwidth)]
        words += ["--weight_bw", str(given.weights_bitwidth), "--float_bw", str(given.float_bitwidth)]
        pairs = {
            "--float_bias_bw": given.float_bias_bitwidth, "--param_quantizer": given.param_quantizer,
            "--act_quantizer": given.act_quantizer, "--quantization_overrides": given.quantization_overrides,
            "--restrict_quantization_steps": given.restrict_quantization_steps,
            "--algorithms": given.algorithms,
        }  # fmt: skip
        for flag, value in pairs.items():
            words += [flag, str(value)] if value else []
        words += ["--ignore_encodings"] if given.ignore_encodings else []
        words += ["--use_per_channel_quantization"] if given.per_channel_quantization else []
        return words

    def _built(self, cpp: Path, weights: Path) -> Path:
        run = self.request.run
        home = self.folder / run.binaries_dir
        name = run.lib_name.removeprefix("lib").removesuffix(".so") or run.model_name
        words = ["-c", str(cpp), "-t", HOST, "-l", name, "-o", str(home)]
        words += ["-b", str(weights)] if weights.is_file() else []
        _tool("qnn-model-lib-generator", words, LibraryBuildError)
        return home / HOST / f"lib{name}.so"

    # -- from the library to tensors -------------------------------------------------------------------------

    def _net_json(self) -> Path | None:
        if self.request.stage.qnn_model_net_json:
            path = _existing(self.request.stage.qnn_model_net_json)
            return _copied(str(path), self.folder / f"{self.request.run.model_name}_net.json")
        made = self.folder / f"{self.request.run.model_name}_net.json"
        return made if made.is_file() else None

    def _graph_struct(self, net_json: Path | None) -> Path | None:
        from openqnn.analysis.accuracy.verification import graph_struct

        if net_json is None:
            print("no graph struct: give --qnn_model_net_json")
            return None
        path = self.folder / f"{self.request.run.model_name}_graph_struct.json"
        return _json(path, graph_struct(json.loads(net_json.read_text(encoding="utf-8"))))

    def _link(self, net_json: Path | None, struct: Path | None) -> None:
        """The names by which the documented examples call two of the files."""
        for path, name in ((net_json, "qnn_model_net.json"), (struct, "qnn_model_graph_struct.json")):
            if path is not None and not os.path.lexists(self.folder / name):
                (self.folder / name).symlink_to(path.name)

    def _execute(self, library: Path, net_json: Path | None) -> None:
        run = self.request.run
        backend = ["--backend", self.target.libraries[0]]
        soc = CHIPS.get(self.request.stage.runtime, "")
        backend += ["--soc", soc] if soc else []
        config = run.qnn_netrun_config_file or run.compiler_config
        backend += ["--config_file", config] if config else []
        wanted = self._wanted(net_json)
        words = [
            "--input_list",
            str(self.request.stage.input_list),
            "--output_dir",
            str(self.folder / "output"),
        ]
        words += backend + self._file_words() + self._device_words() + extra_words(run.extra_runtime_args)
        if run.offline_prepare and self.target.compiles:
            made = ["--model", str(library), *backend, "--binary_file", "context", *wanted]
            made += ["--output_dir", str(self.folder / "context")]
            words_for = [w.replace("--debug", "--enable_intermediate_outputs") for w in made]
            extra = extra_words(run.extra_contextbin_args)
            _tool("qnn-context-binary-generator", words_for + extra, ContextError)
            words += ["--retrieve_context", str(self.folder / "context" / "context.bin")]
        else:
            words += ["--model", str(library), *wanted]
        _tool("qnn-net-run", words, StepError)

    def _device_words(self) -> list[str]:
        run, words = self.request.run, list[str]()
        pairs = {
            "--target": device_of(self.request), "--target_os": run.target_os, "--libraries": run.libraries,
            "--place": run.place,
        }  # fmt: skip
        for flag, value in pairs.items():
            words += [flag, value] if value else []
        return words

    def _file_words(self) -> list[str]:
        run = self.request.run
        native_in = run.use_native_input_files or run.input_data_type == "native"
        native_out = run.use_native_output_files or run.output_data_type == "native_only"
        words = ["--use_native_input_files"] if native_in else []
        words += ["--use_native_output_files"] if native_out else []
        words += ["--profiling_level", run.profiling_level] if run.profiling_level else []
        words += ["--log_level", run.log_level] if run.log_level else []
        if run.perf_profile:
            print(f"note: --perf_profile {run.perf_profile} has no effect: clocks are those of a device")
        return words

    def _wanted(self, net_json: Path | None) -> list[str]:
        """Which tensors to write: all, or those that were asked for."""
        run = self.request.run
        if run.debug_mode_off:
            return []
        chosen = (
            run.add_layer_outputs or run.add_layer_types or run.skip_layer_types or run.skip_layer_outputs
        )
        if not chosen:
            return ["--debug"]
        if net_json is None:
            raise UsageError("choosing layers needs the model's net.json", hint="--qnn_model_net_json")
        graph = json.loads(net_json.read_text(encoding="utf-8"))["graph"]
        names = chosen_tensors(graph["nodes"], run.add_layer_outputs, run.add_layer_types,
                               run.skip_layer_types, run.skip_layer_outputs)  # fmt: skip
        return ["--set_output_tensors", ",".join(names)] if names else []

    def _beside(self) -> str:
        """The tensors of a diagnosis of the same run: models other than ONNX do not tell their names."""
        is_onnx = Path(self.request.model.model_path or "").suffix == ".onnx"
        return "" if self.golden is None or is_onnx else str(self.golden)

    def _mapping(self, results: Path) -> Path | None:
        """Golden names by the engine's: of the source model, or of a folder of golden tensors."""
        from openqnn.analysis.accuracy.tensor_folder import TensorFolder, map_tensors
        from openqnn.qnn.net import qnn_name

        golden = self.request.verification.golden_output_reference_directory or self._beside()
        if golden:
            pairs = map_tensors(TensorFolder(results), TensorFolder(golden))
        elif self.request.model.model_path and Path(self.request.model.model_path).suffix == ".onnx":
            known = {qnn_name(n): n for n in source_tensors(self.request.model.model_path)}
            names = (f.stem for f in sorted(results.glob("*.raw")))
            pairs = {n: known[n] for n in names if n in known}
        else:
            return None
        return _json(self.folder / "tensor_mapping.json", pairs)


def source_tensors(path: str) -> list[str]:
    """The names of all tensors that an ONNX model computes."""
    from openqnn.runtime.onnx_runner import tensors_of

    return tensors_of(path)


def chosen_tensors(
    nodes: Mapping[str, Mapping[str, Any]], add: str, types: str, skip_types: str, skip: str
) -> list[str]:
    """The results of nodes that lists of names and types choose, in the order of the graph."""
    wanted, kinds, without_kinds, without = (_listed(text) for text in (add, types, skip_types, skip))
    found: list[str] = []
    for node in nodes.values():
        kind = str(node.get("type", ""))
        for name in node.get("output_names", ()):
            chosen = name in wanted or kind in kinds or not (wanted or kinds)
            if chosen and name not in without and kind not in without_kinds:
                found.append(name)
    return found


def _listed(text: str) -> set[str]:
    from openqnn.qnn.net import qnn_name

    names = {word.strip() for word in text.split(",") if word.strip()}
    return names | {qnn_name(name) for name in names}


def extra_words(text: str) -> list[str]:
    """'a=b;c=d' as words of a command line; a value of several words stands for several."""
    words: list[str] = []
    for part in (p.strip() for p in text.split(";")):
        if part:
            name, _, value = part.partition("=")
            words += [f"--{name.strip().lstrip('-')}", *value.split()]
    return words


def _tool(name: str, words: Sequence[str], error: type[StepError]) -> None:
    from openqnn.cli.registry import run_tool

    print(f"$ {name} {' '.join(words)}")
    try:
        code = run_tool(name, words)
    except SystemExit as stop:  # argparse ends the program by itself
        code = int(stop.code or 0)
    if code:
        raise error(f"{name} failed with exit code {code}", hint="its message stands above, and in log.txt")


def _existing(path: str) -> Path:
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    return Path(path)


def _copied(source: str, target: Path) -> Path:
    shutil.copyfile(_existing(source), target)
    return target


def _json(path: Path, content: object) -> Path:
    with replacing(path) as file:
        file.write(json.dumps(content, indent=2).encode())
    return path
