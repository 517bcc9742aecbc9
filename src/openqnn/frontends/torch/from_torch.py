"""Programs out of torch's own objects, and therefore with torch: an ExportedProgram, or a module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from openqnn.errors import ModelError, UsageError
from openqnn.frontends.torch.program import (
    Argument,
    Program,
    ProgramInput,
    ProgramNode,
    ProgramOutput,
    Ref,
    TensorInfo,
)
from openqnn.frontends.torch.scalar_types import dtype_named
from openqnn.ir import Array, DType

torch: Any = import_module("torch")  # untyped on purpose: the checker need not have it installed
_signature: Any = import_module("torch.export.graph_signature")
InputKind, OutputKind = _signature.InputKind, _signature.OutputKind


def exported_of(source: Any, example_inputs: Any = None) -> Any:
    """The exported program of a module, or the one that is given."""
    if isinstance(source, torch.nn.Module):
        return exported(source, example_inputs)
    if not isinstance(source, torch.export.ExportedProgram):
        kind = f"{type(source).__module__}.{type(source).__qualname__}"
        raise ModelError(f"a {kind} is no model that can be converted", hint="give a module, or its export")
    return source


def exported(module: Any, example_inputs: Any) -> Any:
    """The module as a program for inference; its mode is put back."""
    from openqnn.frontends.torch.open_torch import example_needed

    if example_inputs is None:
        raise example_needed()
    inputs = (example_inputs,) if isinstance(example_inputs, torch.Tensor) else example_inputs
    args, kwargs = ((), dict(inputs)) if isinstance(inputs, Mapping) else (tuple(inputs), {})
    training = {m for m in module.modules() if m.training}
    try:
        return torch.export.export(module.eval(), args, kwargs)
    except Exception as e:  # torch raises whatever the module does
        lines = str(e).strip().splitlines() or [""]
        raise ModelError(f"torch.export cannot export the module: {type(e).__name__}: {lines[0]}") from e
    finally:
        for m in training:
            m.training = True


def from_exported(program: Any, name: str) -> Program:
    """Records of an exported program; weights are views of torch's own memory."""
    arrays, foreign = _state(program)
    written = {s.target for s in program.graph_signature.output_specs if s.kind in _WRITES}
    nodes = [node_of(n) for n in program.graph.nodes if n.op == "call_function"]
    return Program(
        name,
        tuple(_input(s, written) for s in program.graph_signature.input_specs),
        tuple(o for s in program.graph_signature.output_specs for o in _output(s)),
        tuple(n for n in nodes if n is not None),
        tensors_of(program.graph.nodes),
        arrays,
        {},
        foreign,
    )


# -- state ---------------------------------------------------------------------------------------------------

_WRITES = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)


def _state(program: Any) -> tuple[dict[str, Array], dict[str, str]]:
    arrays: dict[str, Array] = {}
    foreign: dict[str, str] = {}
    for name, value in {**program.constants, **program.state_dict}.items():
        if not isinstance(value, torch.Tensor):
            foreign[name] = f"it is a {type(value).__name__}"
            continue
        try:
            arrays[name] = array_of(value)
        except (TypeError, RuntimeError, ValueError) as e:
            foreign[name] = str(e)
    return arrays, foreign


def array_of(tensor: Any) -> Array:
    """The tensor's own memory as an array."""
    plain = tensor.detach()
    if plain.dtype is torch.bfloat16:
        return plain.to(torch.float32).numpy()
    if not isinstance(dtype_of(plain.dtype), DType):
        raise TypeError(f"it has element type {dtype_of(plain.dtype)}")
    return np.asarray(plain.cpu().numpy())


def dtype_of(dtype: Any) -> DType | str:
    return dtype_named(str(dtype).removeprefix("torch."))


# -- graph ---------------------------------------------------------------------------------------------------


def _is_getitem(node: Any) -> bool:
    """Taking a result out of several; it is what names the result."""
    source: Any = node.args[0] if node.args else None
    if not isinstance(source, torch.fx.Node):
        return False
    several = isinstance(source.meta.get("val"), tuple | list)
    return several and getattr(node.target, "__name__", "") == "getitem"


