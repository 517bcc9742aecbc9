"""The built-in backend in fixed point against libQnnHtp: the same stored integers, give or take one step.

    python -m tests.htp.simulation -k Conv          # some ops, by regular expression
    python -m tests.htp.simulation --write          # all ops; writes docs/htp_simulation.md and the baseline

Every case of the op database, and a few of the size that networks have, in 8 and in 16 bits.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from openqnn.emit import lower
from openqnn.errors import OpenQnnError
from openqnn.ir import Array, Graph
from openqnn.runtime.cpu.executable import CpuExecutable
from openqnn.vendor.jobs import run_net
from openqnn.vendor.library_worker import LibraryWorker
from tests.htp.fixed import fixed_case
from tests.ops.database import Case, case, f, w
from tests.ops.harness import all_cases

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "htp_simulation.md"
BASELINE = Path(__file__).with_name("simulation_baseline.json")
WIDTHS = (8, 16)
WANTED = 0.995  # of the values within one step
TIMEOUT = 60
ONE = ((1, 1), (1, 1))

NONE = ((0, 0), (0, 0))
WINDOW = {"stride": (2, 2), "pad_amount": NONE}


def _large() -> list[Case]:
    """The size that networks have: sums of hundreds of products, many channels."""
    image, wide = (1, 28, 28, 32), {"low": -6, "high": 6}
    same, double = {"stride": (1, 1), "pad_amount": ONE}, {"stride": (2, 2), "pad_amount": ONE}
    pairs = ("Add", "Subtract", "Multiply", "Maximum")
    activations = ("Relu", "Relu6", "HardSwish", "Sigmoid", "Tanh", "Gelu", "Elu")
    return [
        case("Conv2d", f(1, 28, 28, 64), w(3, 3, 64, 32), w(32), **same, label="large"),
        case("Conv2d", f(1, 14, 14, 256), w(1, 1, 256, 64), stride=(1, 1), pad_amount=NONE, label="deep"),
        case("DepthWiseConv2d", f(1, 28, 28, 64), w(3, 3, 1, 64), w(64), **same, label="large"),
        case("DepthWiseConv2d", f(1, 28, 28, 64), w(3, 3, 1, 64), w(64), **double, label="stride"),
        case("TransposeConv2d", f(1, 14, 14, 32), w(2, 2, 32, 16), w(16), **WINDOW, label="large"),
        case("FullyConnected", f(1, 512), w(100, 512), w(100), label="large"),
        case("MatMul", f(1, 64, 96), w(96, 96), label="weights"),
        case("MatMul", f(1, 4, 64, 32), f(1, 4, 32, 64), label="large"),
        *(case(f"ElementWise{name}", f(*image), f(*image), label="large") for name in pairs),
        *(case(name, f(*image, **wide), label="large") for name in activations),
        case("PoolAvg2d", f(*image), filter_size=(3, 3), **WINDOW, label="large"),
        case("PoolMax2d", f(*image), filter_size=(2, 2), **WINDOW, label="large"),
        case("ReduceMean", f(1, 14, 14, 64), axes=(1, 2), keep_dims=True, label="large"),
        case("Softmax", f(1, 64, 64, low=-8, high=8), label="large"),
        case("LayerNorm", f(1, 64, 96), w(96), w(96), axes=(2,), label="large"),
    ]


# Cases that differ far beyond rounding, at these widths: HTP has another function or mode there. The passes
# for HTP say most of them in other ops; they are shown apart and do not count.
OTHERWISE: dict[str, tuple[int, ...]] = {
    "TransposeConv3d": (8,),
    "TransposeConv3d-unequal_pads": WIDTHS,
    "NonMaxSuppression": WIDTHS,  # on HTP it crashes, or differs from run to run
    "NonMaxSuppression-batches": WIDTHS,
    "ElementWiseLog": (16,),
    "ElementWiseUnary-log": (16,),
    "ScatterElements": WIDTHS,
    "ScatterElements-ADD": WIDTHS,
    "ScatterElements-narrow": WIDTHS,
    "ScatterNd-v2": (16,),
    "ScatterNd-static": WIDTHS,
    "Nv12ToRgb": (8,),
    "FullyConnected-flatten": WIDTHS,
    "InstanceNorm-mean_only": WIDTHS,
    "GroupNorm-rank3": WIDTHS,
    "HadamardTransform": (16,),
    "HadamardTransform-scale": (16,),
    "PoolAvg2d-ceil": WIDTHS,
    "PoolAvg3d-count_pad": WIDTHS,
    "CumulativeSum": (8,),
    "Resize-cubic-inside": WIDTHS,
    "ResizeBilinear-smooth": WIDTHS,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case at one width. `note` says why there is nothing to compare."""

    case: str
    op: str
    bits: int
    values: int = 0
    within: int = 0
    equal: int = 0
    largest: int = 0
    total: int = 0  # of all differences: HTP's less ours
    apart: bool = False
    note: str = ""


