"""A reduced graph as files that can go into a bug report: text, graph, DLC, Saver bundle, and the story."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from openqnn.analysis.reduce_net import Reduced
from openqnn.emit.graph_from_net import graph_of
from openqnn.errors import OpenQnnError, OutputError
from openqnn.formats.atomic import replacing
from openqnn.qnn.net import Net
from openqnn.vendor.remote import save_bundle, write_dlc

REPORT = "report.json"


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files that were written, and why others could not be."""

    files: tuple[Path, ...]
    missing: dict[str, str]


def write_bug_report(reduced: Reduced, folder: Path, about: dict[str, str]) -> Bundle:
    """Write everything that can be written; `about` says where it failed, for the report."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {folder}: {error.strerror}") from error
    net = reduced.net
    writers: dict[str, Callable[[Path], None]] = {
        "graph.txt": lambda path: _write_text(path, str(graph_of(net))),
        "graph.oqnn": lambda path: graph_of(net).save(path),
        "graph.dlc": lambda path: write_dlc([net], path),
        "saver": lambda path: save_bundle([net], path),
    }
    files: list[Path] = []
    missing: dict[str, str] = {}
    for name, write in writers.items():
        try:
            write(folder / name)
        except OutputError:
            raise
        except OpenQnnError as error:
            missing[name] = error.message.partition("\n")[0]
            _forget(folder / name)
        else:
            files.append(folder / name)
    report = folder / REPORT
    _write_text(report, json.dumps(_story(reduced, net, about) | {"missing": missing}, indent=2) + "\n")
    return Bundle((*files, report), missing)


def _story(reduced: Reduced, net: Net, about: dict[str, str]) -> dict[str, object]:
    return {
        **about,
        "failure": reduced.failure.kind,
        "message": reduced.failure.message.splitlines(),
        "nodes_before": reduced.nodes_before,
        "nodes": [{"name": node.name, "op": node.op, "source": node.source} for node in net.nodes],
        "trials": reduced.trials,
        "complete": reduced.complete,
    }


def _forget(path: Path) -> None:
    """What an earlier run left under this name would pass for a part of this one."""
    if path.is_file():
        path.unlink()


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())