def tensors_of(nodes: Sequence[Any]) -> dict[str, TensorInfo]:
    found = {}
    for node in nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            dims = tuple(d if isinstance(d, int) else str(d) for d in value.shape)
            found[node.name] = TensorInfo(dtype_of(value.dtype), dims)
    return found


def target_of(node: Any) -> str:
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target}"
    module = getattr(target, "__module__", "")
    return f"{module}.{getattr(target, '__name__', target)}"


def node_of(node: Any) -> ProgramNode | None:
    """The record of a call; None of one that only takes a result out of several."""
    if _is_getitem(node):
        return None
    value = node.meta.get("val")
    if isinstance(value, tuple | list):
        names = [""] * len(value)
        for user in node.users:
            if _is_getitem(user):
                names[user.args[1]] = user.name
    else:
        names = [node.name]
    modules = node.meta.get("nn_module_stack") or {}
    stack = ";".join(f"{key},{path},{_class_name(kind)}" for key, (path, kind) in modules.items())
    trace = node.meta.get("stack_trace") or ""
    return ProgramNode(target_of(node), arguments_of(node), tuple(names), trace, stack)


def _class_name(kind: Any) -> str:
    return kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"


def arguments_of(node: Any) -> tuple[Argument, ...]:
    """Arguments by the names of the overload's schema."""
    schema = getattr(node.target, "_schema", None)
    names = [a.name for a in schema.arguments] if schema is not None else []
    found = [
        Argument(names[i] if i < len(names) else f"arg{i}", argument(value))
        for i, value in enumerate(node.args)
    ]
    return (*found, *(Argument(name, argument(v), positional=False) for name, v in node.kwargs.items()))


def argument(value: Any) -> Any:
    if isinstance(value, torch.fx.Node) and value.op == "get_attr":
        found = getattr(value.graph.owning_module, str(value.target), None)
        return body_program(found) if isinstance(found, torch.fx.GraphModule) else Ref(value.name)
    if isinstance(value, torch.fx.Node):
        return Ref(value.name)
    if isinstance(value, tuple | list):
        return [argument(v) for v in value]
    if isinstance(value, torch.dtype):
        return dtype_of(value)
    if isinstance(value, torch.memory_format | torch.layout | torch.device):
        return None
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        raise UsageError(f"the program has a free symbol {value} among its arguments")
    return value


def body_program(module: Any) -> Program:
    """The body of a higher-order op."""
    nodes = list(module.graph.nodes)
    results = argument(next(n for n in nodes if n.op == "output").args[0])
    listed = results if isinstance(results, list) else [results]
    called = [node_of(n) for n in nodes if n.op == "call_function"]
    return Program(
        "body",
        tuple(ProgramInput(n.name) for n in nodes if n.op == "placeholder"),
        tuple(ProgramOutput(r) for r in listed),
        tuple(n for n in called if n is not None),
        tensors_of(nodes),
    )


def _input(spec: Any, written: set[Any]) -> ProgramInput:
    name = getattr(spec.arg, "name", "")
    if spec.kind is InputKind.USER_INPUT:
        constant = hasattr(spec.arg, "value")
        return ProgramInput(name, number=getattr(spec.arg, "value", None), is_number=constant)
    if spec.kind is InputKind.TOKEN:
        return ProgramInput(name, is_number=True)
    return ProgramInput(name, spec.target, mutable=spec.target in written)


def _output(spec: Any) -> list[ProgramOutput]:
    name = getattr(spec.arg, "name", None)
    if spec.kind is OutputKind.USER_OUTPUT:
        return [ProgramOutput(Ref(name))] if name and not hasattr(spec.arg, "value") else []
    if spec.kind in _WRITES:
        return [ProgramOutput(Ref(str(name)), state=str(spec.target))]
    if spec.kind is OutputKind.USER_INPUT_MUTATION:
        return [ProgramOutput(Ref(str(name)), target=str(spec.target))]
    if spec.kind is OutputKind.TOKEN:
        return []
    raise ModelError(
        "the program is a training step, with gradients as outputs", hint="export the forward pass"
    )
