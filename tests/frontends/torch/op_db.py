"""torch's own samples of its ops, put to the frontend: right, wrong, or refused with a reason.

    python -m tests.frontends.torch.op_db [--samples 40] [--write] [op ...]

A sample counts as beyond QNN where an input or a result is empty, complex, sparse or no tensor: no graph can
be said for it. All other samples of an op must be right for the op to count. `--write` writes the counts and
the page docs/torch_ops.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import openqnn
from openqnn.errors import OpenQnnError

ROOT = Path(__file__).resolve().parents[3]
COUNTS = Path(__file__).parent / "op_db.json"
PAGE = ROOT / "docs/torch_ops.md"
MOST_SAMPLES = 40


@dataclass
class Outcome:
    """What became of the samples of one op."""

    right: int = 0
    beyond: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        if self.wrong:
            return "wrong"
        if self.reasons:
            return "refused"
        return "right" if self.right else "beyond"


class Call(torch.nn.Module):
    """An op on a sample: its tensors are the inputs, everything else is fixed."""

    def __init__(self, op: Any, sample: Any) -> None:
        super().__init__()
        self.op = op
        self.tensors: list[torch.Tensor] = []
        self.plan = self._planned((sample.input, *sample.args)), self._planned(sample.kwargs)

    def _planned(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            self.tensors.append(value.detach())
            return ("tensor", len(self.tensors) - 1)
        if isinstance(value, tuple | list):
            return ("list", type(value), [self._planned(v) for v in value])
        if isinstance(value, dict):
            return ("dict", {k: self._planned(v) for k, v in value.items()})
        return ("plain", value)

    def _filled(self, plan: Any, given: tuple[torch.Tensor, ...]) -> Any:
        if plan[0] == "tensor":
            return given[plan[1]]
        if plan[0] == "list":
            made = [self._filled(p, given) for p in plan[2]]
            return plan[1](*made) if hasattr(plan[1], "_fields") else plan[1](made)
        if plan[0] == "dict":
            return {k: self._filled(p, given) for k, p in plan[1].items()}
        return plan[1]

    def forward(self, *given: torch.Tensor) -> Any:
        return self.op(*self._filled(self.plan[0], given), **self._filled(self.plan[1], given))


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in leaves(v)]
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, tuple | list) else [value]


def is_beyond(values: list[Any]) -> bool:
    """Whether a graph cannot have these at its border."""
    tensors = [v for v in values if v is not None]
    plain = all(isinstance(v, torch.Tensor) and v.layout is torch.strided for v in tensors)
    return not plain or not tensors or any(v.numel() == 0 or v.is_complex() for v in tensors)


def try_sample(op: Any, sample: Any, outcome: Outcome) -> None:
    call = Call(op, sample)
    inputs = [v.clone() for v in call.tensors]
    try:
        expected = [v for v in leaves(call(*[v.clone() for v in inputs])) if v is not None]
    except Exception:  # torch itself refuses some
        outcome.beyond += 1
        return
    if (inputs and is_beyond(inputs)) or is_beyond(expected):
        outcome.beyond += 1
        return
    try:
        program = torch.export.export(call, tuple(inputs), strict=False)
    except Exception as e:
        outcome.reasons[f"torch.export: {type(e).__name__}"] += 1
        return
    try:
        compare(program, inputs, expected, outcome, "empty" in op.name)
    except OpenQnnError as e:
        outcome.reasons[reason_of(e)] += 1
    except Exception as e:  # a traceback is a fault
        outcome.wrong.append(f"{type(e).__name__}: {e}"[:300])


def reason_of(error: OpenQnnError) -> str:
    problems = getattr(error, "problems", ())
    return (problems[0].reason if problems else error.message).splitlines()[0][:160]


def compare(
    program: Any,
    inputs: list[torch.Tensor],
    expected: list[torch.Tensor],
    outcome: Outcome,
    any_numbers: bool,
) -> None:
    graph = openqnn.convert(program)
    names = [v.name for v in graph.inputs]
    session = openqnn.Session(graph)
    specs = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    feeds = {
        n: (v.float() if v.dtype is torch.bfloat16 else v).numpy()
        for n, v in zip(specs, inputs, strict=True)
        if n in names
    }
    got = [v for n, v in session.run(feeds).items() if not n.endswith(".out")]
    if len(got) != len(expected):
        outcome.wrong.append(f"{len(got)} results, {len(expected)} expected")
        return
    for a, b in zip(got, expected, strict=True):
        real = b.detach().float() if b.dtype is torch.bfloat16 else b.detach()
        fault = fault_of(
            np.asarray(a), real.numpy(), any_numbers, 1e-2 if b.dtype is torch.bfloat16 else 1e-3
        )
        if fault and any(v.is_floating_point() and v.isnan().any() for v in inputs):
            outcome.beyond += 1  # which of a number and NaN is larger is the library's to say
            return
        if fault:
            outcome.wrong.append(fault)
            return
    outcome.right += 1


def fault_of(got: np.ndarray, expected: np.ndarray, any_numbers: bool = False, rtol: float = 1e-3) -> str:
    if got.shape != expected.shape:
        return f"shape {got.shape}, {expected.shape} expected"
    if got.dtype.kind != expected.dtype.kind:
        return f"type {got.dtype}, {expected.dtype} expected"
    if any_numbers:  # of memory that is not set
        return ""
    if expected.dtype.kind != "f":
        same = np.array_equal(got, expected)
        return "" if same else f"{(got != expected).mean():.2%} of the elements differ"
    with np.errstate(all="ignore"):
        close = np.isclose(got, expected, rtol=rtol, atol=1e-4, equal_nan=True)
    if close.all():
        return ""
    at = np.unravel_index(np.argmin(close), close.shape)
    return f"{(~close).mean():.2%} differ, as {got[at]} from {expected[at]} at {at}"


def label(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def with_kept(found: dict[str, Outcome], file: str) -> dict[str, Outcome]:
    """The results of earlier runs with those of this one."""
    path = Path(file)
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept |= {n: [o.right, o.beyond, dict(o.reasons), o.wrong] for n, o in found.items()}
    path.write_text(json.dumps(kept))
    return {n: Outcome(r, b, Counter(why), wrong) for n, (r, b, why, wrong) in kept.items()}


def sweep(wanted: list[str], most: int, part: str = "0/1", keep: str = "") -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    first, step = (int(v) for v in part.split("/"))
    for op in op_db[first::step]:
        if torch.float32 not in op.dtypes or (wanted and label(op) not in wanted):
            continue
        outcome = found[label(op)] = Outcome()
        torch.manual_seed(0)
        start = time.monotonic()
        try:
            samples = op.sample_inputs("cpu", torch.float32, requires_grad=False)
            for index, sample in enumerate(samples):
                if index >= most:
                    break
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    try_sample(op, sample, outcome)
        except Exception as e:
            outcome.reasons[f"its samples: {type(e).__name__}"] += 1
        took = time.monotonic() - start
        why = outcome.wrong[:1] or list(outcome.reasons)[:1]
        counts = f"{outcome.verdict:8} {outcome.right:3} {outcome.beyond:3} {took:5.1f}s"
        print(f"{label(op):45} {counts} {' '.join(why)}", flush=True)
        if keep:
            with_kept({label(op): outcome}, keep)
    return found


def page(found: dict[str, Outcome]) -> str:
    counts = Counter(o.verdict for o in found.values())
    version = torch.__version__.split("+")[0]
    lines = [
        "# PyTorch ops", "",
        f"torch {version} has samples of its own for {len(found)} ops with float32 inputs. They are",
        f"exported, converted and run on the built-in backend, up to {MOST_SAMPLES} samples an op:",
        f"{counts['right']} ops give torch's numbers on all samples, {counts['wrong']} give wrong ones,",
        f"{counts['refused']} are refused with a reason on at least one sample, and {counts['beyond']}",
        "have only samples that no QNN graph is for (empty, complex or sparse tensors, none at all).",
        "Samples of that kind are not counted for other ops, nor are those with NaN among their inputs where",
        "the result differs. A number is right within 0.1 % or 0.0001.", "",
        "`python -m tests.frontends.torch.op_db --write` writes this page; the count may only rise.",
        "", "| op | verdict | right | beyond QNN | reason |", "| --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for name, o in sorted(found.items()):
        why = "; ".join([*o.wrong[:1], *o.reasons])[:200].replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {name} | {o.verdict} | {o.right} | {o.beyond} | {why} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--samples", type=int, default=MOST_SAMPLES)
    parser.add_argument("--part", default="0/1", help="every n-th op from the i-th on: 0/2")
    parser.add_argument("--keep", default="", help="a JSON file that results are added to")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    found = sweep(options.ops, options.samples, options.part, options.keep)
    found = with_kept(found, options.keep) if options.keep else found
    counts = Counter(o.verdict for o in found.values())
    print(dict(counts))
    if options.write:
        COUNTS.write_text(json.dumps({"right": counts["right"], "wrong": counts["wrong"]}) + "\n")
        PAGE.write_text(page(found), encoding="utf-8")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
