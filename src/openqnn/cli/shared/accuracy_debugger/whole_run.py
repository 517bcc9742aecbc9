"""The whole run: diagnosis, engine and verification one after the other, or layer by layer."""

from __future__ import annotations

import json
from pathlib import Path

from openqnn.cli.shared.accuracy_debugger.debugger_request import DebuggerRequest
from openqnn.cli.shared.accuracy_debugger.framework_diagnosis import read_inputs, run_framework_diagnosis
from openqnn.cli.shared.accuracy_debugger.inference_engine import check_runtime, run_inference_engine
from openqnn.cli.shared.accuracy_debugger.run_folder import RunFolder
from openqnn.cli.shared.accuracy_debugger.snooping import graphs_of, run_snooping
from openqnn.cli.shared.accuracy_debugger.verification_mode import run_verification_mode
from openqnn.cli.shared.view_beside import write_graph_beside
from openqnn.errors import UsageError
from openqnn.formats.atomic import replacing

MODE = "wrapper"
ONESHOT = "oneshot-layerwise"


def run_whole(request: DebuggerRequest) -> None:
    """All steps. What was computed before one fails stays in its folder."""
    from openqnn.analysis.accuracy.verifiers import read_verifier

    _check(request)
    for words in request.verification.default_verifier:
        read_verifier(words)
    folder = RunFolder(request.folders.working_dir, MODE, request.folders.output_dirname)
    folder.write_options(request.options)
    with folder.logged():
        given = request.verification.golden_output_reference_directory
        golden = Path(given) if given else run_framework_diagnosis(request)
        if request.whole.debugging_algorithm == ONESHOT:
            _oneshot(request, golden)
        else:
            run_snooping(request, golden)
        if request.whole.deep_analyzer:
            _dissect(request, folder.path)


def _check(request: DebuggerRequest) -> None:
    said, whole = request.verification, request.whole
    request.need(
        model_path=request.model.model_path, input_tensor=request.model.input_tensor,
        runtime=request.stage.runtime, input_list=request.stage.input_list,
        default_verifier=said.default_verifier,
    )  # fmt: skip
    if (whole.start_layer or whole.end_layer) and whole.debugging_algorithm == ONESHOT:
        raise UsageError(
            "--start_layer and --end_layer are for layerwise and cumulative-layerwise",
            hint="--debugging_algorithm cumulative-layerwise",
        )
    check_runtime(request)
    read_inputs(request.model.input_tensor)


def _oneshot(request: DebuggerRequest, golden: Path) -> None:
    engine = run_inference_engine(request, golden=golden)
    shown = lambda path: "" if path is None else str(path)
    run_verification_mode(
        request,
        str(golden),
        str(engine.results),
        shown(engine.tensor_mapping),
        shown(engine.graph_struct),
        inspect=request.whole.enable_tensor_inspection,
    )


def _dissect(request: DebuggerRequest, folder: Path) -> None:
    """The report of `openqnn debug` on the same sample: what the original's analyzer does is not said."""
    from openqnn.analysis.accuracy.debug import debug_accuracy
    from openqnn.analysis.accuracy.debug_page import debug_page
    from openqnn.analysis.accuracy.debug_report import report_json
    from openqnn.viewer.read_overlays import record_overlays

    real, fixed = graphs_of(request)
    sample = {n.removesuffix(":0"): a for n, a in read_inputs(request.model.input_tensor).items()}
    report = debug_accuracy(real, fixed, [sample])
    page = folder / "debug.html"
    view = write_graph_beside(page, fixed, fixed.name, record_overlays(json.loads(report_json(report))))
    with replacing(page) as file:
        file.write(debug_page(report, view).encode())
    print(page)
