"""Whether an op package library works: looked at, loaded, asked, and run against its reference.

What may die of the library happens in child processes: a crash or a hang becomes a finding.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from openqnn.analysis.op_package_sample import has_choices, sample_graph
from openqnn.analysis.op_package_symbols import told_symbols
from openqnn.emit import lower
from openqnn.errors import LibraryError, OpenQnnError
from openqnn.formats.elf import read_elf
from openqnn.ir import Array
from openqnn.ops.custom import CustomOp, custom_ops, dtypes_of
from openqnn.qnn.library import can_fork
from openqnn.qnn.op_package_library import OpPackageLibrary
from openqnn.qnn.op_package_probe import ProbedPackage, probe_op_package
from openqnn.runtime.cpu.executable import run_graph
from openqnn.vendor.remote import CompiledNet
from openqnn.vendor.target_setup import Target, resolved
from openqnn.worker.run_once import run_once

ENDING = "InterfaceProvider"
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `ok` is None where it could not be told."""

    what: str
    ok: bool | None
    message: str
    hint: str = ""


@dataclass
class PackageReport:
    """All findings about a library, up to the one that nothing can follow."""

    library: str
    provider: str = ""
    package: str = ""
    ops: tuple[str, ...] = ()
    findings: list[Finding] = field(default_factory=lambda: list[Finding]())

    @property
    def ok(self) -> bool:
        return all(f.ok is not False for f in self.findings)

    def add(self, what: str, ok: bool | None, message: str, hint: str = "") -> None:
        self.findings.append(Finding(what, ok, message, hint))

    def fail(self, what: str, error: OpenQnnError) -> None:
        advice = error.hint
        if "op-package check" in advice:  # this is it
            advice = "is its kernel written, in src/ops?" if "kernel" in advice else ""
        self.add(what, False, error.message, advice)


def check_op_package(
    path: str,
    provider: str = "",
    *,
    backend: str = "cpu",
    shapes: Mapping[str, Sequence[int]] | None = None,
    timeout: float = 30.0,
) -> PackageReport:
    """Looks at a library from outside in; operations that are declared are run on random data.

    `shapes` are those of inputs by name, where the usual ones do not suit an operation.
    """
    report = PackageReport(path, provider)
    if not _look(report, timeout):
        return report
    probed = _ask(report, timeout)
    if probed is None or probed.version[0] != 1:
        return report
    package = OpPackageLibrary(str(Path(path).absolute()), report.provider)
    target = Target(resolved(backend), packages=(package,))
    _check_declared(report)
    for name in probed.ops:
        _run(report, target, name, dict(shapes or {}), timeout)
    return report


def _look(report: PackageReport, timeout: float) -> bool:
    """Without loading it: for which machine it is, and which interface providers it has."""
    try:
        found = read_elf(report.library)
    except LibraryError as error:
        report.fail("file", error)
        return False
    here = platform.machine()
    fits = found.machine == here
    told = f"built for {found.machine}" + ("" if fits else f", and this machine is {here}")
    report.add("machine", fits, told, "" if fits else f"build it for {here}")
    if fits:
        report.add("symbols", *told_symbols(report.library, found, timeout))
    return _has_provider(report, found.given) and fits


def _has_provider(report: PackageReport, given: Sequence[str]) -> bool:
    providers = [name for name in given if name.endswith(ENDING)]
    if not report.provider and len(providers) == 1:
        report.provider = providers[0]
    if report.provider in given:
        report.add("provider", True, report.provider)
        return True
    told = ", ".join(providers) or "none"
    hint = "name one: LIBRARY:PROVIDER" if providers else 'it must be extern "C", and exported'
    report.add("provider", False, f"{report.provider or 'not named'}: there is {told}", hint)
    return False


def _ask(report: PackageReport, timeout: float) -> ProbedPackage | None:
    path = str(Path(report.library).absolute())
    try:
        probed = run_once(
            probe_op_package, path, report.provider, name=Path(path).name, fork=can_fork(), timeout=timeout
        )
    except OpenQnnError as error:
        report.fail("interface", error)
        return None
    version, right = ".".join(map(str, probed.version)), probed.version[0] == 1
    hint = "" if right else "generate the package again: interface 1.4"
    report.add("interface", right, f"version {version}" + ("" if right else "; libQnnCpu takes 1.4"), hint)
    report.package, report.ops = probed.name, probed.ops
    if right:
        report.add(
            "package", bool(probed.name and probed.ops), f"{probed.name}: {', '.join(probed.ops) or 'no ops'}"
        )
    return probed


