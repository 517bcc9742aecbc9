"""Arrays bound to a graph's inputs and outputs, ready to be run many times, at once or in the background."""

from __future__ import annotations

import ctypes as c
import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from openqnn.errors import BackendError, InputError, UsageError
from openqnn.qnn import abi
from openqnn.qnn.api import Api
from openqnn.qnn.marshal import set_buffer
from openqnn.qnn.net import Array, NetTensor, TensorKind
from openqnn.qnn.op_package_library import of_a_kernel

_Status = c.c_uint64  # a struct of one number, which is passed like the number itself
_SPARE = 4  # elements behind an output: libQnnCpu's BoxWithNmsLimit always writes a row too many
_NOTIFY = c.CFUNCTYPE(None, c.c_void_p, _Status)


class Slot:
    """One input or output of a compiled graph: its record, and the struct that the library knows it by."""

    __slots__ = ("struct", "tensor")

    def __init__(self, tensor: NetTensor, struct: abi.Tensor) -> None:
        self.tensor, self.struct = tensor, struct

    def empty(self) -> Array:
        if self.tensor.kind is not TensorKind.APP_READ:
            kind = self.tensor.kind.name
            raise BackendError(f"output '{self.tensor.name}' is of kind {kind}, not APP_READ")
        count = math.prod(self.tensor.dims)
        room = np.zeros(count + _SPARE, abi.numpy_dtype(self.tensor.dtype))
        return room[:count].reshape(self.tensor.dims)

    def checked(self, array: Array) -> Array:
        wanted, dims = abi.numpy_dtype(self.tensor.dtype), self.tensor.dims
        if array.dtype != wanted or array.shape != dims:
            name, given = self.tensor.name, f"{array.dtype} {list(array.shape)}"
            raise InputError(f"input '{name}' is {wanted} {list(dims)}, but the array is {given}")
        return np.ascontiguousarray(array)


class Binding:
    """The arguments of graphExecute, and the arrays behind them.

    `inputs` and `outputs` are the bound arrays: fill the ones in place, run, read the others. Input arrays
    that were given contiguous are bound as they are; others are copied.
    """

    def __init__(
        self,
        api: Api,
        graph: c.c_void_p,
        subject: str,
        slots: tuple[Sequence[Slot], Sequence[Slot]],
        inputs: Mapping[str, Array],
        *,
        advice: str = "",
    ) -> None:
        self._api, self._subject, self._advice = api, subject, advice
        names = [slot.tensor.name for slot in slots[0]]
        unknown = sorted(set(inputs) - set(names))
        if unknown:
            raise InputError(f"{subject} has no input {unknown}; its inputs are {names}")
        missing = [each for each in names if each not in inputs]
        if missing:
            raise InputError(f"{subject} needs an array for input '{missing[0]}'")
        self.inputs = {slot.tensor.name: slot.checked(inputs[slot.tensor.name]) for slot in slots[0]}
        self.outputs = {slot.tensor.name: slot.empty() for slot in slots[1]}
        written, read = _bound(slots[0], self.inputs), _bound(slots[1], self.outputs)
        self._arguments = (graph, written, len(written), read, len(read))
        self._execute = api.function("graphExecute")

    def run(self, profile: c.c_void_p | None = None) -> dict[str, Array]:
        """Execute once on the bound arrays; gives the bound outputs, which the next run overwrites."""
        api = self._api
        mark = api.log.mark()
        with api.quiet():
            code = self._execute(*self._arguments, profile, None)
        if code:
            raise self._failure(code, mark)
        return self.outputs

    def run_many(self, repeat: int, profile: c.c_void_p | None = None) -> float:
        """Seconds per inference over `repeat` runs."""
        if repeat < 1:
            raise UsageError(f"repeat must be at least 1, not {repeat}")
        execute, arguments, mark, failed = self._execute, self._arguments, self._api.log.mark(), 0
        with self._api.quiet():
            start = time.perf_counter()
            for _ in range(repeat):
                failed = execute(*arguments, profile, None) or failed
            seconds = time.perf_counter() - start
        if failed:
            raise self._failure(failed, mark)
        return seconds / repeat

    def _failure(self, code: int, mark: int) -> BackendError:
        error = self._api.failure("graphExecute", code, self._subject, mark)
        if self._advice and "Expected number of" in error.message:  # nodes were left out when it was loaded
            error.hint = self._advice
        return of_a_kernel(error, self._subject)

    def start(self, profile: c.c_void_p | None = None) -> Pending:
        """Execute in the background. The library blocks here while its queue is full."""
        return Pending(self._api, self, self._arguments, self._subject, profile)


class Pending:
    """An inference on its way. The binding must not be touched before `wait` returns."""

    def __init__(
        self, api: Api, binding: Binding, arguments: tuple[Any, ...], subject: str, profile: Any
    ) -> None:
        self._api, self._binding, self._subject = api, binding, subject
        self._done, self._code = threading.Event(), 0
        # Kept until the library has called it, even if the caller drops this object.
        self._callback = _NOTIFY(self._notify)
        self._mark = api.log.mark()
        _in_flight.add(self)
        try:
            api.call("graphExecuteAsync", *arguments, profile, None, self._callback, None, subject=subject)
        except BackendError:
            _in_flight.discard(self)
            raise

    def wait(self, timeout: float | None = None) -> dict[str, Array]:
        """The outputs, once they are there."""
        if not self._done.wait(timeout):
            raise BackendError(f"{self._subject}: no answer from graphExecuteAsync in {timeout:g} s")
        if self._code:
            error = self._api.failure("graphExecuteAsync", self._code, self._subject, self._mark)
            raise of_a_kernel(error, self._subject)
        return self._binding.outputs

    def _notify(self, parameter: int, code: int) -> None:
        del parameter
        self._code = code
        self._done.set()
        _in_flight.discard(self)


_in_flight: set[Pending] = set()


def _bound(slots: Sequence[Slot], arrays: Mapping[str, Array]) -> c.Array[abi.Tensor]:
    structs = (abi.Tensor * len(slots))(*(slot.struct for slot in slots))
    for struct, slot in zip(structs, slots, strict=True):
        set_buffer(struct, arrays[slot.tensor.name])
    return structs
