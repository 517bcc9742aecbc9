"""Verification: golden tensors against an engine's, one row for each, in the order of the graph."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from openqnn.analysis.accuracy.tensor_folder import TensorFolder, safe_path
from openqnn.analysis.accuracy.verifiers import ChosenVerifier, read_verifier, verifier_named, with_parameters
from openqnn.analysis.palette import REPORT_SCRIPT, REPORT_STYLE
from openqnn.errors import InputError
from openqnn.formats.atomic import replacing
from openqnn.formats.json_text import read_json_object
from openqnn.ir import Array
from openqnn.runtime.metrics import cosine

CLIP = "Relu"  # what the types of clips begin with
SPECIAL = ("Name", "LayerType", "Size", "Tensor_dims")
EXTREMES = ("golden_min", "golden_max", "target_min", "target_max")


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """What a graph says about a tensor: the op that makes it, its shape, its place, and what the clip gives
    that alone reads it."""

    op: str
    dims: tuple[int, ...]
    order: int
    clipped: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One tensor. A verifier that could not be computed has its reason in `notes`."""

    name: str
    golden: str
    op: str
    size: int
    dims: tuple[int, ...]
    values: Mapping[str, float]
    extremes: Mapping[str, float]
    notes: tuple[str, ...] = ()

    def record(self, extremes: bool) -> dict[str, Any]:
        shown = {"Name": self.name, "LayerType": self.op, "Size": self.size, "Tensor_dims": list(self.dims)}
        return {**shown, **self.values, **(self.extremes if extremes else {})}


@dataclass(frozen=True, slots=True)
class VerifierPlan:
    """Verifiers for all tensors, and for some tensors further ones."""

    default: Sequence[ChosenVerifier]
    special: Sequence[tuple[ChosenVerifier, tuple[str, ...]]] = field(default_factory=tuple)


def read_verifier_config(path: str) -> list[tuple[ChosenVerifier, tuple[str, ...]]]:
    """{verifier: {"parameters": {...}, "tensors": [[name, ...], ...]}}."""
    content = read_json_object(path)
    found: list[tuple[ChosenVerifier, tuple[str, ...]]] = []
    for name, said in content.items():
        if not isinstance(said, dict) or not isinstance(said.get("tensors", []), list):
            raise InputError(f"{path}: {name} is no object with parameters and tensors")
        unknown = set(said) - {"parameters", "tensors"}
        if unknown:
            raise InputError(f"{path}: {name} has unknown keys: {', '.join(sorted(unknown))}")
        chosen = with_parameters(verifier_named(name), said.get("parameters", {}))
        for group in said.get("tensors", []):
            names = tuple(group) if isinstance(group, list) else (str(group),)
            if len(names) != chosen.verifier.tensors:
                wanted = chosen.verifier.tensors
                raise InputError(f"{path}: {name} takes {wanted} tensors at a time, not {list(names)}")
            found.append((chosen, names))
    return found


def read_tensor_mapping(path: str) -> dict[str, str]:
    content = read_json_object(path)
    if not all(isinstance(v, str) for v in content.values()):
        raise InputError(f"{path}: a tensor mapping has names of tensors by names of tensors")
    return {str(k): str(v) for k, v in content.items()}


def read_graph_struct(path: str) -> dict[str, NodeInfo]:
    """The order and shapes of tensors from a graph struct, or from a model's net.json."""
    content = read_json_object(path)
    graph = content.get("graph")
    if isinstance(graph, dict):
        return _from_net(graph)
    if not all(isinstance(node, dict) for node in content.values()):
        raise InputError(f"{path}: no graph struct")
    return _in_order(
        (str(node.get("type", "")), node.get("input_tensors", {}), node.get("output_tensors", {}))
        for node in content.values()
    )