def _check_declared(report: PackageReport) -> None:
    """What is declared and not in the library, which a model's node would not find."""
    declared = [op for op in custom_ops() if not op.seen]
    if declared and report.package not in {op.package for op in declared}:
        named = ", ".join(dict.fromkeys(op.package for op in declared))
        hint = "is the package named alike in its source and in the declaration?"
        report.add("declared", False, f"ops of {named}, and the library is {report.package}", hint)
    for op in declared:
        if op.package == report.package and op.declared.name not in report.ops:
            report.add(op.key, False, "declared, and not in the library", "generate and build it again")


def _signature(op: CustomOp) -> str:
    """An operation as one line: inputs, parameters, results, with their types."""
    told = lambda d: (
        f"{d.name}{'?' if not d.mandatory else ''}{'...' if d.repeated else ''}: "
        + ("|".join(t.label for t in dtypes_of(op, d)) or "any")
    )
    inputs = ", ".join(map(told, op.declared.inputs))
    params = ", ".join(map(told, op.declared.params))
    return f"({inputs}{'; ' if params else ''}{params}) -> {', '.join(map(told, op.declared.outputs))}"


def _run(
    report: PackageReport, target: Target, name: str, shapes: Mapping[str, Sequence[int]], timeout: float
) -> None:
    """One operation on random data, beside its reference where it has one."""
    what = f"{report.package}::{name}"
    op = next((o for o in custom_ops() if (o.package, o.declared.name) == (report.package, name)), None)
    if op is None:
        hint = "--custom_ops my_ops.py or --op_package_config package.xml declares it"
        report.add(what, None, "not run: its inputs and parameters are not declared", hint)
        return
    report.add(what, True, f"declared as {_signature(op)}")
    for everything in (False, True)[: 1 + has_choices(op)]:
        if not _ran(report, target, op, shapes, timeout, everything=everything):
            return


def _ran(
    report: PackageReport, target: Target, op: CustomOp, shapes: Mapping[str, Sequence[int]],
    timeout: float, *, everything: bool,
) -> bool:  # fmt: skip
    """One run on random data: with the least that must be given, or with all that can be."""
    what = op.key
    try:
        graph, feeds = sample_graph(op, shapes, everything=everything)
        reference = run_graph(graph, feeds) if op.function is not None else None
    except OpenQnnError as error:
        report.add(
            what, None, f"not run: {error.message}", "give shapes that suit it: --input_shape NAME=DIMS"
        )
        return False
    names: dict[str, str] = {}
    compiled = CompiledNet(
        lower(graph, names), target, timeout=timeout, keep=False
    )  # freeing it may crash, too
    try:
        results = compiled.run({names[name]: array for name, array in feeds.items()})
        found = {v.name: results[names[v.name]] for v in graph.outputs}
    except OpenQnnError as error:
        report.fail(what, error)
        return False
    finally:
        compiled.close()
    return _compare(report, what, found, reference, " with all that may be left out" if everything else "")


def _compare(
    report: PackageReport, what: str, found: Mapping[str, Array], reference: Mapping[str, Array] | None,
    how: str,
) -> bool:  # fmt: skip
    """Whether the library computes what the function does; there may be none."""
    if reference is None:
        report.add(what, True, f"validated and run{how}; there is no Python function to compare with")
        return True
    errors = [
        float(np.max(np.abs(found[n].astype(np.float64).reshape(r.shape) - r), initial=0.0))
        for n, r in reference.items()
    ]
    scale = max(1.0, *(float(np.abs(r).max(initial=0.0)) for r in reference.values()))
    good = max(errors) <= TOLERANCE * scale
    hint = "" if good else f"compare src/ops/{what.rpartition('::')[2]}.cpp with the function"
    report.add(what, good, f"largest difference from its function{how} {max(errors):.3g}", hint)
    return good
