"""qnn-accuracy-debugger: which layers depart from the framework, in the steps that QNN users know."""

from __future__ import annotations

from argparse import Namespace

from openqnn.cli.command import Tool
from openqnn.cli.shared.accuracy_debugger.debugger_request import GROUPS, read_request
from openqnn.options.accuracy_debugger import (
    CompareEncodings,
    DebuggerFolders,
    DebuggerModel,
    DebuggerModes,
    DiagnosisOptions,
    EngineQuantization,
    EngineRun,
    EngineStage,
    InspectionOptions,
    VerificationOptions,
)
from openqnn.options.packages import OwnOps


def run_accuracy_debugger(arguments: Namespace, _: str) -> int:
    from openqnn.cli.shared.accuracy_debugger.encodings_mode import run_encodings_mode
    from openqnn.cli.shared.accuracy_debugger.framework_diagnosis import run_framework_diagnosis
    from openqnn.cli.shared.accuracy_debugger.inference_engine import run_inference_engine
    from openqnn.cli.shared.accuracy_debugger.inspection_mode import run_inspection_mode
    from openqnn.cli.shared.accuracy_debugger.verification_mode import run_verification_mode
    from openqnn.cli.shared.accuracy_debugger.whole_run import run_whole

    request = read_request(arguments)
    name = request.folders.output_dirname
    if request.modes.framework_diagnosis:
        run_framework_diagnosis(request, name)
    elif request.modes.inference_engine:
        run_inference_engine(request, name)
    elif request.modes.verification:
        run_verification_mode(request, name=name)
    elif request.modes.compare_encodings:
        run_encodings_mode(request)
    elif request.modes.tensor_inspection:
        run_inspection_mode(request)
    else:
        run_whole(request)
    return 0


TOOL = Tool(
    "qnn-accuracy-debugger",
    "Find the layers at which a run on QNN departs from the framework. With a mode --help tells its options.",
    "[--framework_diagnosis | --inference_engine | --verification | --compare_encodings |"
    " --tensor_inspection] [options]",
    GROUPS,
    run_accuracy_debugger,
    modes={
        "--framework_diagnosis": (DebuggerModel, DebuggerFolders, DiagnosisOptions, OwnOps),
        "--inference_engine": (
            EngineStage, DebuggerModel, EngineRun, EngineQuantization, DebuggerFolders,
            OwnOps,
        ),
        "--verification": (DebuggerModes, VerificationOptions, DebuggerModel, DebuggerFolders),
        "--compare_encodings": (CompareEncodings, DebuggerFolders),
        "--tensor_inspection": (InspectionOptions, DebuggerFolders),
    },
    examples=(
        "qnn-accuracy-debugger -f onnx -m model.onnx -i x 1,3,224,224 x.raw -o y -r cpu"
        " -a x86_64-linux-clang -l inputs.txt",
    ),
)  # fmt: skip
