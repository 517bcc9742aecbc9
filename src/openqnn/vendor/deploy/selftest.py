"""Self-test of a bundle: files are whole, the runner runs, and its results are the golden ones.

    python3 selftest.py                 on the machine that the bundle was made for
    python3 selftest.py --compare DIR   results that were made elsewhere

Python's standard library is all that it needs. OPENQNN_EMULATOR is put before the runner's command.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
from array import array
from pathlib import Path

HERE = Path(__file__).resolve().parent
CODES = {"int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "float32": "f",
         "int64": "q", "uint64": "Q", "float64": "d"}  # fmt: skip


def damaged(manifest: dict) -> list[str]:
    """What is missing or has other content than the manifest says."""
    found = []
    for name, digest in manifest["files"].items():
        file = HERE / name
        if not file.is_file():
            found.append(f"{name} is missing")
        elif hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            found.append(f"{name} has changed")
    return found


def run(manifest: dict, outputs: str) -> str:
    """Runs the model on the golden inputs; gives what went wrong, or nothing."""
    lib = str(HERE / "lib")
    paths = os.pathsep.join(filter(None, [lib, os.environ.get("LD_LIBRARY_PATH")]))
    command = [*shlex.split(os.environ.get("OPENQNN_EMULATOR", "")), str(HERE / "bin" / "runner"),
               str(HERE / manifest["backend"]), str(HERE / "model_optimized.so"), str(HERE / "golden/inputs"),
               outputs, str(manifest["soc"]), "run"]  # fmt: skip
    settings = {"LD_LIBRARY_PATH": paths, "ADSP_LIBRARY_PATH": lib}
    try:
        done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True,
                              cwd=outputs, timeout=1800, check=False)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr.strip() or f"exit code {done.returncode}")


def numbers(file: Path, kind: str) -> array:
    data = file.read_bytes()
    if kind in ("float16", "bool"):
        kind = "uint16" if kind == "float16" else "uint8"
    found = array(CODES[kind])
    found.frombytes(data)
    return found


def compared(outputs: Path) -> list[str]:
    """What differs from the golden results: more than the tolerance of input_specs.json."""
    specs = json.loads((HERE / "input_specs.json").read_text())
    found = []
    for tensor in specs["outputs"]:
        file = outputs / f"{tensor['name']}.raw"
        if not file.is_file():
            found.append(f"there is no result {file.name}")
            continue
        wanted = numbers(HERE / "golden/outputs" / file.name, tensor["dtype"])
        got = numbers(file, tensor["dtype"])
        if len(wanted) != len(got):
            found.append(f"{tensor['name']} has {len(got)} numbers, not {len(wanted)}")
            continue
        most = max((abs(a - b) for a, b in zip(wanted, got, strict=True)), default=0)
        limit = specs["tolerance"] * max(1.0, max((abs(a) for a in wanted), default=0))
        if not most <= limit or any(math.isnan(x) for x in got):
            found.append(f"{tensor['name']} differs by {most:g}, and {limit:g} is allowed")
    return found


def selftest(argv: list[str]) -> int:
    manifest = json.loads((HERE / "manifest.json").read_text())
    problems = damaged(manifest)
    if not problems and argv[:1] == ["--compare"]:
        problems = compared(Path(argv[1]))
    elif not problems:
        with tempfile.TemporaryDirectory() as folder:
            said = run(manifest, folder)
            problems = [said] if said else compared(Path(folder))
    for problem in problems:
        print(f"FAILED: {problem}", file=sys.stderr)
    if not problems:
        print(f"PASSED: {manifest['model']} for {manifest['target']}, results as on the machine that made it")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(selftest(sys.argv[1:]))
