"""QNNProfiler: latency, throughput, processor time and memory of any function that runs a model."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.errors import UsageError

MEGABYTE = 1 << 20


class QNNProfiler:
    """Call a function many times and measure it. `metrics` keeps the results by the function's name.

    Processor time and memory are those of this process and of its children, in which Qualcomm's libraries
    run: 100 % is one core.
    """

    def __init__(self) -> None:
        self.metrics: dict[str, dict[str, float]] = {}

    def profile_inference(
        self, inference_func: Callable[[Any], Any], input_data: Any, num_runs: int = 100, warmup: int = 1
    ) -> dict[str, float]:
        """Latencies of `num_runs` calls; the first calls, which load and compile, are not counted."""
        if num_runs < 1:
            raise UsageError(f"num_runs is {num_runs}: there is nothing to measure")
        for _ in range(warmup):
            inference_func(input_data)
        latencies: list[float] = []
        memory: list[int] = []
        busy, began = _processor_seconds(), time.perf_counter()
        for _ in range(num_runs):
            before = _memory()
            start = time.perf_counter()
            inference_func(input_data)
            latencies.append((time.perf_counter() - start) * 1000)
            memory.append(_memory() - before)
        used = (_processor_seconds() - busy) / (time.perf_counter() - began)
        found = {
            "avg_latency_ms": float(np.mean(latencies)),
            "p95_latency_ms": float(np.percentile(latencies, 95)),
            "p99_latency_ms": float(np.percentile(latencies, 99)),
            "throughput_fps": float(1000 / np.mean(latencies)),
            "avg_cpu_usage": 100 * used,
            "avg_memory_delta_mb": float(np.mean(memory)) / MEGABYTE,
        }
        self.metrics[getattr(inference_func, "__name__", repr(inference_func))] = found
        return found


def _family() -> list[Path]:
    """The folders in /proc of this process and of all below it."""
    found, left = [], [os.getpid()]
    while left:
        folder = Path("/proc") / str(left.pop())
        found.append(folder)
        with suppress(OSError):
            left += [int(pid) for file in folder.glob("task/*/children") for pid in file.read_text().split()]
    return found


def _processor_seconds() -> float:
    ticks = 0
    for folder in _family():
        with suppress(OSError):
            user, system = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
            ticks += int(user) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")


def _memory() -> int:
    """Bytes in memory, pages shared with others counted in each."""
    pages = 0
    for folder in _family():
        with suppress(OSError, IndexError):
            pages += int((folder / "statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
