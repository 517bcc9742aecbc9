"""ONNX's own node tests, converted and run on the built-in backend.

    python -m tests.frontends.conformance -k reshape      # some, by regular expression
    python -m tests.frontends.conformance --write         # all; writes the page in docs/ and the baseline

Cases run in child processes, so that a crash of one is an outcome and not the end. `pass`: right as it is.
`fixed`: refused as it is, because a small input decides about shapes; right when that input is a constant.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "onnx_conformance.md"
BASELINE = Path(__file__).with_name("conformance_baseline.json")
OUTCOMES = ("pass", "fixed", "refused", "wrong", "crash")
WORKERS, TIMEOUT = 2, 60


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    op: str
    outcome: str
    reason: str = ""
    culprit: str = ""  # the op that was refused, when it is not the one that the case is about


def collect(pattern: str = "") -> list[Any]:
    """The cases whose name matches; building them all takes some seconds."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        cases = collect_testcases(None)
    return [c for c in cases if re.search(pattern, c.name)]


def op_of(case: Any) -> str:
    """The op that a case is about; `composed` for functions that ONNX has spelled out in several nodes."""
    nodes = case.model.graph.node
    return nodes[0].op_type if len(nodes) == 1 else "composed"


# -- one case --------------------------------------------------


def run_case(case: Any) -> Outcome:
    """Never raises."""
    from openqnn.errors import OpenQnnError

    try:
        return _judged(case, case.model, range(len(case.model.graph.input)), "pass")
    except OpenQnnError as first:
        refusal = first
    except Exception as e:
        return Outcome(case.name, op_of(case), "crash", f"{type(e).__name__}: {e}"[:300])
    return _with_fixed_inputs(case) or _refused(case, refusal)


def _refused(case: Any, refusal: Any) -> Outcome:
    problem = next(iter(getattr(refusal, "problems", ())), None)
    reason = problem.reason if problem else refusal.message
    return Outcome(case.name, op_of(case), "refused", reason, problem.op if problem else "")


def _with_fixed_inputs(case: Any) -> Outcome | None:
    """The case once more with its scalar and vector inputs as constants, as a user would fix them."""
    arrays = [_array(a) for a in case.data_sets[0][0]]
    names = [i.name for i in case.model.graph.input]
    fixed = [
        i for i, a in enumerate(arrays) if isinstance(a, np.ndarray) and (not a.ndim or (i and a.ndim == 1))
    ]
    if not fixed or len(names) != len(arrays):
        return None
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.graph.initializer.extend(numpy_helper.from_array(arrays[i], names[i]) for i in fixed)
    free = [i for i in range(len(names)) if i not in fixed]
    inputs = [case.model.graph.input[i] for i in free]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    try:
        found = _judged(case, model, free, "fixed")
    except Exception:
        return None
    return found


def _judged(case: Any, model: onnx.ModelProto, free: Sequence[int], good: str) -> Outcome:
    import openqnn

    graph = openqnn.convert(model)
    names = [i.name for i in model.graph.input]
    with openqnn.Session(graph, threads=1) as session:
        for inputs, expected in case.data_sets:
            found = session.run({n: _array(inputs[i]) for i, n in zip(free, names, strict=True)})
            for output, want in zip(model.graph.output, expected, strict=True):
                difference = _difference(found[output.name], _array(want), case.rtol, case.atol)
                if difference:
                    return Outcome(case.name, op_of(case), "wrong", f"'{output.name}' {difference}")
    return Outcome(case.name, op_of(case), good)


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic | bool | int | float) else value


def _difference(got: Any, want: Any, rtol: float, atol: float) -> str:
    """What is wrong with a result, empty when nothing is."""
    if not isinstance(want, np.ndarray):
        return f"should be a {type(want).__name__}"
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"is {got.dtype}{list(got.shape)}, should be {want.dtype}{list(want.shape)}"
    exact = got.dtype.kind in "iub" and got.dtype.names is None
    same = np.array_equal(got, want) if exact else _close(got, want, rtol, atol)
    return "" if same else f"differs: {_sample(got)} should be {_sample(want)}"


def _close(got: Any, want: Any, rtol: float, atol: float) -> bool:
    """The expected sums carry rounding noise of their own: of the largest element."""
    finite = np.abs(want[np.isfinite(want)].astype(np.float64))
    noise = float(np.finfo(np.float32).eps) * finite.max(initial=0)
    a, b = got.astype(np.float64), want.astype(np.float64)
    return bool(np.allclose(a, b, rtol=rtol, atol=atol + noise, equal_nan=True))


def _sample(array: Any) -> str:
    return np.array2string(array.ravel()[:4], precision=4)


# -- all cases, in child processes --------------------------------------------------


def _work(cases: Sequence[Any], send: Connection) -> None:
    warnings.simplefilter("ignore")
    for case in cases:
        send.send(run_case(case))
    send.close()