def run_htp(worker: LibraryWorker, graph: Graph, feeds: Sequence[dict[str, Array]]) -> list[dict[str, Array]]:
    """Stored integers out of libQnnHtp; the graph is compiled once."""
    net = lower(graph)
    inputs = [
        {
            name: np.ascontiguousarray(feed[value.name].reshape(net.tensors[name].dims))
            for value, name in zip(graph.inputs, net.inputs, strict=True)
        }
        for feed in feeds
    ]
    found = worker.ask(run_net, "htp", TIMEOUT, net=net, inputs=inputs, device=None).outputs
    names = list(zip(graph.outputs, net.outputs, strict=True))
    return [{v.name: out[n].reshape(v.shape) for v, n in names} for out in found]


def run_case(worker: LibraryWorker, given: Case, bits: int) -> Outcome:
    """Never raises."""
    try:
        fixed = fixed_case(given, bits)
    except (OpenQnnError, ValueError, OverflowError) as e:
        return Outcome(given.id, given.op, bits, note=f"no fixed-point form: {_first(e)}")
    if fixed is None:
        return Outcome(given.id, given.op, bits, note="no real data")
    try:
        theirs = run_htp(worker, fixed.graph, fixed.feeds)
    except OpenQnnError as e:
        return Outcome(given.id, given.op, bits, note=f"refused: {_first(e)}")
    executable = CpuExecutable(fixed.graph, threads=1)
    ours = [executable.run(feed) for feed in fixed.feeds]
    stored = [v.name for v in fixed.graph.outputs if v.dtype.numpy.kind in "iub"]
    pairs = [(a[n], b[n]) for a, b in zip(theirs, ours, strict=True) for n in stored]
    return _compared(
        given, bits, np.concatenate([_difference(*pair) for pair in pairs] or [np.zeros(0, int)])
    )


def _difference(theirs: Array, ours: Array) -> Array:
    return theirs.astype(np.int64).ravel() - ours.astype(np.int64).ravel()


def _compared(given: Case, bits: int, d: Array) -> Outcome:
    return Outcome(
        given.id, given.op, bits, d.size, int((np.abs(d) <= 1).sum()), int((d == 0).sum()),
        int(np.abs(d).max(initial=0)), int(d.sum()), bits in OTHERWISE.get(given.id, ()),
    )  # fmt: skip


def _first(error: Exception) -> str:
    return str(error).splitlines()[0][:160] if str(error) else type(error).__name__


def run_all(pattern: str = "", sample: int = 1) -> list[Outcome]:
    cases = [c for c in [*all_cases(), *_large()] if re.search(pattern, c.id)][::sample]
    with warnings.catch_warnings(), LibraryWorker() as worker:
        warnings.simplefilter("ignore")
        return [run_case(worker, c, bits) for c in cases for bits in WIDTHS]


