"""Mixed precision: the nodes that need it get more bits, and what that takes is told."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import openqnn
from openqnn.api.quantize import Outcome, quantize
from openqnn.errors import UsageError
from openqnn.ir import Array, DType, Graph
from openqnn.options.quantizer import ALGORITHMS
from openqnn.quant.algorithms import AFTER, BEFORE
from openqnn.quant.algorithms.mixed_precision import WIDE, described, units_of
from openqnn.quant.recipe import FLOAT, Recipe
from openqnn.runtime.metrics import decibels
from tests.models.fetch import model_path
from tests.models.sets import data_set, shapes_of
from tests.passes.harness import graph_of

MODEL = "mnist_conv"


@cache
def digits() -> Graph:
    return openqnn.convert(model_path(MODEL), input_shapes=shapes_of(MODEL))


def data() -> list[dict[str, Array]]:
    return data_set(MODEL).calibration[:4]


def sqnr(fixed: Graph) -> float:
    """On the samples that the search has seen."""
    with openqnn.Session(digits()) as real, openqnn.Session(fixed) as other:
        pairs = [(real.run(d), other.run(d)) for d in data()]
    signal = sum(float(np.square(a[n]).sum()) for a, _ in pairs for n in a)
    noise = sum(float(np.square(a[n] - b[n]).sum()) for a, b in pairs for n in a)
    return decibels(signal, noise)


def reached(**choices: Any) -> tuple[Graph, Outcome]:
    found: list[Outcome] = []
    made = quantize(digits(), data(), backend="cpu", outcome=found.append, **choices)
    return made, found[0]


@cache
def plain() -> float:
    return sqnr(quantize(digits(), data(), backend="cpu"))


def test_a_target_that_is_met_takes_nothing() -> None:
    _, found = reached(target_sqnr=plain() - 1)
    assert found.mixed is not None and found.mixed.reached and not found.mixed.promotions


def test_a_higher_target_takes_some_nodes() -> None:
    made, found = reached(target_sqnr=plain() + 4)
    mixed = found.mixed
    assert mixed is not None and mixed.reached and mixed.before < plain() + 4 <= mixed.after
    assert sqnr(made) == pytest.approx(mixed.after, abs=0.1)
    assert 0 < sum(p.share for p in mixed.promotions) <= 1 + 1e-6
    assert 0 < mixed.cost <= mixed.total
    for promotion in mixed.promotions:
        for name in promotion.unit.names:
            node = next(n for n in made.nodes if n.name == name)
            assert node.out.dtype is (DType.FLOAT_32 if promotion.width == FLOAT else DType.UFIXED_16)
    assert f"{mixed.after:.4g}" in described(mixed)


def test_more_takes_more_and_all_in_floats_is_exact() -> None:
    (_, some), (_, many) = reached(target_sqnr=plain() + 4), reached(target_sqnr=200.0)
    assert some.mixed is not None and many.mixed is not None
    assert {p.width for p in many.mixed.promotions} == {FLOAT} and many.mixed.after > 100
    assert sum(p.width == FLOAT for p in some.mixed.promotions) < len(many.mixed.promotions)


def test_an_activation_is_promoted_with_its_layer() -> None:
    """Behind a layer in 16 bits it would be rounded twice in 8: HTP has both in one op."""
    lines = """
        input %x: float32[1,4]
        const %w: float32[2,4] = [[1, 2, 3, 4], [4, 3, 2, 1]]
        const %a: float32[2] = [0.1, 0.2]
        %f: float32[1,2] = FullyConnected(%x, %w) keep_dims=false
        %p: float32[1,2] = Prelu(%f, %a)
        %r: float32[1,2] = Relu6(%p)
        %t: float32[1,2] = Tanh(%r)
        %y: float32[1,2] = ElementWiseAdd(%r, %t)
        output %y
    """
    units = units_of(graph_of(lines), Recipe(), {})
    assert [u.names for u in units] == [("f", "p", "r"), ("t",), ("y",)]


def test_a_target_takes_few_of_the_layers_with_activations() -> None:
    """It took all eleven nodes of mtcnn_onet but the last, when Prelu was apart from its layer."""
    name = "mtcnn_onet"
    graph, samples = (
        openqnn.convert(model_path(name), input_shapes=shapes_of(name)),
        data_set(name).calibration,
    )
    found: list[Outcome] = []
    quantize(graph, samples[:4], act_bw=8, outcome=found.append, target_sqnr=35.0)
    mixed = found[0].mixed
    assert mixed is not None and mixed.reached and mixed.before < 32
    assert sum(len(p.unit.names) for p in mixed.promotions) < 9 and mixed.after < 40


def test_a_metric_decides() -> None:
    """The largest difference of any score from floating point."""
    sample = data()[0]
    with openqnn.Session(digits()) as session:
        (real,) = session.run(sample).values()

    def closeness(run: Any) -> float:
        (found,) = run(sample).values()
        return -float(np.abs(found - real).max())

    _, before = reached(target_metric=(closeness, -1e9))
    assert before.mixed is not None and not before.mixed.promotions
    made, after = reached(target_metric=(closeness, before.mixed.after / 3))
    assert after.mixed is not None and after.mixed.reached and after.mixed.promotions
    with openqnn.Session(made) as session:
        assert closeness(session.run) >= before.mixed.after / 3


def test_the_best_is_given_where_the_target_is_out_of_reach() -> None:
    made, found = reached(target_metric=(lambda run: float(len(run(data()[0]))), 5.0))
    assert found.mixed is not None and not found.mixed.reached and found.mixed.after == 1
    assert made.outputs


def test_width_of_promotions() -> None:
    _, found = reached(act_bw=16, target_sqnr=200.0)
    assert found.mixed is not None and WIDE not in {p.width for p in found.mixed.promotions}


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"target_sqnr": 30.0, "target_metric": (len, 1.0)}, "contradict"),
        ({"target_sqnr": float("nan")}, "must be a number"),
        ({"target_metric": len}, "no pair"),
        ({"target_metric": (len, "high")}, "must be a number"),
        ({"target_metric": (lambda run: "good", 1.0)}, "what the metric gives is 'good'"),
        (
            {"algorithms": ("magic",)},
            "no algorithm 'magic'(.|\n)*cle, smoothquant, bias_correction, adaround",
        ),
    ],
)
def test_bad_input(choices: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        reached(**choices)


def test_data_is_needed() -> None:
    with pytest.raises(UsageError, match="needs data"):
        quantize(digits(), target_sqnr=30.0, float_fallback=True)
    with pytest.raises(UsageError, match="smoothquant needs data"):
        quantize(digits(), float_fallback=True, algorithms=("smoothquant",))


def test_the_tools_offer_what_there_is() -> None:
    assert set(ALGORITHMS) == {*BEFORE, *AFTER}


def test_samples_that_come_once_are_enough() -> None:
    """Algorithms before calibration look at the first ones; calibration sees them all the same."""
    choices: dict[str, Any] = {"backend": "cpu", "algorithms": ("cle", "smoothquant", "bias_correction")}
    once, again = quantize(digits(), iter(data()), **choices), quantize(digits(), data(), **choices)
    assert str(once) == str(again)
