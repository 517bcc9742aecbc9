"""Plants faults in real networks, and writes the table about how well they are found into docs/debugging.md.

    python -m tests.analysis.accuracy.faults_page [--models mnist_conv magika] [--keep FILE] [--write]

What was measured is kept in a file, if one is named: the command goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from openqnn.analysis.accuracy.debug import debug_accuracy
from openqnn.analysis.accuracy.debug_report import DebugReport
from tests.analysis.accuracy.faults import MODELS, Planted, Subject, plant, source_of, subject_of

PAGE = Path(__file__).parents[3] / "docs/debugging.md"
BEGIN, END = "<!-- faults -->", "<!-- end of faults -->"
SEEDS, SAMPLES = 25, 3
HEAD = "| network | layers | broken without a fault | faults | layer first | in first three | right cause |"


def verdict_on(report: DebugReport, planted: Planted) -> dict[str, Any]:
    """The place of the right layer, and whether its first finding is a right cause."""
    places = [i for i, layer in enumerate(report.layers) if layer.tensor in planted.tensors]
    place = min(places, default=len(report.layers))
    findings = report.layers[0].findings
    right = place == 0 and bool(findings) and findings[0].cause.id in planted.causes
    return {"kind": planted.kind, "place": place, "cause": right}


def examined(subject: Subject, planted: Planted) -> DebugReport:
    return debug_accuracy(planted.real, planted.fixed, subject.samples, attribution=False)


def measured(model: str, seeds: Sequence[int], done: set[int]) -> Iterator[dict[str, Any]]:
    """A record of the network without a fault, and one for each fault."""
    left = [s for s in seeds if s not in done]
    if not left and -1 in done:
        return
    subject = subject_of(model, SAMPLES)
    if -1 not in done:
        healthy = debug_accuracy(subject.real, subject.fixed, subject.samples, attribution=False)
        broken = [layer.tensor for layer in healthy.broken]
        yield {"model": model, "seed": -1, "layers": len(healthy.layers), "broken": broken}
    for seed in left:
        planted = plant(subject, seed)
        yield {"model": model, "seed": seed, **verdict_on(examined(subject, planted), planted)}


def table(records: Sequence[dict[str, Any]]) -> str:
    rows = [HEAD, "| --- " * HEAD.count(" | ") + "| --- |"]
    for model in dict.fromkeys(r["model"] for r in records):
        healthy = next(r for r in records if r["model"] == model and r["seed"] < 0)
        faults = [r for r in records if r["model"] == model and r["seed"] >= 0]
        rows.append(_row(f"{model} | {healthy['layers']}", len(healthy["broken"]), faults))
    faults = [r for r in records if r["seed"] >= 0]
    rows.append(_row("all | ", sum(len(r.get("broken", ())) for r in records), faults))
    missed = [f"{r['model']} {r['seed']} ({r['kind']})" for r in faults if not r["cause"]]
    kinds = Counter(r["kind"] for r in faults)
    said = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    return "\n".join([*rows, "", f"Kinds: {said}. Missed: {', '.join(missed) or 'none'}."])


def _row(start: str, broken: int, faults: Sequence[dict[str, Any]]) -> str:
    first = sum(r["place"] == 0 for r in faults)
    three = sum(r["place"] < 3 for r in faults)
    cause = sum(r["cause"] for r in faults)
    return f"| {start} | {broken} | {len(faults)} | {first} | {three} | {cause} |"


def write_page(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", nargs="+", default=[m for m in MODELS if source_of(m) is not None])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args(argv)
    records: list[dict[str, Any]] = []
    if args.keep is not None and args.keep.is_file():
        records = [json.loads(line) for line in args.keep.read_text().splitlines()]
    for model in args.models:
        done = {r["seed"] for r in records if r["model"] == model}
        for record in measured(model, range(args.seeds), done):
            records.append(record)
            print(json.dumps(record), flush=True)
            if args.keep is not None:
                with args.keep.open("a") as file:
                    file.write(json.dumps(record) + "\n")
    chosen = [r for r in records if r["model"] in args.models and r["seed"] < args.seeds]
    text = table(chosen)
    print(text)
    if args.write:
        write_page(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
