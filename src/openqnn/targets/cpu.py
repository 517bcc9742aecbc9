"""What libQnnCpu needs: a Dequantize that is computed in every run, biases, one scale for a matrix, and real
numbers for activations that it does not compute in fixed point."""

from __future__ import annotations

import warnings

import numpy as np

from openqnn.errors import OpenQnnWarning, UnsupportedError
from openqnn.ir import DType, Encoding, Graph, Node, Value
from openqnn.ir.clone import clone_graph
from openqnn.ops import Builder, schema_of
from openqnn.ops.schema import Role
from openqnn.passes.edit import builder_at, supplant
from openqnn.passes.explain import Explain
from openqnn.passes.step import Step, run_steps
from openqnn.targets.target import Target

_REAL_ONLY = {"ELU", "GELU", "HARD_SIGMOID", "RELU", "SOFTPLUS"}  # operations of ElementWiseNeuron
_CAST = {DType.UFIXED_8, DType.SFIXED_8}  # what libQnnCpu casts to floats


class CpuTarget(Target):
    """Qualcomm's CPU library."""

    name = "libQnnCpu"
    libraries = ("libQnnCpu.so",)
    title = "libQnnCpu"

    def adapt(self, graph: Graph, *, keeps_border: bool = False) -> Graph:
        if not any(_is_changed(node) for node in graph.nodes):
            return graph
        made = clone_graph(graph)
        run_steps(STEPS, made, Explain())
        return made


def put_biases(made: Graph, _: Explain) -> None:
    """libQnnCpu (2.47) finalizes no layer in fixed point without a bias: the original writes zeros."""
    for node in made.nodes:
        index = _bare_bias(node)
        if index:
            node.inputs += [None] * (index + 1 - len(node.inputs))
            zeros = np.zeros(node.out.shape[-1], np.int32)
            known = _bias_encoding(node)
            made.set_input(node, index, made.constant(f"{node.name}_bias", zeros, DType.SFIXED_32, known))


def _bias_encoding(node: Node) -> Encoding:
    """Scales of the input times those of the weights, by channel where the weights have them so."""
    scales = tuple(_scales(node.x(0))[0] * scale for scale in _scales(node.x(1)))
    axis = 0 if len(scales) > 1 else None
    return Encoding(scales, (0,) * len(scales), 32, axis, symmetric=True)


def join_scales(made: Graph, _: Explain) -> None:
    """libQnnCpu (2.47) computes a matrix with one scale for all rows: those with more are rounded to it."""
    found = [node for node in made.nodes if _has_rows(node)]
    if not found:
        return
    warnings.warn(
        "libQnnCpu takes one scale for all rows of a matrix: weights with one for each are rounded to it",
        OpenQnnWarning,
        stacklevel=4,
    )
    for node in found:
        old = node.x(1)
        assert old.encoding is not None and old.data is not None and old.encoding.axis is not None
        shape = [-1 if axis == old.encoding.axis else 1 for axis in range(old.rank)]
        largest = max(old.encoding.scale)
        factor = np.asarray(old.encoding.scale, np.float64).reshape(shape) / largest
        stored = np.rint(old.data.astype(np.float64) * factor).astype(old.data.dtype)
        known = Encoding.per_tensor(largest, 0, old.encoding.bitwidth, symmetric=True)
        made.set_input(node, 1, made.constant(f"{old.name}_one_scale", stored, old.dtype, known))


def _has_rows(node: Node) -> bool:
    """Whether a matrix in signed integers has scales by row."""
    roles = [operand.role for operand in schema_of(node).inputs]
    if len(roles) < 2 or roles[1] is not Role.WEIGHT or not node.has(1):
        return False
    weight, known = node.x(1), node.x(1).encoding
    by_row = known is not None and known.axis is not None and not any(known.offset) and known.blocks is None
    return weight.is_constant and weight.rank == 2 and by_row


def _bare_bias(node: Node) -> int:
    """Where a layer in fixed point could have a bias and has none; 0 for all others."""
    operands = schema_of(node).inputs
    index = next((i for i, o in enumerate(operands) if o.role is Role.BIAS and o.optional), 0)
    fixed = node.out.dtype.is_fixed and all(node.has(i) and node.x(i).encoding is not None for i in (0, 1))
    return index if index and fixed and not node.has(index) else 0


def _scales(value: Value) -> tuple[float, ...]:
    return value.encoding.scale if value.encoding is not None else (1.0,)


def dequantize_each_time(made: Graph, _: Explain) -> None:
    """libQnnCpu (2.47) runs a Dequantize once: whatever comes later, its result stays that of the first."""
    for node in [n for n in made.nodes if _once(n)]:
        supplant(made, node.out, _computed(builder_at(made, node), node))


def _once(node: Node) -> bool:
    return node.op == "Dequantize" and not node.x(0).is_constant


def _computed(b: Builder, node: Node) -> Value:
    x, known = node.x(0), node.x(0).encoding
    if x.dtype not in _CAST or known is None:
        raise UnsupportedError(
            f"{node.where}: libQnnCpu makes real numbers of {x.dtype.label} in its first run only",
            hint="run the graph on HTP, or on the built-in backend",
        )
    shape = [-1 if axis == known.axis else 1 for axis in range(x.rank)]
    offset, scale = (np.asarray(n, np.float32).reshape(shape) for n in (known.offset, known.scale))
    real = b.cast(x, DType.FLOAT_32)
    return b.mul(b.add(real, b.const(offset)), b.const(scale))


def compute_real_activations(made: Graph, _: Explain) -> None:
    """libQnnCpu (2.47) validates every ElementWiseNeuron in 8 bits; some it then refuses to execute
    (HARD_SIGMOID, SOFTPLUS), and of some it gives other numbers (ELU, GELU, RELU)."""
    for node in [n for n in made.nodes if _wants_floats(n)]:
        b = builder_at(made, node)
        real = b("ElementWiseNeuron", _computed(b, node), **node.params)
        supplant(made, node.out, b.quantize(real, node.out.dtype, node.out.encoding))


def _wants_floats(node: Node) -> bool:
    fixed = node.op == "ElementWiseNeuron" and node.x(0).dtype in _CAST and node.x(0).encoding is not None
    return fixed and node.enum("operation") in _REAL_ONLY


def _is_changed(node: Node) -> bool:
    return bool(_has_rows(node) or _bare_bias(node) or _once(node) or _wants_floats(node))


STEPS = (
    Step("join_scales", join_scales, "first: a bias has the scales of the weights that it is added to"),
    Step("put_biases", put_biases, "layers that are in fixed point still"),
    Step("dequantize_each_time", dequantize_each_time, "by other ops, which need nothing of the above"),
    Step("compute_real_activations", compute_real_activations, "what is in fixed point in the end"),
)
