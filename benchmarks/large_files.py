"""Large models to DLC: wall time beside reading and writing their bytes, and peak memory beside their size.

A ResNet-50 as `.pt2` takes part where OPENQNN_RESNET50 names the file that `export_resnet50.py` writes; the
command reads it without torch. Transformers with external data are made here, in three sizes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Section, Verdict

BLOCKS = (1, 3, 5)  # 201 MB each
REPEAT = 3
START = 2.0  # seconds that a conversion may take beside the bytes
SAMPLE = 0.01  # seconds between two looks at the memory


@dataclass(frozen=True)
class Cost:
    seconds: float
    own: float  # megabytes: the most that the command's process had
    whole: float  # with the copy of it that holds Qualcomm's library


def measure() -> Section:
    section = Section(
        "Large models to DLC (least of interleaved runs)",
        ("model", "MB", "s", "s to read and write", "peak MB", "times the size", "with its copy"),
    )
    named = os.environ.get("OPENQNN_RESNET50", "")
    if named:
        size, cost, plain = _add(section, "resnet50.pt2", Path(named))
        section.verdicts += [
            Verdict("ResNet-50 .pt2: seconds", cost.seconds, 1.5 * plain + START, at_least=False),
            Verdict("ResNet-50 .pt2: memory beside the file", cost.own / size, 1.3, at_least=False),
        ]
    found: list[tuple[float, Cost]] = []
    for blocks in BLOCKS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "transformer.onnx"
            subprocess.run(
                [sys.executable, "-m", "benchmarks.transformer", str(path), str(blocks)], check=True
            )
            size, cost, _ = _add(section, f"transformer, {blocks} blocks", path)
            found.append((size, cost))
    (small, first), _, (large, last) = found
    slope = (last.seconds - first.seconds) / (large - small) * 1e3
    middle = first.seconds + slope * (found[1][0] - small) / 1e3
    bend = found[1][1].seconds / middle
    section.verdicts += [
        Verdict("1 GB of ONNX: memory beside its size", last.own / large, 1.4, at_least=False),
        Verdict("time of the middle size beside a straight line", bend, 1.25, at_least=False),
    ]
    return section


def _add(section: Section, name: str, path: Path) -> tuple[float, Cost, float]:
    files = [f for f in (path, path.with_suffix(".bin")) if f.exists()]
    size = sum(f.stat().st_size for f in files) / 1e6
    costs: list[Cost] = []
    plain: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "out.dlc"
        for _ in range(REPEAT):
            costs.append(run(["convert", str(path), "-o", str(target), "--quiet", "--overwrite"]))
            plain.append(_copied(files, Path(folder) / "copy"))
    best = min(c.seconds for c in costs)
    cost = Cost(best, max(c.own for c in costs), max(c.whole for c in costs))
    section.rows.append((name, size, best, min(plain), cost.own, cost.own / size, cost.whole))
    return size, cost, min(plain)


def _copied(files: list[Path], target: Path) -> float:
    start = time.perf_counter()
    with target.open("wb") as out:
        for file in files:
            out.write(file.read_bytes())
        out.flush()
        os.fsync(out.fileno())
    return time.perf_counter() - start


def run(arguments: list[str]) -> Cost:
    """The command, with a look at its memory now and then."""
    command = [sys.executable, "-m", "openqnn.cli.main", *arguments]
    start, own, whole = time.perf_counter(), 0.0, 0.0
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while child.poll() is None:
        own = max(own, _megabytes(child.pid, "Rss"))
        whole = max(whole, sum(_megabytes(pid, "Pss") for pid in _family(child.pid)))
        time.sleep(SAMPLE)
    if child.returncode:
        raise RuntimeError(f"{arguments} failed")
    return Cost(time.perf_counter() - start, own, whole)


def _family(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        words = [w for t in tasks for w in Path(f"/proc/{pid}/task/{t}/children").read_text().split()]
    except OSError:  # it has ended
        return []
    return [pid, *(member for word in words for member in _family(int(word)))]


def _megabytes(pid: int, field: str) -> float:
    """Rss counts every page that a process has; Pss shares those of several processes among them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(f"{field}:")), 0.0)