# -- reports -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """All cases of an op at one width that can be compared."""

    op: str
    bits: int
    values: int
    within: float
    equal: float
    largest: int
    bias: float


def rows(outcomes: Iterable[Outcome]) -> list[Row]:
    groups: dict[tuple[str, int], list[Outcome]] = defaultdict(list)
    for o in outcomes:
        if o.values and not o.apart:
            groups[o.op, o.bits].append(o)
    made: list[Row] = []
    for (op, bits), found in sorted(groups.items()):
        count = sum(o.values for o in found)
        share = lambda name, found=found, count=count: sum(getattr(o, name) for o in found) / count
        largest = max(o.largest for o in found)
        made.append(Row(op, bits, count, share("within"), share("equal"), largest, share("total")))
    return made


def shares(outcomes: Iterable[Outcome]) -> dict[str, float]:
    """The share of values within one step, by op and width."""
    return {f"{r.op}/{r.bits}": round(r.within, 4) for r in rows(outcomes)}


def page(outcomes: Sequence[Outcome]) -> str:
    """The table that the documentation shows."""
    found = rows(outcomes)
    tally = {bits: [r for r in found if r.bits == bits] for bits in WIDTHS}
    good = {bits: sum(r.within >= WANTED for r in tally[bits]) for bits in WIDTHS}
    share = {
        bits: sum(r.within * r.values for r in t) / sum(r.values for r in t) for bits, t in tally.items()
    }
    return "\n".join([
        "# Fixed point on the built-in backend and on HTP",
        "",
        "Generated by `python -m tests.htp.simulation --write`: the op database in fixed point, with weights",
        "of 8 bits per channel and ranges calibrated on the float result, on the built-in backend and on",
        "libQnnHtp (QNN 2.47, SM8650). `within 1` is the share of stored integers that differ by one step at",
        "most. Whole models are in [htp_simulation_models.md](htp_simulation_models.md).",
        "",
        *(
            f"{bits} bits: {100 * share[bits]:.2f} % of all values are within one step; {good[bits]} of"
            f" {len(tally[bits])} ops have at least {100 * WANTED:.1f} %."
            for bits in WIDTHS
        ),
        "",
        "| op | bits | values | within 1 | equal | largest | bias |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(_line(r) for r in found),
        "",
        "## Cases apart",
        "",
        "They differ far beyond rounding: HTP has another function or mode there.",
        "",
        "| case | bits | within 1 | largest |",
        "| --- | ---: | ---: | ---: |",
        *(
            f"| {o.case} | {o.bits} | {100 * o.within / o.values:.1f} % | {o.largest} |"
            for o in outcomes
            if o.apart and o.values
        ),
        "",
    ])  # fmt: skip


def _line(r: Row) -> str:
    shares = f"{100 * r.within:.2f} % | {100 * r.equal:.2f} %"
    return f"| {r.op} | {r.bits} | {r.values} | {shares} | {r.largest} | {r.bias:+.3f} |"


def summary(outcomes: Sequence[Outcome], verbose: bool) -> str:
    lines = [_line(r) for r in rows(outcomes) if verbose or r.within < WANTED]
    if verbose:
        lines += [f"{o.case} {o.bits}: {o.note}" for o in outcomes if o.note]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-k", default="", metavar="REGEX", help="only cases whose name matches")
    parser.add_argument("-v", action="store_true", help="every op, and why cases are left out")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="every Nth case only")
    parser.add_argument("--write", action="store_true", help="write the page and the baseline (needs all)")
    args = parser.parse_args(argv)
    outcomes = run_all(args.k, args.sample)
    print(json.dumps([asdict(o) for o in outcomes]) if args.json else summary(outcomes, args.v))
    if args.write and not args.k and args.sample == 1:
        PAGE.write_text(page(outcomes), encoding="utf-8")
        BASELINE.write_text(json.dumps(shares(outcomes), indent=0, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
