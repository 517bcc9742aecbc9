"""Debugging of accuracy: two graphs and samples in, a ranked report out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import inf

from openqnn.analysis.accuracy.attribution import Attribution, Kept, attribute_errors
from openqnn.analysis.accuracy.debug_report import DebugReport, make_report
from openqnn.analysis.accuracy.diagnose import diagnose_layers
from openqnn.analysis.accuracy.layer_errors import measure_layers
from openqnn.analysis.accuracy.layers import Layer
from openqnn.analysis.accuracy.stored_results import ResultStore
from openqnn.analysis.accuracy.usual import by_name, usual_graph
from openqnn.ir import Array, Graph

ATTRIBUTED = 2  # samples that attribution looks at
ALONE = 8  # layers whose errors are left out one by one
NO_CALIBRATION = "calibration of the same layers was not possible: thresholds are fixed"
MOST_KEPT = 512 << 20  # bytes of errors that are kept for it
Stage = Callable[[str, int, int], None]


def debug_accuracy(
    real: Graph,
    fixed: Graph,
    samples: Sequence[Mapping[str, Array]],
    *,
    usual: Graph | None = None,
    attribution: bool = True,
    stage: Stage | None = None,
    store: ResultStore | None = None,
) -> DebugReport:
    """Where a graph in fixed point departs from the one in floating point that it was made from, and why.

    Layers that are broken come first, by how far they are from what calibration on these samples gives;
    the others by the error that they add. `usual` is what calibration gives, where that is known. With a
    `store`, which stands for just these graphs, samples and choices, what it has is not computed again.
    """
    said = stage or (lambda *_: None)
    usual = usual or usual_graph(real, fixed, samples)
    encodings = {name: v.encoding for name, v in by_name(usual).items() if v.encoding is not None}
    keep = _kept(fixed, len(samples)) if attribution else 0
    measured = measure_layers(real, fixed, samples, encodings, lambda d, n: said("layers", d, n), keep, store)
    ranked = diagnose_layers(measured, fixed, usual)
    found = _Attributing(store, said)
    notes = () if usual is not None else (NO_CALIBRATION,)
    if attribution and measured.complete:
        kept = Kept(list(islice(samples, len(measured.errors))), measured.errors)
        try:
            found.run(real, measured.pairing.layers, kept, [d.layer for d in ranked[:ALONE]])
        except KeyboardInterrupt:
            notes += ("attribution was interrupted",)
    return make_report(fixed, measured, ranked, found.known, notes)


class _Attributing:
    """Attribution, as far as a store does not have it, and what is known of it when it is interrupted."""

    def __init__(self, store: ResultStore | None, said: Stage) -> None:
        self.store, self.said = store, said
        self.known = Attribution({}, {}, inf)

    def run(self, real: Graph, layers: Sequence[Layer], kept: Kept, worst: Sequence[Layer]) -> None:
        if self.store is not None:
            self.known, complete = self.store.attribution()
            if complete:
                return
        tell = lambda done, total: self.said("attribution", done, total)
        found = attribute_errors(real, layers, kept, worst, tell, self.known.only, self._keep)
        self._keep(found, complete=True)

    def _keep(self, found: Attribution, complete: bool = False) -> None:
        self.known = found
        if self.store is not None:
            self.store.keep_attribution(found, complete)


def _kept(fixed: Graph, count: int) -> int:
    size = sum(4 * v.size for v in fixed.values() if not v.is_constant)
    return max(1, min(ATTRIBUTED, count, MOST_KEPT // max(size, 1)))
