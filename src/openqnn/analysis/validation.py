"""Every node of a graph put to a vendor library: what it refuses, in its own words, and what to do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from openqnn.emit import lower
from openqnn.errors import LibraryError, Problem, UnsupportedError
from openqnn.ir import DType, Graph
from openqnn.qnn.graph import float_nodes
from openqnn.qnn.library import find_library
from openqnn.qnn.net import Net
from openqnn.qnn.options import DeviceOptions
from openqnn.qnn.soc import ARCHITECTURES, find_soc, no_floats, soc_of_arch
from openqnn.targets.registry import HTP, find_target, target_of_library
from openqnn.vendor.validate import Verdict, validate_net

_SECONDS = 120.0
_LOG = "\n  log: "
_NOISE = re.compile(
    r"validateNativeOps|QnnBackend_validateOpConfig failed|Failed to validate op|exits with \d+"
    r"|Op specific validation failed|OpConfig validation failed|Please refer to the"
)
_PREFIX = re.compile(r"^(?:<[A-Z]>|\[QNN_\w+\])\s*")
_DATATYPE = re.compile(r"[Dd]ata ?[Tt]ype (0x[0-9a-fA-F]+)")
_ADVICE: tuple[tuple[str, str], ...] = (
    (
        r"crashed|gave no answer",
        "the library does not survive this node: compare its shapes and parameters with the operation's page",
    ),
    (
        r"OP_PACKAGE_NOT_FOUND|OP_NOT_SUPPORTED",
        "the backend has no such operation: run the model on another backend, or supply an op package",
    ),
    (
        r"doesn't support FP16",
        "quantize the model, or choose a chip whose HTP computes floats, such as SM8650",
    ),
    (r"[Dd]ata ?[Tt]ype", "change the type of this tensor, by a Cast or by quantizing it"),
    (r"[Rr]ank", "bring the tensor to a rank that the backend takes, by a Reshape before and after"),
    (r"dimension|[Ss]hape", "the shapes around this node do not fit: check the source model's shapes"),
    (r"Value", "change this parameter in the source model, or compute the same with other operations"),
)
_DEFAULT_ADVICE = "change this node in the source model, or run it on another backend"


@dataclass(frozen=True, slots=True)
class Validation:
    """What a library says of a graph: how many nodes of each op it was given, and which it refused.

    `warning` is what the library does not say, and would only be found when the graph is compiled.
    """

    library: str
    target: str
    nodes: int
    refused: tuple[Problem, ...]
    counts: Mapping[str, int]
    warning: str = ""

    @property
    def ok(self) -> bool:
        return not self.refused

    def refused_of(self, op: str) -> int:
        return sum(each.op == op for each in self.refused)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Validations by column: `cpu`, `v68`, `v69`...; `missing` has the columns without a library, and why."""

    columns: Mapping[str, Validation]
    missing: Mapping[str, str]

    @property
    def ops(self) -> list[str]:
        return sorted({op for column in self.columns.values() for op in column.counts})

    @property
    def ok(self) -> bool:
        return all(column.ok for column in self.columns.values())


def validate_graph(graph: Graph, library: str, soc: str | int | None = None) -> Validation:
    """Put every node to the library; for HTP in the form that HTP is given, for a SoC."""
    path = find_library(library)
    for_htp = target_of_library(path).compiles
    chip = find_soc(soc) if for_htp or soc is not None else None
    try:
        net = suited_net(graph, for_htp)
    except UnsupportedError as error:
        return _illegal(graph, path.name, str(chip), error)
    device = DeviceOptions(chip.model) if chip else None
    verdicts = validate_net(net, path, device, timeout=_SECONDS)
    counts = Counter(node.op for node in net.nodes)
    refused = tuple(_refused(each, net) for each in verdicts if not each.ok)
    target, warning = str(chip) if chip else "", ""
    floats = len(float_nodes(net))
    if chip is not None and not chip.has_floats and floats:
        nodes = "a node" if floats == 1 else f"{floats} nodes"
        warning = f"{nodes} in floating point may fail to compile; {no_floats(chip)}"
    return Validation(path.name, target, len(verdicts), refused, dict(counts), warning)


def validation_matrix(graph: Graph) -> Matrix:
    """The CPU library and every HTP architecture, each by a typical SoC."""
    columns: dict[str, Validation] = {}
    missing: dict[str, str] = {}
    wanted: list[tuple[str, str, int | None]] = [("cpu", "cpu", None)]
    wanted += [(f"v{arch}", "htp", soc_of_arch(arch).model) for arch in ARCHITECTURES]
    for name, library, soc in wanted:
        try:
            columns[name] = validate_graph(graph, library, soc)
        except LibraryError as error:
            missing[name] = error.message
    if not columns:
        raise LibraryError("no vendor library to ask", hint="pip install 'openqnn[qnn]'")
    return Matrix(columns, missing)


def suited_net(graph: Graph, for_htp: bool) -> Net:
    """The graph as records, for HTP in the forms that it takes."""
    return lower(find_target(HTP).adapt(graph) if for_htp else graph)


def _illegal(graph: Graph, library: str, target: str, error: UnsupportedError) -> Validation:
    """Nodes that no rule could put in a form that the backend takes; the library is not asked then."""
    refused = tuple(replace(each, hint=each.hint or _DEFAULT_ADVICE) for each in error.problems)
    counts = Counter(node.op for node in graph.nodes)
    return Validation(library, target, len(graph.nodes), refused, dict(counts))


def _refused(verdict: Verdict, net: Net) -> Problem:
    node, reason, hint = verdict.node, plain_reason(verdict.reason), advice(verdict.reason)
    halves = [name for name in (*node.inputs, *node.outputs) if name and _is_half(net, name)]
    if halves and hint == _DEFAULT_ADVICE:  # libQnnCpu says no word on it
        reason = f"{reason}; tensor '{halves[0]}' is float16"
        hint = "libraries without half precision need float32: convert with --float_bitwidth 32"
    return Problem(node.op, node.name, reason, hint, node.source)


def _is_half(net: Net, name: str) -> bool:
    return net.tensors[name].dtype == DType.FLOAT_16


def plain_reason(text: str) -> str:
    """The sentences in the library's log that say something, with types by name; else what the code means."""
    head, *log = text.split(_LOG)
    said = [" ".join(_PREFIX.sub("", entry).split()) for entry in log]  # an entry may have several lines
    useful = list(dict.fromkeys(entry for entry in said if entry and not _NOISE.search(entry)))
    if not useful or "crashed" in head or "gave no answer" in head:
        return re.sub(r"^.*?: (?=lib\w+\.so)", "", head).partition(" failed with ")[2] or head
    ended = (entry if entry[-1] in ":." else f"{entry}." for entry in useful)
    return _DATATYPE.sub(_named_type, " ".join(ended).replace("QNN_DATATYPE_", ""))


def advice(text: str) -> str:
    return next((hint for pattern, hint in _ADVICE if re.search(pattern, text)), _DEFAULT_ADVICE)


def _named_type(match: re.Match[str]) -> str:
    try:
        return f"data type {DType(int(match[1], 16)).label}"
    except ValueError:
        return match[0]
