"""The mode --compare_encodings: a model's encodings against AIMET's, as an Excel sheet."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.cli.shared.accuracy_debugger.debugger_request import DebuggerRequest
from openqnn.cli.shared.accuracy_debugger.run_folder import RunFolder
from openqnn.errors import UsageError
from openqnn.formats.atomic import replacing

if TYPE_CHECKING:
    from openqnn.formats.encodings import TensorEncoding

MODE = "compare_encodings"
SHOWN = 5


def run_encodings_mode(request: DebuggerRequest) -> Path:
    from openqnn.analysis.accuracy.compare_encodings import diff_encodings, encodings_sheet
    from openqnn.formats.encodings import Kind, read_encodings, write_encodings

    given = request.encodings
    request.need(input=given.input, aimet_encodings_json=given.aimet_encodings_json)
    decimals = _decimals(request.quantization.precision)
    kinds = [Kind.PARAM] if given.params_only else [Kind.ACTIVATION] if given.activations_only else list(Kind)
    theirs = read_encodings(given.aimet_encodings_json)
    ours = _extracted(given.input)
    folder = RunFolder(request.folders.working_dir, MODE, request.folders.output_dirname)
    folder.write_options(request.options)
    with folder.logged():
        found = diff_encodings(
            ours, theirs.tensors.values(), decimals=decimals, kinds=kinds, node=given.specific_node
        )
        with replacing(folder.path / "encodings_diff.xlsx") as file:
            file.write(encodings_sheet(found))
        write_encodings(folder.path / "extracted_encodings.json", ours, "0.6.1")
        _warn("in QNN but not in AIMET", found.only_ours)
        _warn("in AIMET but not in QNN", found.only_theirs)
        wrong = [d for d in found.tensors if d.differing]
        for each in found.tensors if given.specific_node else ():
            print(f"{each.name}: {each.status}\n  QNN {dict(each.ours)}\n  AIMET {dict(each.theirs)}")
        place = folder.path / "encodings_diff.xlsx"
        print(f"{place}: {len(found.tensors)} encodings compared, {len(wrong)} differ")
    return folder.path


def _decimals(text: str) -> int:
    from openqnn.analysis.accuracy.compare_encodings import EXACT

    if not text:
        return EXACT
    if not text.isdigit():
        raise UsageError(f"--precision {text}: here it is a number of decimals", hint="--precision 6")
    return int(text)


def _extracted(path: str) -> list[TensorEncoding]:
    from openqnn.analysis.sources import read_net
    from openqnn.emit.graph_from_net import graph_of
    from openqnn.quant.to_encodings_file import encodings_of

    return encodings_of(graph_of(read_net(path)), shared=True)


def _warn(what: str, names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        print(f"warning: {what}: {', '.join(names[:SHOWN])}{more}", file=sys.stderr)
