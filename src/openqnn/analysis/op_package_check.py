"""Whether an op package library works: looked at, loaded, asked, and run against its reference.

What may die of the library happens in child processes: a crash or a hang becomes a finding.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.analysis.op_package_symbols import told_symbols
from openqnn.emit import lower
from openqnn.errors import LibraryError, OpenQnnError
from openqnn.formats.elf import read_elf
from openqnn.ir import Array, DType, Graph, Node, Shape, Value
from openqnn.ops import OPS, Builder, complete
from openqnn.ops.custom import CustomOp, custom_ops, dtypes_of, results_of
from openqnn.ops.schema import REQUIRED, Param
from openqnn.qnn.library import can_fork
from openqnn.qnn.op_package_library import OpPackageLibrary
from openqnn.qnn.op_package_probe import ProbedPackage, probe_op_package
from openqnn.runtime.cpu.executable import run_graph
from openqnn.vendor.remote import CompiledNet
from openqnn.vendor.target_setup import Target, resolved
from openqnn.worker.run_once import run_once

ENDING = "InterfaceProvider"
TOLERANCE = 1e-4
_SHAPES: Mapping[int, Shape] = {0: (), 1: (8,), 2: (2, 8), 3: (1, 4, 8), 4: (1, 4, 4, 3), 5: (1, 2, 3, 4, 2)}


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
        self.add(what, False, error.message, error.hint)


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
    try:
        graph, feeds = sample_graph(op, shapes)
        reference = run_graph(graph, feeds) if op.function is not None else None
    except OpenQnnError as error:
        report.add(
            what, None, f"not run: {error.message}", "give shapes that suit it: --input_shape NAME=DIMS"
        )
        return
    compiled = CompiledNet(lower(graph), target, timeout=timeout, keep=False)  # freeing it may crash, too
    try:
        found = compiled.run(feeds)
    except OpenQnnError as error:
        report.fail(what, error)
        return
    finally:
        compiled.close()
    _compare(report, what, found, reference)


def _compare(
    report: PackageReport, what: str, found: Mapping[str, Array], reference: Mapping[str, Array] | None
) -> None:
    if reference is None:
        report.add(what, True, "validated and run; there is no Python function to compare with")
        return
    errors = [
        float(np.max(np.abs(found[n].astype(np.float64).reshape(r.shape) - r), initial=0.0))
        for n, r in reference.items()
    ]
    scale = max(1.0, *(float(np.abs(r).max(initial=0.0)) for r in reference.values()))
    good = max(errors) <= TOLERANCE * scale
    hint = "" if good else f"compare src/ops/{what.rpartition('::')[2]}.cpp with the function"
    report.add(what, good, f"largest difference from its function {max(errors):.3g}", hint)


def sample_graph(op: CustomOp, shapes: Mapping[str, Sequence[int]]) -> tuple[Graph, dict[str, Array]]:
    """A graph of one operation, and random numbers for its inputs."""
    graph, rng = Graph("check"), np.random.default_rng(0)
    inputs, feeds = list[Value](), dict[str, Array]()
    for d in op.declared.inputs:
        if not d.mandatory and not d.repeated:
            continue
        types = dtypes_of(op, d)
        dtype = next((t for t in types if not t.is_fixed), DType.FLOAT_32)
        rank = 4 if d.fixed_rank is None else d.fixed_rank
        shape = tuple(shapes.get(d.name, _SHAPES.get(rank, (1,) * rank)))
        data = rng.normal(size=shape) if dtype.is_float else rng.integers(0, 2, shape)
        feeds[d.name] = data.astype(dtype.numpy)
        if d.static:
            inputs.append(Value(d.name, dtype, shape, data=feeds.pop(d.name)))
        else:
            inputs.append(graph.add_input(d.name, dtype, shape))
    _add(graph, op, inputs)
    return graph, feeds


def _some_value(param: Param) -> Any:
    return param.member(0) if param.members else (1,) if param.is_tensor else 1


def _add(graph: Graph, op: CustomOp, inputs: list[Value]) -> None:
    needed = [p for p in OPS[op.key].params if p.default is REQUIRED]
    params: dict[str, Any] = {p.name: _some_value(p) for p in needed}
    builder = Builder(graph)
    builder.stem = "out"
    allowed = [dtypes_of(op, d) for d in op.declared.outputs]
    dtypes = [next((t for t in a if not t.is_fixed), DType.FLOAT_32) for a in allowed]
    made = [inputs[0].shape] * len(allowed)
    if op.function is not None:
        full = complete(OPS[op.key], dict(params), inputs[0].rank, op.key)
        made = [tuple(a.shape) for a in results_of(op, Node(op.key, "out", list(inputs), [], full))]
    for value in builder.many(
        op.declared.name, *inputs, package=op.package, shapes=made, dtypes=dtypes, **params
    ):
        graph.add_output(value)
