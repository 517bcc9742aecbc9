"""python -m benchmarks [speed] [convert] [large_files] [net_run] [context] [throughput] [calibrate] [viewer]
                     [debugging]
                     [--json FILE] [--models NAME...] [--aimet PYTHON]

`python -m benchmarks accuracy` and `python -m benchmarks chip_fits` have options of their own.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks import (
    accuracy,
    calibrate,
    chip_fits,
    context,
    convert,
    debugging,
    large_files,
    net_run,
    speed,
    throughput,
    viewer,
)
from benchmarks.options import add_models
from benchmarks.report import machine

PARTS = {
    "speed": speed.measure,
    "convert": convert.measure,
    "large_files": large_files.measure,
    "net_run": net_run.measure,
    "context": context.measure,
    "throughput": throughput.measure,
    "calibrate": calibrate.measure,
    "viewer": viewer.measure,
    "debugging": debugging.measure,
}


def main() -> int:
    if sys.argv[1:2] == ["accuracy"]:  # has options of its own
        return accuracy.main(sys.argv[2:])
    if sys.argv[1:2] == ["chip_fits"]:
        return chip_fits.main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure against the peers.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all when none is named"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    parser.add_argument(
        "--aimet", metavar="PYTHON", help="a Python with aimet-onnx, which `calibrate` times as well"
    )
    add_models(parser, calibrate.models(), "calibrate: ")
    arguments = parser.parse_args()
    unknown = [p for p in arguments.parts if p not in PARTS]
    if unknown:
        parser.error(f"no part '{unknown[0]}'; there are: {', '.join(PARTS)}")
    print(machine(), end="\n\n")
    sections = []
    for part in arguments.parts or PARTS:
        options = {"aimet": arguments.aimet, "only": arguments.models} if part == "calibrate" else {}
        sections.append(PARTS[part](**options))
        print(sections[-1].text(), end="\n\n", flush=True)
    if arguments.json:
        report = {"machine": machine(), "sections": [s.as_json() for s in sections]}
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0 if all(v.met for s in sections for v in s.verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
