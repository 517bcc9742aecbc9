"""The result of a throughput run as a record for JSON, with a verdict on how steady it was.

`throughput_result.schema.json` beside this module describes the record.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

from openqnn.vendor.throughput.latencies import Course, Spread
from openqnn.vendor.throughput.run import ThroughputRun
from openqnn.vendor.throughput.threads import ThreadResult

FORMAT = "openqnn.throughput/1"
SCHEMA, SAMPLE = "throughput_result.schema.json", "sample_config.json"
HOST_TIMES = (
    "libQnnHtp on this machine is a simulator: its times are those of the host's processor, and say nothing"
    " of how fast a chip is; `openqnn estimate` does"
)
WINDOWS = 10
FEWEST = 100  # executions of a thread that a verdict takes
DRIFT, SCATTER = 0.10, 0.15
STABLE, UNSTABLE, UNKNOWN = "stable", "unstable", "unknown"


@dataclass(frozen=True, slots=True)
class Stability:
    """Whether a thread's latency stayed where it was. `drift` compares the last third of the run with the
    first, `scatter` is how far a typical tenth of it is from the middle one."""

    verdict: str
    drift: float | None = None
    scatter: float | None = None
    reason: str = ""


def shipped_file(name: str) -> str:
    """A text file that comes with the package: the sample configuration, or the schema of results."""
    return files("openqnn.analysis").joinpath(name).read_text(encoding="utf-8")


def throughput_report(
    run: ThroughputRun, config: str, version: str, scenario: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The whole record; times are in microseconds."""
    verdicts = [stability(thread) for thread in run.threads]
    found: dict[str, Any] = {
        "format": FORMAT,
        "config": config,
        "environment": environment(run, version),
        "seconds": round(run.seconds, 6),
        "iterations": run.iterations,
        "stopped_by_user": run.stopped,
        "memory": {
            "before_bytes": run.before.memory,
            "after_bytes": run.after.memory,
            "handles_before": run.before.handles,
            "handles_after": run.after.handles,
        },
        "stability": worst([each.verdict for each in verdicts]),
        "threads": [_thread(t, v) for t, v in zip(run.threads, verdicts, strict=True)],
        "models": _models(run),
    }
    if scenario is not None:
        found["scenario"] = {**scenario, "outcomes": {k: asdict(v) for k, v in run.outcomes.items()}}
    if run.logs:
        found["profiling_logs"] = run.logs
    return found


def environment(run: ThroughputRun, version: str) -> dict[str, Any]:
    simulated = any("soc" in backend for backend in run.backends.values())
    return {
        "openqnn": version,
        "backends": run.backends,
        **host_environment(),
        "threads": len(run.threads),
        "remarks": [HOST_TIMES] if simulated else [],
    }


def host_environment() -> dict[str, Any]:
    """The machine that measures: what it is, and how busy."""
    return {
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_average": [round(each, 2) for each in os.getloadavg()],
        "governor": _governor(),
        "python": platform.python_version(),
    }


def stability(thread: ThreadResult) -> Stability:
    """The verdict on one thread."""
    if thread.count < FEWEST:
        return Stability(UNKNOWN, reason=f"{thread.count} executions are too few: at least {FEWEST}")
    windows = _windows(thread.course)
    if len(windows) < WINDOWS:
        return Stability(UNKNOWN, reason="the run is too short to be cut into ten parts")
    third = len(windows) // 3
    first, last, middle = median(windows[:third]), median(windows[-third:]), median(windows)
    drift = last / first - 1
    scatter = median(abs(each / middle - 1) for each in windows)
    if abs(drift) > DRIFT:
        return Stability(UNSTABLE, drift, scatter, f"latency went by {drift:+.0%} from start to end")
    if scatter > SCATTER:
        return Stability(UNSTABLE, drift, scatter, f"latency is {scatter:.0%} off at times")
    return Stability(STABLE, drift, scatter)


def worst(verdicts: Sequence[str]) -> str:
    return next((each for each in (UNSTABLE, UNKNOWN) if each in verdicts), STABLE)


def _windows(course: Course) -> list[float]:
    """Mean latencies of ten equal parts of the time."""
    slots = [(c, m) for c, m in zip(course.counts, course.means, strict=True)]
    if len(slots) < WINDOWS:
        return []
    found: list[float] = []
    for number in range(WINDOWS):
        part = slots[number * len(slots) // WINDOWS : (number + 1) * len(slots) // WINDOWS]
        count = sum(c for c, _ in part)
        if count:
            found.append(sum(c * m for c, m in part) / count)
    return found


def _thread(thread: ThreadResult, verdict: Stability) -> dict[str, Any]:
    course = thread.course
    return {
        "thread": thread.thread,
        "backend": thread.backend,
        "context": thread.context,
        "model": thread.model,
        "executions": thread.count,
        "seconds": round(thread.seconds, 6),
        "per_second": _rate(thread.count, thread.seconds),
        "latency_us": _spread(thread.spreads["latency"]),
        "queue_us": _spread(thread.spreads["queue"]),
        "copy_us": _spread(thread.spreads["copy"]),
        "execute_us": _spread(thread.spreads["execute"]),
        "overhead_us": _us(thread.overhead / thread.count) if thread.count else None,
        "initialisations": thread.inits,
        "initialisation_ms": round(thread.init_seconds / max(1, thread.inits) * 1e3, 3),
        "stability": asdict(verdict),
        "errors": [asdict(each) for each in thread.distances],
        "curve": [[_us(at), round(share, 4)] for at, share in thread.spreads["latency"].curve],
        "course": {
            "slot_seconds": course.width,
            "executions": list(course.counts),
            "mean_us": [_us(each) for each in course.means],
            "largest_us": [_us(each) for each in course.largest],
        },
    }


def _models(run: ThroughputRun) -> dict[str, Any]:
    """Throughput by model, over all of its threads."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(thread.model for thread in run.threads):
        threads = [thread for thread in run.threads if thread.model == name]
        count = sum(thread.count for thread in threads)
        found[name] = {
            "threads": len(threads),
            "executions": count,
            "per_second": _rate(count, run.seconds),
        }
    return found


def _spread(spread: Spread) -> dict[str, Any]:
    if not spread.count:
        return {"count": 0}
    plain = {"mean": spread.mean, "min": spread.least, **spread.percentiles, "max": spread.largest}
    return {"count": spread.count, **{name: _us(value) for name, value in plain.items()}}


def _rate(count: int, seconds: float) -> float | None:
    return round(count / seconds, 3) if seconds > 0 else None


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _governor() -> str:
    with suppress(OSError):
        return (
            Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text(encoding="utf-8").strip()
        )
    return "unknown"
