"""ONNX's own node tests on libQnnHtp: what the built-in backend computes, HTP must compute too.

    python -m tests.htp.conformance -k reshape      # some, by regular expression
    python -m tests.htp.conformance --write         # all; writes docs/htp_conformance.md and the baseline

Each graph runs in a child process that may die. Floats are held to float16's accuracy (a hundredth of the
largest magnitude), integers and booleans to the last bit. `absent`: the built-in backend does not run it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tests.frontends.conformance import collect, op_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "htp_conformance.md"
BASELINE = Path(__file__).with_name("conformance_baseline.json")
OUTCOMES = ("pass", "fixed", "special", "refused", "wrong", "failed", "crash", "absent")
WORKERS, TIMEOUT, TOLERANCE, LARGEST = 2, 40, 1e-2, 65472.0
# Integers that are rounded from computed floats: one step is their accuracy.
STEPPED = "test_dynamicquantizelinear"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`failed`: the library refused or crashed and we had not said so; `crash`: the tool itself did.

    `special`: differs, in a case that is about infinities and NaN, which HTP's half precision does not have.
    """

    name: str
    op: str
    outcome: str
    reason: str = ""


class Judge:
    """Runs cases on HTP; keeps one child process for as long as it lives."""

    def __init__(self) -> None:
        from openqnn.vendor.library_worker import LibraryWorker

        self._worker = LibraryWorker()

    def run(self, case: Any) -> Outcome:
        """Never raises."""
        from openqnn.errors import OpenQnnError, UnsupportedError

        for model, free, good in variants(case):
            try:
                found = self._judged(case, model, free)
            except UnsupportedError as e:
                outcome = Outcome(case.name, op_of(case), "refused", _first(e))
                return outcome if str(e).startswith("HTP") else self._absent(case, e.message)
            except OpenQnnError as e:
                return Outcome(case.name, op_of(case), "failed", e.message)
            except Exception as e:
                return Outcome(case.name, op_of(case), "crash", f"{type(e).__name__}: {e}"[:300])
            if found is not None:
                kind = good if not found else "special" if is_special(case) else "wrong"
                return Outcome(case.name, op_of(case), kind, found)
        return self._absent(case, "the built-in backend does not pass it")

    @staticmethod
    def _absent(case: Any, why: str) -> Outcome:
        return Outcome(case.name, op_of(case), "absent", why)

    def _judged(self, case: Any, model: onnx.ModelProto, free: Sequence[int]) -> str | None:
        """What is wrong on HTP, empty when nothing is; None when the built-in backend is not right either."""
        from openqnn.api.convert import convert
        from openqnn.errors import OpenQnnError
        from openqnn.targets.htp import legalise_htp

        try:
            graph = convert(model)
        except OpenQnnError:
            return None
        if not _right_on_cpu(case, graph, free):
            return None
        legal = legalise_htp(graph)
        stepped = int(case.name.startswith(STEPPED))
        for inputs, expected in case.data_sets:
            feeds = {v.name: _array(inputs[i]) for i, v in zip(free, graph.inputs, strict=True)}
            found = run_htp(self._worker, legal, feeds)
            wanted = {v.name: _array(w) for v, w in zip(graph.outputs, expected, strict=True)}
            difference = _differences(found, wanted, stepped)
            if difference and not _half_explains(graph, feeds, found, stepped):
                return difference
        return ""


def is_special(case: Any) -> bool:
    """Whether infinite inputs or NaN results take part, which HTP's half precision does not have."""
    arrays = [[_array(a) for a in side] for side in case.data_sets[0]]
    floats = [[a for a in side if getattr(a, "dtype", np.dtype(int)).kind == "f"] for side in arrays]
    return any(not np.isfinite(a).all() for a in floats[0]) or any(np.isnan(a).any() for a in floats[1])


def run_htp(worker: Any, graph: Any, feeds: Mapping[str, Any], timeout: float = TIMEOUT) -> dict[str, Any]:
    """The outputs of a graph on libQnnHtp, as the source model has them."""
    from openqnn.emit import lower

    net = lower(graph)
    arrays: dict[str, Any] = {}
    for value, name in zip(graph.inputs, net.inputs, strict=True):
        array = feeds[value.name].reshape(net.tensors[name].dims)
        arrays[name] = np.ascontiguousarray(array.astype(value.dtype.numpy))
    results = worker.run(net, arrays, "htp", timeout=timeout)
    return _outward(graph, {v.name: results[n] for v, n in zip(graph.outputs, net.outputs, strict=True)})


