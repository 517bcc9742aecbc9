"""The protocol of whatever runs a model: the built-in backend, Qualcomm's libraries, ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, Protocol, TypeAlias

from openqnn.errors import InputError, UsageError
from openqnn.ir import Array

ALL: Final = "all"
"""Every tensor that a runner can show."""
Outputs: TypeAlias = Sequence[str] | None
"""Names of tensors, `ALL`, or None for the outputs of the model."""


class Runner(Protocol):
    """Arrays by name in, arrays by name out. What is named besides the outputs are intermediate tensors."""

    @property
    def tensor_names(self) -> Sequence[str]:
        """The tensors that it can show: outputs first, then intermediate ones in the order of computation."""
        ...

    def run(self, inputs: Mapping[str, Array], /, outputs: Outputs = None) -> dict[str, Array]: ...

    def run_many(
        self, samples: Iterable[Mapping[str, Array]], /, outputs: Outputs = None
    ) -> Iterator[dict[str, Array]]:
        """Results of sample after sample, in order."""
        ...

    def close(self) -> None: ...


def chosen(outputs: Outputs, own: Sequence[str], shown: Sequence[str]) -> list[str]:
    """The names that `outputs` means, where a model has its `own` outputs and a runner shows more."""
    if outputs is None:
        return list(own)
    if outputs == ALL:
        return list(shown)
    if isinstance(outputs, str):
        hint = f"outputs=[{outputs!r}], or {ALL!r} for every tensor"
        raise UsageError(f"outputs is a list of names, not {outputs!r}", hint=hint)
    for name in outputs:
        if name not in shown:
            near = get_close_matches(name, shown) or list(shown)[:3]
            hint = f"what it shows: {', '.join(near)}" + (", ..." if len(near) < len(shown) else "")
            raise InputError(f"tensor '{name}' cannot be shown here", hint=hint)
    return list(outputs)
