"""The mode --tensor_inspection: golden and target tensors beside each other, as plots and tables."""

from __future__ import annotations

from pathlib import Path

from openqnn.cli.shared.accuracy_debugger.debugger_request import DebuggerRequest
from openqnn.cli.shared.accuracy_debugger.run_folder import RunFolder

MODE = "tensor_inspection"


def run_inspection_mode(request: DebuggerRequest) -> Path:
    from openqnn.analysis.accuracy.inspect_tensors import inspect_folders
    from openqnn.analysis.accuracy.tensor_folder import TensorFolder
    from openqnn.analysis.accuracy.verifiers import read_verifier
    from openqnn.formats.encodings import read_encodings
    from openqnn.qnn.net import qnn_name

    given = request.inspection
    request.need(golden_data=given.golden_data, target_data=given.target_data, verifier=given.verifier)
    verifiers = [read_verifier(words) for words in given.verifier]
    said = read_encodings(given.target_encodings).tensors if given.target_encodings else {}
    encodings = {qnn_name(name): entry for name, entry in said.items()}
    golden, target = TensorFolder(given.golden_data), TensorFolder(given.target_data, given.data_type)
    folder = RunFolder(request.folders.working_dir, MODE, request.folders.output_dirname)
    folder.write_options(request.options)
    with folder.logged():
        if not encodings:
            print("no density plots: --target_encodings has the calibrated ranges")
        found = inspect_folders(golden, target, verifiers, encodings, folder.path)
        left = len(set(golden.files) ^ set(target.files))
        print(f"{folder.path / 'summary.csv'}: {len(found)} tensors; {left} files have no partner")
    return folder.path