def _from_net(graph: Mapping[str, Any]) -> dict[str, NodeInfo]:
    tensors = graph.get("tensors", {})
    dims = lambda names: {n: tensors.get(n, {}).get("dims", ()) for n in names}
    return _in_order(
        (str(node.get("type", "")), dims(node.get("input_names", ())), dims(node.get("output_names", ())))
        for node in graph.get("nodes", {}).values()
    )


def _in_order(
    nodes: Iterable[tuple[str, Mapping[str, Sequence[int]], Mapping[str, Sequence[int]]]],
) -> dict[str, NodeInfo]:
    """Tensors by name, of nodes with their type and the shapes of what they read and make."""
    every = list(nodes)
    readers: dict[str, list[tuple[str, str]]] = {}
    for op, inputs, outputs in every:
        for name in inputs:
            readers.setdefault(name, []).append((op, next(iter(outputs), "")))
    found: dict[str, NodeInfo] = {}
    for op, _, outputs in every:
        for name, dims in outputs.items():
            behind = readers.get(name, [])
            clipped = behind[0][1] if len(behind) == 1 and behind[0][0].startswith(CLIP) else ""
            found[name] = NodeInfo(op, tuple(dims), len(found), clipped)
    return found


def graph_struct(net: Mapping[str, Any]) -> dict[str, Any]:
    """The graph struct of a net.json: nodes in order with their type, inputs and outputs."""
    graph = net.get("graph", {})
    tensors = graph.get("tensors", {})
    dims = lambda names: {n: tensors.get(n, {}).get("dims", []) for n in names}
    return {
        name: {
            "type": node.get("type", ""),
            "input_tensors": dims(node.get("input_names", ())),
            "output_tensors": dims(node.get("output_names", ())),
        }
        for name, node in graph.get("nodes", {}).items()
    }


def verify(
    golden: TensorFolder,
    found: TensorFolder,
    plan: VerifierPlan,
    mapping: Mapping[str, str],
    graph: Mapping[str, NodeInfo],
) -> list[Row]:
    """A row for each tensor that both have."""
    pairs = {n: o for n in found if (o := _golden_of(n, golden, mapping)) is not None}
    if not pairs:
        raise InputError(
            f"{found.folder} and {golden.folder} have no tensor in common",
            hint="give the names with --tensor_mapping, which the inference engine writes",
        )
    joined = {n: graph[n].clipped for n in pairs if n in graph and _is_clipped(n, pairs, found, graph)}
    pairs |= {n: pairs[other] for n, other in joined.items()}
    ranked = sorted(pairs, key=lambda n: graph[n].order if n in graph else len(graph))
    return [_row(name, pairs, golden, found, plan, graph, joined.get(name, "")) for name in ranked]


def _is_clipped(
    name: str, pairs: Mapping[str, str], found: TensorFolder, graph: Mapping[str, NodeInfo]
) -> bool:
    """Whether fixed point computes a tensor together with the clip behind it: both hold the same."""
    other = graph[name].clipped
    return other in pairs and np.array_equal(found.read(name), found.read(other))


def _golden_of(name: str, golden: TensorFolder, mapping: Mapping[str, str]) -> str | None:
    return golden.found(mapping[name]) if name in mapping else golden.found(name)


def _row(
    name: str, pairs: Mapping[str, str], golden: TensorFolder, found: TensorFolder, plan: VerifierPlan,
    graph: Mapping[str, NodeInfo], clipped: str,
) -> Row:  # fmt: skip
    info = graph.get(name, NodeInfo("", (), 0))
    values: dict[str, float] = {}
    notes = [f"fused with the clip behind it: it holds what '{clipped}' does"] if clipped else []
    real, target = golden.read(pairs[name]), found.read(name)
    for chosen, tensors in [*((c, (name,)) for c in plan.default), *plan.special]:
        if tensors[0] not in (name, pairs[name]):
            continue
        try:
            golds, founds = _arrays(chosen, tensors, name, (real, target), pairs, golden, found, info)
            values[chosen.name.lower()] = chosen(golds, founds)
        except InputError as error:
            notes.append(f"{chosen.name}: {error}")
    if np.isnan(real).any():
        notes.append(f"golden has {int(np.isnan(real).sum())} NaN, which are left out")
    return Row(
        name, pairs[name], info.op, target.size, info.dims, values, _extremes(real, target), tuple(notes)
    )


