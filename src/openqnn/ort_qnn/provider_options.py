"""Options of the QNN provider by its own names: what each may be, and what it means for a session here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from openqnn.errors import UsageError
from openqnn.ort_qnn.op_packages import PackagedOp, packaged_ops
from openqnn.qnn.profile import Level
from openqnn.qnn.soc import find_soc, soc_of_arch
from openqnn.targets.registry import target_of_library

PERFORMANCE_MODES = (
    "burst", "balanced", "default", "high_performance", "high_power_saver", "low_balanced", "low_power_saver",
    "power_saver", "extreme_power_saver", "sustained_high_performance",
)  # fmt: skip
PRIORITIES = ("low", "normal", "normal_high", "high")
FLAGS = ("0", "1")
_LEVELS = {"off": None, "basic": Level.BASIC, "detailed": Level.DETAILED}
_DEVICE_ONLY = "it sets a device, and there is none here"


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """What the options say. `idle` has those that can have no effect on a host, and why."""

    library: str = "htp"
    soc: int | None = None
    settings: Mapping[str, bool | float] = field(default_factory=dict[str, bool | float])
    profiling: Level | None = None
    profiling_file: str = ""
    op_packages: tuple[PackagedOp, ...] = ()
    json_folder: Path | None = None
    dlc_folder: Path | None = None
    idle: Mapping[str, str] = field(default_factory=dict[str, str])


def provider_options(given: Mapping[str, Any] | None) -> ProviderOptions:
    """UsageError names the option, what it was given, and what it takes."""
    options = {str(key): str(value) for key, value in (given or {}).items()}
    for key, value in options.items():
        if key not in _CHECKS:
            near = get_close_matches(key, _CHECKS, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_CHECKS)}"
            raise UsageError(f"the QNN provider has no option {key!r}", hint=hint)
        _CHECKS[key](key, value)
    library = _library(options)
    has_chips = target_of_library(library).compiles
    return ProviderOptions(
        library,
        _soc(options) if has_chips else None,
        _settings(options) if has_chips else {},
        _LEVELS[options.get("profiling_level", "off")],
        options.get("profiling_file_path", ""),
        packaged_ops(options["op_packages"]) if "op_packages" in options else (),
        _folder(options, "dump_json_qnn_graph", "json_qnn_graph_dir"),
        _folder(options, "dump_qnn_ir_dlc", "dump_qnn_ir_dlc_dir"),
        {key: why for key, why in _IDLE.items() if key in options},
    )


def _settings(options: Mapping[str, str]) -> dict[str, bool | float]:
    """HTP's settings of a graph."""
    found: dict[str, bool | float] = {}
    if options.get("htp_graph_finalization_optimization_mode", "0") != "0":
        found["O"] = int(options["htp_graph_finalization_optimization_mode"])
    if "vtcm_mb" in options:
        found["vtcm_mb"] = int(options["vtcm_mb"])
    if "enable_htp_fp16_precision" in options:
        found["fp16_relaxed_precision"] = options["enable_htp_fp16_precision"] == "1"
    return found


def _folder(options: Mapping[str, str], asked: str, place: str) -> Path | None:
    """Where a graph is dumped: the working folder, unless one is named."""
    if options.get(asked, "0") != "1":
        return None
    folder = Path(options.get(place, "."))
    if not folder.is_dir():
        raise UsageError(f"{place}: there is no folder {folder}")
    return folder


def _library(options: Mapping[str, str]) -> str:
    """Windows' names stand for the libraries of this machine."""
    if "backend_path" in options and "backend_type" in options:
        raise UsageError("backend_path and backend_type both say which library: give one")
    if "backend_type" in options:
        return {"cpu": "libQnnCpu.so"}.get(options["backend_type"], options["backend_type"])
    path = options.get("backend_path", "libQnnHtp.so")
    windows = PureWindowsPath(path)
    if windows.suffix.lower() == ".dll":
        return f"lib{windows.stem}.so"
    return path if PurePosixPath(path).name != path or path.endswith(".so") else f"{path}.so"


def _soc(options: Mapping[str, str]) -> int | None:
    model, arch = options.get("soc_model", "0"), options.get("htp_arch", "0")
    if model != "0":
        return find_soc(int(model)).model
    return soc_of_arch(arch).model if arch != "0" else None


# -- what values an option takes -----------------------------------------------------------------------------


def _any(key: str, value: str) -> None:
    if not value:
        raise UsageError(f"{key} is empty")


def _number(key: str, value: str) -> None:
    if not value.isdecimal():
        raise UsageError(f"{key} is {value!r}, and must be a number")


def _one_of(*words: str) -> Callable[[str, str], None]:
    def check(key: str, value: str) -> None:
        if value not in words:
            raise UsageError(f"{key} is {value!r}, and must be one of {', '.join(map(repr, words))}")

    return check


_CHECKS: dict[str, Callable[[str, str], None]] = {
    "backend_path": _any,
    "backend_type": _one_of("htp", "cpu", "gpu", "saver"),
    "profiling_level": _one_of("off", "basic", "detailed"),
    "profiling_file_path": _any,
    "rpc_control_latency": _number,
    "vtcm_mb": _number,
    "htp_performance_mode": _one_of(*PERFORMANCE_MODES),
    "qnn_context_priority": _one_of(*PRIORITIES),
    "htp_graph_finalization_optimization_mode": _one_of("0", "1", "2", "3"),
    "soc_model": _number,
    "htp_arch": _one_of("0", "68", "69", "73", "75", "79", "81"),
    "device_id": _number,
    "enable_htp_fp16_precision": _one_of(*FLAGS),
    "offload_graph_io_quantization": _one_of(*FLAGS),
    "enable_htp_spill_fill_buffer": _one_of(*FLAGS),
    "enable_htp_shared_memory_allocator": _one_of(*FLAGS),
    "skip_qnn_version_check": _one_of(*FLAGS),
    "op_packages": _any,
    "dump_json_qnn_graph": _one_of(*FLAGS),
    "json_qnn_graph_dir": _any,
    "dump_qnn_ir_dlc": _one_of(*FLAGS),
    "dump_qnn_ir_dlc_dir": _any,
    "qnn_ir_backend_path": _any,
    "qnn_saver_path": _any,
    "htp_bf16_enable": _one_of(*FLAGS),
    "enable_vtcm_backup_buffer_sharing": _one_of(*FLAGS),
}
_IDLE = {
    "rpc_control_latency": _DEVICE_ONLY,
    "htp_performance_mode": _DEVICE_ONLY,
    "qnn_context_priority": "graphs of one process do not compete on a host",
    "device_id": _DEVICE_ONLY,
    "offload_graph_io_quantization": "inputs and outputs are quantized outside the library in any case",
    "enable_htp_spill_fill_buffer": _DEVICE_ONLY,
    "enable_htp_shared_memory_allocator": _DEVICE_ONLY,
    "qnn_ir_backend_path": "libQnnIr is taken from where the other libraries are",
    "qnn_saver_path": "`qnn-net-run --backend saver` writes the Saver's program",
    "htp_bf16_enable": "nothing here computes in bfloat16",
    "enable_vtcm_backup_buffer_sharing": _DEVICE_ONLY,
    "skip_qnn_version_check": "a context of another version is refused by the library itself",
}
