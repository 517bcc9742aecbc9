"""Settings of devices, contexts and graphs that backends take; None leaves the library's default."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from openqnn.errors import UsageError
from openqnn.qnn import abi
from openqnn.qnn.marshal import HtpRecord

_OPTIMIZATION_LEVEL, _DLBC, _DLBC_WEIGHTS = 3, 4, 5


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """Which chip HTP prepares for. `arch` alone gets that architecture's default SoC from the library."""

    soc: int | None = None
    arch: int | None = None
    signed_pd: bool | None = None

    def records(self) -> list[HtpRecord]:
        """HTP's own options."""
        found: list[HtpRecord] = []
        if self.soc is not None:
            found.append((abi.HTP_DEVICE_SOC, self.soc, 0))
        if self.arch is not None:
            found.append((abi.HTP_DEVICE_ARCH, 0, self.arch))
        if self.signed_pd is not None:
            found.append((abi.HTP_DEVICE_SIGNED_PD, 0, int(self.signed_pd)))
        return found


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """`queue_depth` is for asynchronous execution on any backend; the rest is HTP's or a device's."""

    queue_depth: int | None = None
    priority: int | None = None
    memory_limit_mb: int | None = None
    persistent: bool | None = None
    weight_sharing: bool | None = None
    extended_udma: bool | None = None
    file_read_memory_budget_mb: int | None = None
    io_memory_estimation: bool | None = None
    init_acceleration: bool | None = None
    lora_weight_sharing: bool | None = None
    share_resources: bool | None = None

    def numbers(self) -> dict[int, int]:
        """Options of any backend with one number each."""
        given = {
            abi.CONTEXT_PRIORITY: self.priority,
            abi.CONTEXT_MEMORY_LIMIT: self.memory_limit_mb,
            abi.CONTEXT_PERSISTENT: self.persistent,
        }
        return {option: int(value) for option, value in given.items() if value is not None}

    def records(self) -> list[HtpRecord]:
        """HTP's own options."""
        options = {
            1: self.weight_sharing,
            3: self.file_read_memory_budget_mb,
            5: self.share_resources,
            6: self.io_memory_estimation,
            8: self.init_acceleration,
            11: self.extended_udma,
            13: self.lora_weight_sharing,
        }
        return [(option, int(value), 0) for option, value in options.items() if value is not None]


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """How HTP compiles a graph. `float16` decides in what precision float graphs are computed."""

    optimization: int | None = None
    vtcm_mb: int | None = None
    hvx_threads: int | None = None
    dlbc: bool | None = None
    dlbc_weights: bool | None = None
    float16: bool | None = None
    num_cores: int | None = None
    weights_packing: bool | None = None
    fold_relu_activation_into_conv_off: bool | None = None
    short_depth_conv_on_hmx_off: bool | None = None
    advanced_activation_fusion: bool | None = None
    high_precision_sigmoid: bool | None = None
    monolithic_lstm: bool | None = None

    def __post_init__(self) -> None:
        if self.optimization is not None and self.optimization not in (1, 2, 3):
            raise UsageError(f"optimisation level {self.optimization} does not exist; 1, 2 and 3 do")

    def records(self) -> list[HtpRecord]:
        """HTP's own options."""
        plain = {
            3: self.vtcm_mb,
            4: self.fold_relu_activation_into_conv_off,
            5: self.short_depth_conv_on_hmx_off,
            6: self.hvx_threads,
            8: self.num_cores,
            12: self.weights_packing,
            15: self.advanced_activation_fusion,
            16: self.high_precision_sigmoid,
            17: self.monolithic_lstm,
        }
        optimizations = {
            _OPTIMIZATION_LEVEL: self.optimization,
            _DLBC: self.dlbc,
            _DLBC_WEIGHTS: self.dlbc_weights,
        }
        found = [(option, int(value), 0) for option, value in plain.items() if value is not None]
        found += [
            (abi.HTP_GRAPH_OPTIMIZATION, kind, _float_bits(float(value)))
            for kind, value in optimizations.items()
            if value is not None
        ]
        if self.float16 is not None:
            precision = abi.PRECISION_FLOAT16 if self.float16 else abi.PRECISION_FLOAT32
            found.append((abi.HTP_GRAPH_PRECISION, precision, 0))
        return found


def _float_bits(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])