class Worker:
    """A process with a share of the cases. One that dies leaves a crash for its case and is replaced."""

    def __init__(self, cases: Sequence[Any]) -> None:
        context = multiprocessing.get_context("fork")  # the cases are inherited, not sent
        self.cases = cases
        self.done = 0
        self.receive, send = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(cases, send))
        self.process.start()
        send.close()

    def result(self) -> Outcome | None:
        try:
            found = self.receive.recv()
        except EOFError:
            return self.lost("the process died")
        self.done += 1
        return found

    def lost(self, why: str) -> Outcome | None:
        """The case that was running; None when all are done."""
        self.process.kill()
        self.process.join()
        if self.done == len(self.cases):
            return None
        case = self.cases[self.done]
        self.done += 1
        return Outcome(case.name, op_of(case), "crash", why)


def run_all(cases: Sequence[Any], workers: int = WORKERS) -> Iterator[Outcome]:
    running = {w.receive: w for w in (Worker(cases[i::workers]) for i in range(workers))}
    while running:
        ready = wait(list(running), timeout=TIMEOUT)
        stuck = [] if ready else list(running)
        for key in [*ready, *stuck]:
            worker = running[key]  # type: ignore[index]
            outcome = worker.lost(f"no result within {TIMEOUT} s") if stuck else worker.result()
            if outcome is not None:
                yield outcome
            if worker.process.exitcode is not None and (outcome is None or outcome.outcome == "crash"):
                del running[key]  # type: ignore[arg-type]
                if worker.done < len(worker.cases):
                    fresh = Worker(worker.cases[worker.done :])
                    running[fresh.receive] = fresh


# -- reports --------------------------------------------------


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    found = Counter(o.outcome for o in outcomes)
    return {k: found[k] for k in OUTCOMES}


def _blame(o: Outcome) -> str:
    return f"{o.culprit or o.op}: " + re.sub(r"of opset \d+ ", "", o.reason)


def summary(outcomes: Sequence[Outcome], verbose: bool) -> str:
    lines = [f"{len(outcomes)} cases: " + ", ".join(f"{n} {k}" for k, n in counts(outcomes).items())]
    for kind in ("crash", "wrong"):
        lines += [f"  {kind} {o.name}: {o.reason}" for o in outcomes if o.outcome == kind]
    groups: dict[str, list[str]] = defaultdict(list)
    for o in outcomes:
        if o.outcome == "refused":
            groups[_blame(o)].append(o.name)
    for reason, names in sorted(groups.items(), key=lambda g: -len(g[1])):
        lines.append(f"  refused x{len(names)} {reason}   [{names[0]}{' ...' if len(names) > 1 else ''}]")
    if verbose:
        lines += [f"  {o.outcome} {o.name} {o.reason}" for o in outcomes]
    return "\n".join(lines)


def page(outcomes: Sequence[Outcome]) -> str:
    """The table that the documentation shows."""
    total = counts(outcomes)
    by_op: dict[str, list[Outcome]] = defaultdict(list)
    for o in outcomes:
        by_op[o.op].append(o)
    rows = [_row(op, found) for op, found in sorted(by_op.items(), key=lambda g: g[0].lower())]
    return "\n".join([
        "# ONNX conformance",
        "",
        "Generated by `python -m tests.frontends.conformance --write`: ONNX's own node tests, converted",
        f"and run on the built-in backend. Of {len(outcomes)} cases {total['pass']} pass as they are;",
        f"{total['fixed']} more pass when the small inputs that decide about shapes are given as constants;",
        f"{total['refused']} are refused with a reason; {total['wrong']} are wrong; {total['crash']} crash.",
        "The row `composed` holds the cases of several nodes: functions that ONNX has spelled out.",
        "",
        "| op | passed | with constants | refused | reasons |",
        "| --- | ---: | ---: | ---: | --- |",
        *rows,
        "",
    ])  # fmt: skip


def _row(op: str, outcomes: Sequence[Outcome]) -> str:
    n = counts(outcomes)
    reasons = Counter(_short(o) for o in outcomes if o.outcome == "refused")
    text = "; ".join(f"{r} (x{k})" if k > 1 else r for r, k in reasons.most_common(6))
    return f"| {op} | {n['pass']} | {n['fixed']} | {n['refused']} | {text} |"


def _short(o: Outcome) -> str:
    first = o.reason.splitlines()[0] if o.reason else ""
    blame = f"{o.culprit}: {first}" if o.culprit and o.culprit != o.op else first
    return blame.replace("|", "\\|")[:160]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-k", default="", metavar="REGEX", help="only cases whose name matches")
    parser.add_argument("-v", action="store_true", help="one line per case")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    parser.add_argument(
        "--write", action="store_true", help="write the page and the baseline (needs all cases)"
    )
    args = parser.parse_args(argv)
    outcomes = sorted(run_all(collect(args.k)), key=lambda o: o.name)
    print(json.dumps([asdict(o) for o in outcomes]) if args.json else summary(outcomes, args.v))
    bad = any(o.outcome in ("wrong", "crash") for o in outcomes)
    if args.write and not args.k and not bad:
        PAGE.write_text(page(outcomes), encoding="utf-8")
        BASELINE.write_text(
            json.dumps({k: counts(outcomes)[k] for k in ("pass", "fixed")}) + "\n", encoding="utf-8"
        )
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
