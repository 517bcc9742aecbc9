"""How inputs and outputs of a graph for a library differ from those of the file that it came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from openqnn.qnn import abi
from openqnn.qnn.net import Net, NetTensor


@dataclass(frozen=True, slots=True)
class Suited:
    """A graph of a file as it suits a library; `remarks` say how its inputs and outputs differ now."""

    net: Net
    remarks: tuple[str, ...] = ()


def boundary_changes(net: Net, made: Net, target: str) -> Iterator[str]:
    """An application hands over what the compiled graph takes, which is not always what the file says."""
    for kind, names in (("input", net.inputs), ("output", net.outputs)):
        for name in names:
            old, new = net.tensors[name], made.tensors.get(name)
            what = f"graph '{net.name}', {kind} '{name}'"
            if new is None:
                yield f"{what}: no node reads it, and libraries leave it out"
            elif (old.dtype, old.dims) != (new.dtype, new.dims):
                yield f"{what}: {_form(old)} in the file, {_form(new)} for {target}"


def _form(tensor: NetTensor) -> str:
    return f"{abi.dtype_name(tensor.dtype)} {'x'.join(map(str, tensor.dims)) or 'scalar'}"
