"""Algorithms that make a quantized graph better: they change weights and biases.

Some work on the graph in floating point before ranges are measured, the others on the one in fixed point.
They run in the order in which they stand here, whatever the order of their names was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from openqnn.errors import UsageError
from openqnn.ir import Array, Graph
from openqnn.quant.algorithms.equalise_layers import equalise_layers
from openqnn.quant.algorithms.gptq import round_by_gptq
from openqnn.quant.algorithms.smooth_activations import smooth_activations

Sample = Mapping[str, Any]
ADAROUND: Final = "adaround"
# From a graph in floating point to one that computes the same, and what was done.
BEFORE: Final[Mapping[str, Callable[..., tuple[Graph, list[str]]]]] = {
    "cle": equalise_layers,
    "smoothquant": smooth_activations,
}
# They change the second graph, which is the first one in fixed point. Rounding corrects biases too.
AFTER: Final[Mapping[str, Callable[..., list[str]]]] = {
    "bias_correction": partial(round_by_gptq, biases_only=True),
    ADAROUND: round_by_gptq,
}


def check_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """The names, of which there may be one without a list around it."""
    found = (names,) if isinstance(names, str) else tuple(names)
    for name in found:
        if name not in (*BEFORE, *AFTER):
            known = ", ".join((*BEFORE, *AFTER))
            raise UsageError(f"the quantizer has no algorithm '{name}'", hint=f"it has {known}")
    return found


def wants_samples_before(names: Container[str]) -> bool:
    """Whether something has to be measured before calibration."""
    return any(name in names for name in BEFORE)


def change_real(
    graph: Graph,
    names: Container[str],
    samples: Sequence[Sample] | None,
    given: Container[str],
    threads: int = 0,
) -> tuple[Graph, list[str]]:
    """What comes before calibration. Tensors in `given` have encodings and stay as they are."""
    said: list[str] = []
    for name, change in BEFORE.items():
        if name in names:
            graph, done = change(graph, samples, given, threads=threads)
            said += done
    return graph, said


def change_fixed(
    real: Graph,
    fixed: Graph,
    names: Container[str],
    samples: Sequence[Mapping[str, Array]],
    given: Collection[str],
    threads: int = 0,
) -> None:
    """What comes after it. One is enough: rounding does what bias correction does."""
    wanted = [change for name, change in AFTER.items() if name in names]
    if wanted:
        wanted[-1](real, fixed, samples, leave=given, threads=threads)
