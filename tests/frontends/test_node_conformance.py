"""The count of ONNX node tests that pass may only rise; none may be wrong or crash."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.frontends.conformance import BASELINE, ROOT, Outcome, counts


def test_node_conformance() -> None:
    # A process of its own: it forks workers, which a process with ONNX Runtime's threads must not do.
    done = subprocess.run(
        [sys.executable, "-m", "tests.frontends.conformance", "--json"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.stdout, done.stderr
    outcomes = [Outcome(**o) for o in json.loads(done.stdout)]
    bad = [f"{o.name}: {o.outcome}: {o.reason}" for o in outcomes if o.outcome in ("wrong", "crash")]
    assert not bad, "\n".join(bad)
    unexplained = [o.name for o in outcomes if o.outcome == "refused" and not o.reason.strip()]
    assert not unexplained
    baseline = json.loads(BASELINE.read_text(encoding="utf-8"))
    found = counts(outcomes)
    assert found["pass"] >= baseline["pass"], found
    assert found["pass"] + found["fixed"] >= baseline["pass"] + baseline["fixed"], found
