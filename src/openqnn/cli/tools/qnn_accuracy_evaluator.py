"""qnn-accuracy-evaluator: the accuracy of a model on a dataset, and the best way to quantize it."""

from __future__ import annotations

from argparse import Namespace

from openqnn.cli.command import Tool
from openqnn.options.evaluator import EvaluatorConfig, EvaluatorMinimal, EvaluatorShared
from openqnn.options.packages import OwnOps


def run_accuracy_evaluator(arguments: Namespace, _: str) -> int:
    """0 where every inference has a result, 1 where one failed."""
    from openqnn.cli.shared.evaluation_request import run_evaluation

    report = run_evaluation(arguments)
    report.show()
    return report.code


TOOL = Tool(
    "qnn-accuracy-evaluator",
    "Rank all ways to quantize a model (minimal mode), or evaluate it on a dataset (config mode).",
    "-model PATH -preproc_file FILE [options] | -config YAML [options]",
    (EvaluatorMinimal, EvaluatorConfig, EvaluatorShared, OwnOps),
    run_accuracy_evaluator,
    examples=(
        "qnn-accuracy-evaluator -model model.onnx -preproc_file inputs.txt"
        " -target_arch x86_64-linux-clang -backend htp",
    ),
)
