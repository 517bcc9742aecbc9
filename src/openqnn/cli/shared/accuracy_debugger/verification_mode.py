"""The mode --verification: golden tensors against the engine's, with the reports of both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.shared.accuracy_debugger.debugger_request import DebuggerRequest
from openqnn.cli.shared.accuracy_debugger.run_folder import RunFolder

if TYPE_CHECKING:
    from openqnn.analysis.accuracy.tensor_folder import TensorFolder
    from openqnn.analysis.accuracy.verification import Row
    from openqnn.analysis.accuracy.verifiers import ChosenVerifier

MODE = "verification"


def run_verification_mode(
    request: DebuggerRequest,
    golden: str = "",
    found: str = "",
    mapping: str = "",
    struct: str = "",
    name: str = "",
    inspect: bool = False,
) -> Path:
    """Compares two folders; what is not given here is as the command line says."""
    from openqnn.analysis.accuracy.tensor_folder import TensorFolder
    from openqnn.analysis.accuracy.verification import (
        plan_of,
        read_graph_struct,
        read_tensor_mapping,
        verify,
        write_verification,
    )

    said = request.verification
    golden, found = golden or said.golden_output_reference_directory, found or said.inference_results
    request.need(
        default_verifier=said.default_verifier, golden_output_reference_directory=golden,
        inference_results=found,
    )  # fmt: skip
    plan = plan_of(said.default_verifier, said.verifier_config)
    mapping = mapping or said.tensor_mapping
    struct = struct or said.graph_struct or said.qnn_model_json_path
    first, second = TensorFolder(golden), TensorFolder(found)
    folder = RunFolder(request.folders.working_dir, MODE, name)
    folder.write_options(request.options)
    with folder.logged():
        pairs = read_tensor_mapping(mapping) if mapping else {}
        graph = read_graph_struct(struct) if struct else {}
        rows = verify(first, second, plan, pairs, graph)
        names = [c.name for c in [*plan.default, *(c for c, _ in plan.special)]]
        write_verification(folder.path, rows, list(dict.fromkeys(names)), extremes=inspect)
        if inspect:
            _inspect(rows, first, second, plan.default, folder.path / "tensor_inspection")
        _tell(rows, second, folder.path)
    return folder.path


def _tell(rows: Sequence[Row], found: TensorFolder, folder: Path) -> None:
    for row in rows:
        for note in row.notes:
            print(f"note: {row.name}: {note}")
    left = len(found) - len(rows)
    print(f"{folder / 'summary.csv'}: {len(rows)} tensors; {left} have no golden one")


def _inspect(
    rows: Sequence[Row], first: TensorFolder, second: TensorFolder, verifiers: Sequence[ChosenVerifier],
    folder: Path,
) -> None:  # fmt: skip
    from openqnn.analysis.accuracy.inspect_tensors import inspect_tensor
    from openqnn.analysis.accuracy.verification import in_golden_order

    for row in rows:
        golden, target = first.read(row.golden), second.read(row.name)
        if golden.size == target.size:
            turned = in_golden_order(golden, target, row.dims)
            inspect_tensor(row.name, golden, turned, verifiers, {}, folder)