def run_cpu(graph: Any, feeds: Mapping[str, Any]) -> dict[str, Any]:
    from openqnn.runtime.cpu.executable import CpuExecutable

    executable = CpuExecutable(graph, threads=1)
    return _outward(
        graph, executable.run({v.name: feeds[v.name].astype(v.dtype.numpy) for v in graph.inputs})
    )


def _outward(graph: Any, found: Mapping[str, Any]) -> dict[str, Any]:
    ports = {name: graph.ports[name] for name in found}
    return {k: found[k].reshape(p.shape).astype(p.dtype.numpy) for k, p in ports.items()}


def _half_explains(graph: Any, feeds: Mapping[str, Any], found: Mapping[str, Any], steps: int) -> bool:
    """Whether the results are right for what half precision makes of the inputs, give or take its last bit.

    10001 is 10000 there, and tan(1.61) hangs on the last bit of 1.61.
    """
    near = [run_cpu(graph, halved(feeds, towards)) for towards in (None, -np.inf, np.inf)]
    for name, got in found.items():
        wanted = [w[name] for w in near]
        if not _difference(got, wanted[0], steps):
            continue
        if got.dtype.kind != "f":
            return False
        closest = np.clip(got, np.minimum.reduce(wanted), np.maximum.reduce(wanted))
        if not _close(got, closest):
            return False
    return True


def halved(feeds: Mapping[str, Any], towards: float | None) -> dict[str, Any]:
    def half(array: Any) -> Any:
        with np.errstate(all="ignore"):
            low = array.astype(np.float16)
            return (low if towards is None else np.nextafter(low, np.float16(towards))).astype(array.dtype)

    return {name: half(a) if a.dtype.kind == "f" else a for name, a in feeds.items()}


def _right_on_cpu(case: Any, graph: Any, free: Sequence[int]) -> bool:
    try:
        for inputs, expected in case.data_sets:
            feeds = {v.name: _array(inputs[i]) for i, v in zip(free, graph.inputs, strict=True)}
            found = run_cpu(graph, feeds)
            wanted = {v.name: _array(w) for v, w in zip(graph.outputs, expected, strict=True)}
            if _differences(found, wanted):
                return False
    except Exception:
        return False
    return True


def variants(case: Any) -> Iterator[tuple[onnx.ModelProto, Sequence[int], str]]:
    """The model as it is, and with its scalar and vector inputs as constants, as a user would fix them."""
    names = [i.name for i in case.model.graph.input]
    yield case.model, range(len(names)), "pass"
    arrays = [_array(a) for a in case.data_sets[0][0]]
    fixed = [
        i for i, a in enumerate(arrays) if isinstance(a, np.ndarray) and (not a.ndim or (i and a.ndim == 1))
    ]
    if not fixed or len(names) != len(arrays):
        return
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.graph.initializer.extend(numpy_helper.from_array(arrays[i], names[i]) for i in fixed)
    free = [i for i in range(len(names)) if i not in fixed]
    inputs = [case.model.graph.input[i] for i in free]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    yield model, free, "fixed"


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic | bool | int | float) else value


def _differences(found: Mapping[str, Any], wanted: Mapping[str, Any], steps: int = 0) -> str:
    for name, want in wanted.items():
        difference = _difference(found[name], want, steps)
        if difference:
            return f"'{name}' {difference}"
    return ""


def _difference(got: Any, want: Any, steps: int = 0) -> str:
    if not isinstance(want, np.ndarray):
        return f"should be a {type(want).__name__}"
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"is {got.dtype}{list(got.shape)}, should be {want.dtype}{list(want.shape)}"
    exact = got.dtype.kind in "iub"
    same = (
        np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0) <= steps
        if exact
        else _close(got, want)
    )
    return "" if same else f"differs: {_sample(got, want)} should be {_sample(want, got)}"


def _close(got: Any, want: Any) -> bool:
    """From the end of float16's range on a number counts as infinite: HTP's saturate there."""
    a, b = (
        np.where(np.abs(v) >= LARGEST, np.sign(v) * np.inf, v)
        for v in (got.astype(float), want.astype(float))
    )
    finite = np.abs(b[np.isfinite(b)])
    scale = float(finite.max()) if finite.size else 1.0
    return bool(np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True))


