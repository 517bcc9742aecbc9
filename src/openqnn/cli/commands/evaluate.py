"""openqnn evaluate: what each way to quantize a model costs in accuracy, on data of the user's."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass

from openqnn.cli.command import Command, Report
from openqnn.options.evaluator import EvaluatorConfig, EvaluatorMinimal, EvaluatorShared
from openqnn.options.field import option
from openqnn.options.packages import OwnOps


@dataclass(frozen=True)
class EvaluateModel:
    """The model, unless a config names it."""

    given: str = option("", "MODEL", nargs="?", metavar="MODEL", help="a model, or a folder of models")
    data: str = option(
        "", "--data", metavar="PATH", help="samples: an input list, a .npy or .npz file, or a folder of them"
    )


def run_evaluate(arguments: Namespace) -> Report:
    """0 where every inference has a result, 1 where one failed."""
    from openqnn.cli.shared.evaluation_request import run_evaluation

    return run_evaluation(arguments)


COMMAND = Command(
    "evaluate",
    "Rank all ways to quantize a model by what they cost in accuracy, or evaluate it by a config.",
    (EvaluateModel, OwnOps, EvaluatorMinimal, EvaluatorConfig, EvaluatorShared),
    run_evaluate,
    examples=("openqnn evaluate model.onnx --data samples/",),
)
