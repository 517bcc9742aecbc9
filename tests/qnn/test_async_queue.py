"""Inferences in the background, and many on the same arrays."""

from __future__ import annotations

import numpy as np
import pytest

from openqnn.emit import lower
from openqnn.errors import UsageError
from openqnn.qnn.async_queue import ExecutionQueue
from openqnn.qnn.backend import Backend
from openqnn.qnn.context import Context
from tests.ops.harness import all_cases, build
from tests.qnn.nets import ConvRelu, needs_cpu, needs_htp, unary

CASE = ConvRelu()


@pytest.mark.parametrize(
    "library", [pytest.param("cpu", marks=needs_cpu), pytest.param("htp", marks=needs_htp)]
)
def test_the_queue_gives_each_its_own_result(library: str) -> None:
    with Backend(library) as backend, Context(backend) as context:
        graph = context.compose(CASE.float_net())
        graph.finalize()
        bindings = [graph.bind({"x": CASE.image * factor}) for factor in range(5)]
        wanted = [binding.run()["y"].copy() for binding in bindings]
        for binding in bindings:
            binding.outputs["y"].fill(-1)
        with ExecutionQueue(backend, depth=2) as queue:
            futures = [queue.submit(binding) for binding in bindings]
            results = [future.result(30)["y"] for future in futures]
            assert queue.native is False
    for got, want in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@needs_cpu
def test_a_queue_has_a_depth() -> None:
    with Backend("cpu") as cpu, pytest.raises(UsageError, match="at least 1 deep"):
        ExecutionQueue(cpu, 0)


@needs_cpu
def test_bound_arrays_are_filled_in_place() -> None:
    with Backend("cpu") as cpu, Context(cpu) as context:
        graph = context.compose(unary("Relu", (2, 3)))
        graph.finalize()
        x = np.ones((2, 3), np.float32)
        binding = graph.bind({"x": x})
        assert binding.run()["y"][0, 0] == 1
        x[:] = 7
        assert binding.run()["y"] is binding.outputs["y"]
        assert binding.outputs["y"][0, 0] == 7


@needs_cpu
def test_a_row_too_many_meets_no_memory_of_others() -> None:
    """libQnnCpu's BoxWithNmsLimit marks the end behind the last row, too."""
    graph, arrays = build(next(case for case in all_cases() if case.op == "BoxWithNmsLimit"))
    net = lower(graph)
    with Backend("cpu") as cpu, Context(cpu) as context:
        compiled = context.compose(net)
        compiled.finalize()
        binding = compiled.bind(dict(zip(net.inputs, arrays.values(), strict=True)))
        classes = binding.run()[net.outputs[2]]
        room = np.asarray(classes.base)
        assert room.nbytes >= classes.nbytes + 4 and room[classes.size] == -1