def _arrays(
    chosen: ChosenVerifier, tensors: Sequence[str], name: str, own: tuple[Array, Array],
    pairs: Mapping[str, str], golden: TensorFolder, found: TensorFolder, info: NodeInfo,
) -> tuple[list[Array], list[Array]]:  # fmt: skip
    """The tensors that a verifier takes; the engine's are put into the golden order of axes."""
    real, target = own
    if real.size != target.size:
        raise InputError(f"{target.size:,} numbers, golden has {real.size:,}")
    golds, founds = [_last_axis(real, info)], [_last_axis(in_golden_order(real, target, info.dims), info)]
    if chosen.verifier.tensors == 1 and len(tensors) == 1:
        return golds, founds
    if len(tensors) != chosen.verifier.tensors:
        raise InputError(f"takes {chosen.verifier.tensors} tensors at a time: name them in --verifier_config")
    for other in tensors[1:]:
        key = next((n for n, o in pairs.items() if other in (n, o)), None)
        if key is None:
            raise InputError(f"'{other}' is not in both folders")
        golds.append(golden.read(pairs[key]))
        founds.append(found.read(key))
    return golds, founds


def _last_axis(array: Array, info: NodeInfo) -> Array:
    return (
        array.reshape(-1, info.dims[-1])
        if info.dims and info.dims[-1] and array.size % info.dims[-1] == 0
        else array
    )


def in_golden_order(real: Array, target: Array, dims: Sequence[int]) -> Array:
    """An engine's tensor, whose channels come last, in the golden order, where that fits better."""
    if len(dims) < 3 or int(np.prod(dims)) != target.size:
        return target
    turned = np.moveaxis(target.reshape(tuple(dims)), -1, 1).reshape(-1)
    return turned if cosine(real, turned) > cosine(real, target) else target


def _extremes(real: Array, target: Array) -> dict[str, float]:
    ends = [np.nanmin, np.nanmax]
    with np.errstate(all="ignore"):
        numbers = [
            float(end(a)) if a.size and not np.isnan(a).all() else 0.0 for a in (real, target) for end in ends
        ]
    return dict(zip(EXTREMES, numbers, strict=True))


def write_verification(folder: Path, rows: Sequence[Row], verifiers: Sequence[str], extremes: bool) -> None:
    """A folder for each verifier with a CSV and an HTML file for each tensor, and the summary of all."""
    for verifier in verifiers:
        key = verifier.lower()
        for row in rows:
            if key in row.values:
                record = {**row.record(extremes=True), "Verifier": verifier, "Value": row.values[key]}
                place = folder / key / safe_path(row.name)
                _write(place.with_name(place.name + ".csv"), _csv([record], list(record)))
                _write(place.with_name(place.name + ".html"), _html(row.name, [record], list(record)))
    columns = [*SPECIAL, *(v.lower() for v in verifiers), *(EXTREMES if extremes else ())]
    records = [row.record(extremes) for row in rows]
    _write(folder / "summary.csv", _csv(records, columns))
    _write(folder / "summary.html", _html("Verification summary", records, columns))
    _write(folder / "summary.json", json.dumps(records, indent=2))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text.encode())


def _csv(records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def _html(title: str, records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    head = "".join(f"<th>{escape(c)}</th>" for c in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_shown(r.get(c, '')))}</td>" for c in columns) + "</tr>"
        for r in records
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{REPORT_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><script>{REPORT_SCRIPT}</script></body></html>"
    )


def _shown(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def plan_of(words: Sequence[Sequence[str]], config: str) -> VerifierPlan:
    """The verifiers of a command line and of a config file."""
    return VerifierPlan([read_verifier(w) for w in words], read_verifier_config(config) if config else ())
