"""The request of qnn-accuracy-debugger: all its options, from the command line and from a config file."""

from __future__ import annotations

import dataclasses
from argparse import Namespace
from dataclasses import dataclass
from typing import Any

from openqnn.cli.declare_ops import declare_ops
from openqnn.errors import InputError, UsageError
from openqnn.formats.json_text import read_json_object
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
    WholeRun,
)
from openqnn.options.field import options_of, read_options
from openqnn.options.packages import OwnOps

GROUPS = (
    DebuggerModes, DebuggerFolders, DebuggerModel, DiagnosisOptions, EngineStage, EngineRun,
    EngineQuantization, VerificationOptions, CompareEncodings, InspectionOptions, WholeRun,
    OwnOps,
)  # fmt: skip


@dataclass(frozen=True)
class DebuggerRequest:
    """Every group of options."""

    modes: DebuggerModes
    folders: DebuggerFolders
    model: DebuggerModel
    diagnosis: DiagnosisOptions
    stage: EngineStage
    run: EngineRun
    quantization: EngineQuantization
    verification: VerificationOptions
    encodings: CompareEncodings
    inspection: InspectionOptions
    whole: WholeRun
    own: OwnOps

    @property
    def options(self) -> dict[str, Any]:
        """Every option by name, for the options.json of a run."""
        made: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            if field.name != "modes":
                made |= dataclasses.asdict(getattr(self, field.name))
        return made

    def need(self, **given: object) -> None:
        """UsageError for what a mode cannot do without."""
        for flag, value in given.items():
            if not value:
                raise UsageError(f"--{flag} is required here")


def read_request(arguments: Namespace) -> DebuggerRequest:
    if arguments.args_config:
        _fill(arguments, arguments.args_config)
        declare_ops(arguments)
    read: list[Any] = [read_options(arguments, group) for group in GROUPS]
    return DebuggerRequest(*read)


def _fill(arguments: Namespace, path: str) -> None:
    """Puts what a config file says where the command line says nothing."""
    known = {
        spelling.lstrip("-"): (name, declared, group)
        for group in GROUPS
        for name, declared in options_of(group)
        for spelling in (*declared.names, name)
    }
    for key, value in read_json_object(path, "options").items():
        if key.lstrip("-") not in known:
            raise InputError(f"{path}: there is no option '{key}'")
        name, declared, group = known[key.lstrip("-")]
        usual = None if declared.repeats else getattr(group(), name)
        if getattr(arguments, name) in (usual, None):
            setattr(arguments, name, _typed(value, declared.repeats, declared.settings.get("nargs")))


def _typed(value: Any, repeats: bool, nargs: object) -> Any:
    """A value as argparse would have it: rows of words where an option takes several."""
    if not repeats:
        return value.split() if nargs == "+" and isinstance(value, str) else value
    rows = value if isinstance(value, list) else [value]
    return [str(row).split() if nargs == "+" and not isinstance(row, list) else row for row in rows]