def _sample(array: Any, other: Any) -> str:
    """Some elements, from the first that differs."""
    a, b = array.ravel(), other.ravel()
    different = np.flatnonzero(~np.isclose(a.astype(np.float64), b.astype(np.float64), 1e-2, equal_nan=True))
    start = int(different[0]) if different.size else 0
    return f"@{start} " + np.array2string(a[start : start + 4], precision=4)


def _first(error: Any) -> str:
    problem = error.problems[0] if error.problems else None
    return problem.reason if problem else error.message


# -- all cases -----------------------------------------------------------------------------------------------

_cases: list[Any] = []
_judge: list[Judge] = []


def _run(index: int) -> Outcome:
    warnings.simplefilter("ignore")
    if not _judge:
        _judge.append(Judge())
    return _judge[0].run(_cases[index])


def run_all(cases: Sequence[Any], workers: int = WORKERS) -> list[Outcome]:
    """In processes that inherit the cases; each has a child of its own for the library."""
    _cases[:] = cases
    os.environ["MALLOC_PERTURB_"] = (
        "85"  # what a kernel reads beyond its data shows as garbage, not as lucky zeros
    )
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        found = list(pool.imap_unordered(_run, range(len(cases)), chunksize=4))
    return sorted(found, key=lambda o: o.name)


# -- reports -------------------------------------------------------------------------------------------------


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    found = Counter(o.outcome for o in outcomes)
    return {k: found[k] for k in OUTCOMES}


def summary(outcomes: Sequence[Outcome], verbose: bool) -> str:
    lines = [f"{len(outcomes)} cases: " + ", ".join(f"{n} {k}" for k, n in counts(outcomes).items())]
    for kind in ("crash", "wrong", "failed", "special", "refused"):
        lines += [f"  {kind} {o.name}: {o.reason}" for o in outcomes if o.outcome == kind]
    if verbose:
        lines += [f"  {o.outcome} {o.name} {o.reason}" for o in outcomes]
    return "\n".join(lines)


def page(outcomes: Sequence[Outcome]) -> str:
    """The table that the documentation shows."""
    total = counts(outcomes)
    by_op: dict[str, list[Outcome]] = defaultdict(list)
    for o in outcomes:
        if o.outcome != "absent":
            by_op[o.op].append(o)
    rows = [_row(op, found) for op, found in sorted(by_op.items(), key=lambda g: g[0].lower())]
    return "\n".join([
        "# ONNX conformance on HTP",
        "",
        "Generated by `python -m tests.htp.conformance --write`: ONNX's own node tests, converted and run on",
        "libQnnHtp (QNN 2.47, the simulator, SM8650, floats in half precision). Of the cases that the",
        f"built-in backend passes, {total['pass']} pass as they are; {total['fixed']} more pass when the",
        f"small inputs that decide about shapes are given as constants; {total['refused']} are refused",
        f"with a reason; {total['special']} differ because they are about infinities and NaN, which HTP's",
        f"half precision does not have; {total['wrong']} are wrong;",
        f"{total['failed'] + total['crash']} fail otherwise.",
        "",
        "| op | passed | with constants | special | refused | reasons |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
        *rows,
        "",
    ])  # fmt: skip


def _row(op: str, outcomes: Sequence[Outcome]) -> str:
    n = counts(outcomes)
    reasons = Counter(_short(o) for o in outcomes if o.outcome == "refused")
    text = "; ".join(f"{r} (x{k})" if k > 1 else r for r, k in reasons.most_common(6))
    return f"| {op} | {n['pass']} | {n['fixed']} | {n['special']} | {n['refused']} | {text} |"


def _short(o: Outcome) -> str:
    return (o.reason.splitlines()[0] if o.reason else "").replace("|", "\\|")[:200]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-k", default="", metavar="REGEX", help="only cases whose name matches")
    parser.add_argument("-v", action="store_true", help="one line per case")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="every Nth case only")
    parser.add_argument(
        "--write", action="store_true", help="write the page and the baseline (needs all cases)"
    )
    args = parser.parse_args(argv)
    outcomes = run_all(collect(args.k)[:: args.sample])
    print(json.dumps([asdict(o) for o in outcomes]) if args.json else summary(outcomes, args.v))
    if args.write and not args.k and args.sample == 1:
        PAGE.write_text(page(outcomes), encoding="utf-8")
        BASELINE.write_text(json.dumps({k: counts(outcomes)[k] for k in ("pass", "fixed")}) + "\n")
    return 1 if any(o.outcome in ("wrong", "failed", "crash") for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
