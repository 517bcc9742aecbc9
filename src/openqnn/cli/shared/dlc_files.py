"""What the tools about DLC files have in common: the layers of a file as a table."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from openqnn.errors import ModelError

if TYPE_CHECKING:
    from openqnn.qnn.net import Net

COLUMNS = ("id", "name", "type", "inputs", "outputs", "output shapes", "encodings")


def dlc_nets(path: str) -> list[Net]:
    """The graphs of a DLC; ModelError for another file."""
    from openqnn.vendor.remote import read_dlc

    if not Path(path).is_file():
        raise ModelError(f"{path}: no such file")
    return read_dlc(path, timeout=600.0)


def layer_rows(net: Net) -> list[tuple[str, ...]]:
    """One row for each layer, with the shapes and encodings of what it computes."""
    from openqnn.ir import op_key

    rows: list[tuple[str, ...]] = []
    for number, node in enumerate(net.nodes):
        outputs = [net.tensors[name] for name in node.outputs]
        shapes = " ".join("x".join(map(str, t.dims)) for t in outputs)
        scales = " ".join(
            f"scale {t.quant.scales[0]:.6g} offset {t.quant.offsets[0]}"
            for t in outputs
            if t.quant is not None
        )
        inputs = " ".join(name for name in node.inputs if name)
        op = op_key(node.package, node.op)
        rows.append((str(number), node.name, op, inputs, " ".join(node.outputs), shapes, scales))
    return rows


def layers_csv(nets: list[Net]) -> str:
    file = io.StringIO()
    writer = csv.writer(file)
    for net in nets:
        writer.writerow(["graph", net.name])
        writer.writerow(COLUMNS)
        writer.writerows(layer_rows(net))
    return file.getvalue()


def print_dlc(path: str, nets: list[Net]) -> None:
    """What a DLC says of itself, then its inputs, outputs and layers."""
    from rich.markup import escape

    from openqnn.cli.report import console, table
    from openqnn.formats.dlc_metadata import read_metadata
    from openqnn.qnn import abi

    out = console()
    out.print(f"DLC info for: {escape(str(Path(path).absolute()))}")
    for key, text in read_metadata(path).items():
        out.print(f"{escape(key)}: {escape(text)}")
    for net in nets:
        out.print(f"\ngraph {escape(net.name)}: {len(net.nodes)} layers")
        for kind, names in (("input", net.inputs), ("output", net.outputs)):
            for tensor in (net.tensors[name] for name in names):
                shape = "x".join(map(str, tensor.dims))
                out.print(f"  {kind} {escape(tensor.name)}: {abi.dtype_name(tensor.dtype)} {shape}")
        rows = table(*COLUMNS, right=("id",))
        for row in layer_rows(net):
            rows.add_row(*map(escape, row))
        out.print(rows)
