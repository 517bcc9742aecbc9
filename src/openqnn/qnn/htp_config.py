"""The two-file JSON configuration of HTP, as qnn-net-run and qnn-context-binary-generator take it.

The outer file names the inner one; the inner one has settings of graphs, devices and contexts. A key that is
not known is an error: a setting that silently does nothing is worse than none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from openqnn.errors import BackendError, InputError, UsageError
from openqnn.qnn.context_info import ContextInfo, GraphInfo
from openqnn.qnn.options import ContextOptions, DeviceOptions, GraphOptions
from openqnn.qnn.soc import ARCHITECTURES, find_soc

HTP_KEYS = ("graphs", "devices", "context", "groupContext", "memory")
"""What HTP's own file may have."""
PERF_PROFILES: frozenset[str] = frozenset({
    "burst", "sustained_high_performance", "high_performance", "balanced", "low_balanced", "high_power_saver",
    "power_saver", "low_power_saver", "extreme_power_saver", "system_settings", "llm_decode_default",
    *(f"llm_decode_{name}" for name in (
        "burst", "sustained_high_performance", "high_performance", "balanced", "low_balanced",
        "high_power_saver", "power_saver", "low_power_saver", "extreme_power_saver",
    )),
})  # fmt: skip

_GRAPH_KEYS = {
    "vtcm_mb": ("vtcm_mb", int), "hvx_threads": ("hvx_threads", int), "O": ("optimization", int),
    "dlbc": ("dlbc", bool), "weights_packing": ("weights_packing", bool), "num_cores": ("num_cores", int),
    "short_depth_conv_on_hmx_off": ("short_depth_conv_on_hmx_off", bool),
    "fold_relu_activation_into_conv_off": ("fold_relu_activation_into_conv_off", bool),
    "advanced_activation_fusion": ("advanced_activation_fusion", bool),
    "use_high_precision_fp16_sigmoid": ("high_precision_sigmoid", bool),
    "monolithic_lstm": ("monolithic_lstm", bool), "fp16_relaxed_precision": ("float16", bool),
}  # fmt: skip
_CONTEXT_KEYS = {
    "weight_sharing_enabled": ("weight_sharing", bool), "extended_udma": ("extended_udma", bool),
    "file_read_memory_budget_in_mb": ("file_read_memory_budget_mb", int),
    "io_memory_estimation": ("io_memory_estimation", bool), "init_acceleration": ("init_acceleration", bool),
    "lora_weight_sharing": ("lora_weight_sharing", bool), "share_resources": ("share_resources", bool),
}  # fmt: skip
_DEVICE_ONLY = "needs a device: it has no effect on the host"
_ON_DEVICE: dict[str, str] = dict.fromkeys(
    ("max_spill_fill_buffer_for_group", "group_id", "concurrent_deserialization_patch", "reused_io_limit_mb",
     "lora_weight_sharing_ram_preload"), _DEVICE_ONLY,
)  # fmt: skip
_DEVICE_KEYS = (
    "device_id", "core_id", "core_type", "soc_id", "soc_model", "dsp_arch", "pd_session", "profiling_level",
    "use_client_context", "cores",
)  # fmt: skip
_HARDWARE_KEYS = ("device_id", "core_id", "core_type", "pd_session", "use_client_context")
_CORE_KEYS = (
    "core_id", "perf_profile", "rpc_control_latency", "rpc_polling_time", "hmx_timeout_us",
    "adaptive_polling_time",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class HtpConfig:
    """Settings from the files. `graphs` is by name; `every_graph` is for graphs that are not named.

    `ignored` are settings that only a device could follow, with the reason; it is for the caller to say so.
    """

    device: DeviceOptions | None = None
    context: ContextOptions | None = None
    graphs: dict[str, GraphOptions] = field(default_factory=dict[str, GraphOptions])
    every_graph: GraphOptions | None = None
    perf_profile: str | None = None
    profiling_level: str | None = None
    ignored: tuple[str, ...] = ()

    def options(self, graph: str) -> GraphOptions | None:
        """The settings of a graph."""
        return self.graphs.get(graph, self.every_graph)


def read_htp_config(path: str | PathLike[str], parse: Callable[[str], Any] = json.loads) -> HtpConfig:
    """Read either file: the outer one leads to the inner one, relative to where it stands itself.

    `parse` reads the text, such as one that allows comments.
    """
    file = Path(path)
    content = _load(file, parse)
    if "backend_extensions" not in content:
        return _Reader(file).config(content)
    _known(content, ("backend_extensions", "context_configs", "graph_configs"), file, "")
    extension = _object(content["backend_extensions"], file, "backend_extensions")
    _known(extension, ("shared_library_path", "config_file_path"), file, "backend_extensions.")
    inner = extension.get("config_file_path")
    if not inner:
        return HtpConfig()
    given = Path(str(inner))
    target = given if given.is_absolute() or not (file.parent / given).exists() else file.parent / given
    return _Reader(target).config(_load(target, parse))


def graph_options(settings: Mapping[str, Any]) -> GraphOptions:
    """Settings of a graph from a program, by the names that they have in HTP's own file."""
    place = Path("settings")
    _known(settings, tuple(_GRAPH_KEYS), place, "")
    return GraphOptions(**_settings(settings, _GRAPH_KEYS, place, ""))


def check_memory(place: str, device: DeviceOptions | None, graphs: Mapping[str, GraphOptions]) -> None:
    """The library compiles for any size, and the chip finds out."""
    chip = None if device is None or device.soc is None else find_soc(device.soc)
    most = max((options.vtcm_mb or 0 for options in graphs.values()), default=0)
    if chip is not None and chip.vtcm_mb is not None and most > chip.vtcm_mb:
        raise UsageError(
            f"{place}: vtcm_mb is {most}, and {chip} has {chip.vtcm_mb} MB",
            hint="0 stands for all that there is; or choose another chip",
        )


class _Reader:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._ignored: list[str] = []

    def config(self, content: Mapping[str, Any]) -> HtpConfig:
        _known(content, HTP_KEYS, self._file, "")
        graphs, every = self._graphs(content.get("graphs"))
        device, perf, profiling = self._devices(content.get("devices"))
        merged = self._merged("context", content.get("context")) | self._merged(
            "groupContext", content.get("groupContext")
        )
        context = self._context(merged)
        if "memory" in content:
            self._ignored.append(f"memory {_DEVICE_ONLY}")
        return HtpConfig(device, context, graphs, every, perf, profiling, tuple(self._ignored))

    def _graphs(self, value: Any) -> tuple[dict[str, GraphOptions], GraphOptions | None]:
        named: dict[str, GraphOptions] = {}
        every: GraphOptions | None = None
        for entry in _entries(value, self._file, "graphs"):
            _known(entry, ("graph_names", *_GRAPH_KEYS), self._file, "graphs.")
            options = GraphOptions(**_settings(entry, _GRAPH_KEYS, self._file, "graphs."))
            if "graph_names" not in entry:
                self._check_single(every, "all other graphs")
                every = options
            for name in name_list(entry, "graph_names", self._file, "graphs."):
                self._check_single(named.get(name), f"graph '{name}'")
                named[name] = options
        return named, every

    def _check_single(self, before: GraphOptions | None, what: str) -> None:
        if before is not None:
            raise InputError(
                f"{self._file}: graphs has two entries for {what}", hint="put their settings into one"
            )

    def _devices(self, value: Any) -> tuple[DeviceOptions | None, str | None, str | None]:
        perf = profiling = None
        device: DeviceOptions | None = None
        for entry in _entries(value, self._file, "devices"):
            _known(entry, _DEVICE_KEYS, self._file, "devices.")
            chip = self._chip(entry) or device
            if device is not None and chip != device:
                hint = "a context is compiled for one of them"
                raise InputError(f"{self._file}: devices are of different chips", hint=hint)
            device = chip
            profiling = self._profiling(entry.get("profiling_level", profiling))
            self._ignore("devices", [key for key in _HARDWARE_KEYS if entry.get(key, 0) not in (0, [0])])
            for core in _entries(entry.get("cores"), self._file, "devices.cores"):
                _known(core, _CORE_KEYS, self._file, "devices.cores.")
                perf = self._perf(core.get("perf_profile", perf))
                self._ignore("devices.cores", [key for key in core if key != "core_id"])
        return device, perf, profiling

    def _ignore(self, where: str, keys: Sequence[str]) -> None:
        self._ignored += [f"{where}.{key} {_DEVICE_ONLY}" for key in keys]

    def _chip(self, entry: Mapping[str, Any]) -> DeviceOptions | None:
        soc = entry.get("soc_model", entry.get("soc_id"))
        if entry.get("soc_id", soc) != soc:
            raise InputError(
                f"{self._file}: devices.soc_model is {soc!r}, and devices.soc_id is {entry['soc_id']!r}",
                hint="leave out the one that is not meant; soc_id is the older name",
            )
        arch = str(entry["dsp_arch"]).lower().removeprefix("v") if "dsp_arch" in entry else None
        if arch is not None and not arch.isdecimal():
            raise InputError(f"{self._file}: devices.dsp_arch is like 'v75', not {entry['dsp_arch']!r}")
        if arch is not None and int(arch) not in ARCHITECTURES:
            known = ", ".join(f"v{number}" for number in ARCHITECTURES)
            raise InputError(f"{self._file}: there is no devices.dsp_arch v{arch}", hint=f"known: {known}")
        if not soc:
            return DeviceOptions(arch=int(arch)) if arch else None
        # The library calls an architecture beside a SoC deprecated; the SoC implies it.
        found = find_soc(_number(soc, self._file, "devices.soc_model"))
        if arch and found.arch not in (None, int(arch)):
            raise InputError(
                f"{self._file}: devices.dsp_arch is v{arch}, and devices.soc_model is {found}",
                hint="leave out the one that is not meant",
            )
        return DeviceOptions(found.model)

    def _profiling(self, name: Any) -> str | None:
        if name not in (None, "linting"):
            raise InputError(f"{self._file}: devices.profiling_level is linting, not {name!r}")
        return name

    def _perf(self, name: Any) -> str | None:
        if name is not None and name not in tuple(PERF_PROFILES):  # a list has no hash to look it up by
            known = ", ".join(sorted(PERF_PROFILES))
            raise InputError(f"{self._file}: there is no perf_profile {name!r}", hint=f"known: {known}")
        return name

    def _merged(self, where: str, value: Any) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for entry in _entries(value, self._file, where):
            _known(entry, (*_CONTEXT_KEYS, *_ON_DEVICE), self._file, f"{where}.")
            self._ignored += [f"{where}.{key} {_ON_DEVICE[key]}" for key in entry if key in _ON_DEVICE]
            merged |= {key: item for key, item in entry.items() if key in _CONTEXT_KEYS}
        return merged

    def _context(self, entry: Mapping[str, Any]) -> ContextOptions | None:
        if not entry:
            return None
        return ContextOptions(**_settings(entry, _CONTEXT_KEYS, self._file, "context."))


def _settings(
    entry: Mapping[str, Any], keys: Mapping[str, tuple[str, type]], file: Path, where: str
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, (name, kind) in keys.items():
        if key in entry:
            number = _number(entry[key], file, f"{where}{key}")
            if kind is bool and number not in (0, 1):
                raise InputError(f"{file}: {where}{key} is on or off, not {entry[key]!r}")
            found[name] = kind(number)
    return found


def check_taken(
    info: ContextInfo,
    options: Mapping[str, GraphOptions],
    device: DeviceOptions | None = None,
    context: ContextOptions | None = None,
) -> None:
    """Compare what was asked for with what the compiled context says; what did not take is an error."""
    problems = _other_device(info, device) if device else []
    for graph in info.graphs:
        problems += _other_settings(graph, options.get(graph.name))
    if context and context.weight_sharing and len(info.graphs) > 1:
        shared = [graph.htp.v2.shared_weights_size for graph in info.graphs if graph.htp and graph.htp.v2]
        if shared and not any(shared):
            problems.append("weight sharing was asked for, but the graphs share no weights")
    if problems:
        raise BackendError("settings that did not take effect:\n  " + "\n  ".join(problems))


def _other_device(info: ContextInfo, device: DeviceOptions) -> list[str]:
    problems: list[str] = []
    if device.soc is not None and info.soc_model not in (None, device.soc):
        problems.append(f"SoC {device.soc} was asked for, but the binary is for {info.soc_model}")
    if device.arch is not None and info.dsp_arch not in (None, device.arch):
        problems.append(f"architecture v{device.arch} was asked for, but the binary is for v{info.dsp_arch}")
    return problems


def _other_settings(graph: GraphInfo, asked: GraphOptions | None) -> list[str]:
    blob = graph.htp
    if blob is None or asked is None:
        return []
    pairs: list[tuple[str, Any, Any]] = [
        ("O", asked.optimization, blob.optimization_level),
        ("vtcm_mb", asked.vtcm_mb or None, blob.vtcm_size >> 20),
        ("hvx_threads", asked.hvx_threads or None, blob.hvx_threads),
        ("dlbc", asked.dlbc, bool(blob.dlbc)),
    ]
    return [
        f"graph '{graph.name}': {name} {wanted} was asked for, but the library took {got}"
        for name, wanted, got in pairs
        if wanted is not None and wanted != got
    ]


def _load(file: Path, parse: Callable[[str], Any]) -> dict[str, Any]:
    try:
        content = parse(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{file} is not JSON: {error}") from error
    return _object(content, file, "the whole")


def _object(value: Any, file: Path, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{file}: {where} must be an object, not {type(value).__name__}")
    return value  # pyright: ignore[reportUnknownVariableType]


def _entries(value: Any, file: Path, where: str) -> list[dict[str, Any]]:
    """An object, or an array of objects: both are in use."""
    if value is None:
        return []
    items: list[Any] = value if isinstance(value, list) else [value]
    return [_object(item, file, where) for item in items]


def _known(entry: Mapping[str, Any], keys: Sequence[str], file: Path, where: str) -> None:
    unknown = [key for key in entry if key not in keys]
    if unknown:
        raise InputError(
            f"{file}: there is no setting '{where}{unknown[0]}'", hint=f"known: {', '.join(keys)}"
        )


def name_list(entry: Mapping[str, Any], key: str, file: Path, where: str) -> tuple[str, ...]:
    """An array of names; a single one without brackets would be taken letter by letter."""
    names = entry.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):  # pyright: ignore[reportUnknownVariableType]
        raise InputError(f"{file}: {where}{key} must be an array of names, not {names!r}")
    return tuple(names)  # pyright: ignore[reportUnknownArgumentType]


def _number(value: Any, file: Path, where: str) -> int:
    if not isinstance(value, int | float) or not math.isfinite(value) or value != int(value):
        raise InputError(f"{file}: {where} must be a whole number, not {value!r}")
    if not 0 <= value < 1 << 32:  # the library would take what is left of it in 32 bits
        raise InputError(f"{file}: {where} is out of range: {value!r}")
    return int(value)
