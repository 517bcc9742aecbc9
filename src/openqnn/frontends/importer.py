"""What importers of all frameworks share: naming, outputs, problems, and the walk over the nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from openqnn.errors import DynamicShapeError, Problem, ShapeError, UnsupportedError
from openqnn.formats.encodings import Parameter
from openqnn.frontends.custom_ops import custom_translator
from openqnn.frontends.dimensions import Dimensions, SourceInput, frozen_array
from openqnn.frontends.registry import Registry, Translator
from openqnn.frontends.translation import Refused, Translation
from openqnn.ir import Array, DType, Graph, Port, Shape, Value, dtype_of

N = TypeVar("N")


class BaseImporter(Generic[N]):
    """Translates a model node by node. A subclass for a framework says what its nodes N are.

    `env` has the values of the source's tensors by name. `problems` holds every refusal; what lies behind a
    refused node is not reported.
    """

    framework = ""  # begins the names of sources: "onnx node conv1"

    def __init__(
        self,
        name: str,
        dimensions: Dimensions,
        arrays: Mapping[str, Array],
        inputs: Sequence[SourceInput],
        names: Iterable[str],
    ) -> None:
        self.dimensions = dimensions
        self.arrays = arrays
        self.inputs = inputs
        self.names = frozenset(names)
        self.graph = Graph(name)
        self.env: dict[str, Any] = {}
        self.problems: list[Problem] = []
        self.notes: Sequence[tuple[str, str]] = ()
        self.covered: Counter[str] = Counter()
        self.on_node: Callable[[int, int], None] | None = None
        self.t = Translation(self.graph)
        self._named: set[Value] = set()

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return {name: Parameter(array.shape) for name, array in self.arrays.items()}

    # -- what a framework says --------------------------------------------------

    def nodes(self) -> Sequence[N]:
        """The source's nodes, producers first."""
        raise NotImplementedError

    def add_inputs(self) -> None:
        """Puts the values of inputs into `env`; see `add_input`."""
        raise NotImplementedError

    def translate(self, node: N) -> None:
        """Puts the results of a node into `env`, or notes a problem; see `bind` and `add_problem`."""
        raise NotImplementedError

    def add_outputs(self) -> None:
        """Ends the graph; see `add_output`."""
        raise NotImplementedError

    # -- the walk --------------------------------------------------

    def run(self) -> Graph:
        outside = {source.name for source in self.inputs}
        self.graph.reserve(self.names - self.arrays.keys() - outside)
        for name, array in self.arrays.items():
            self.env[name] = constant_of(name, array)
        self.add_inputs()
        nodes = self.nodes()
        for index, node in enumerate(nodes):
            self.translate(node)
            if self.on_node is not None:
                self.on_node(index + 1, len(nodes))
        if self.problems:
            raise unsupported(self.problems)
        self.add_outputs()
        self._number_constants()
        return self.graph

    def attempt(self, op: str, node: str, work: Callable[[], None]) -> bool:
        """Runs the translation of a node, and notes it as a problem or as covered."""
        try:
            work()
        except (Refused, ShapeError) as e:
            self.add_problem(op, node, e.message, e.hint)
            return False
        except MemoryError as e:
            self.add_problem(op, node, f"its result does not fit into memory: {e}")
            return False
        self.covered[op] += 1
        return True

    def add_problem(self, op: str, node: str, reason: str, hint: str = "") -> None:
        self.problems.append(Problem(op, node, reason, hint))

    def bind(self, names: Sequence[str], results: Any, label: str) -> None:
        """Puts the results of a node into `env`; `label` is the node's name, if it has one."""
        results = list(results) if isinstance(results, list | tuple) else [results]
        for name, value in zip(names, results, strict=False):
            if name:
                self._name(value, name, label)
                self.env[name] = value

    def _name(self, value: Any, name: str, label: str) -> None:
        """A fresh result takes the name that the user's model has for it."""
        if isinstance(value, Value) and value.producer is not None and value not in self._named:
            self._named.add(value)
            if value is value.producer.outputs[0]:
                value.producer.name = label or name
            value.name = name

    def _number_constants(self) -> None:
        """A weight keeps its name, also when it was turned; only a second one of that name gets a number."""
        constants = self.graph.constants()
        taken = {v.name for v in self.graph.values() if not v.is_constant}
        for value in constants:
            count, stem = 1, value.name
            while value.name in taken:
                count += 1
                value.name = f"{stem}_{count}"
            taken.add(value.name)
        self.graph.reserve(taken)

    # -- ops --------------------------------------------------

    def translator(
        self, table: Registry, name: str, version: int = 1, domain: str | None = None
    ) -> Translator | None:
        """What translates a source op: the user's declaration, or else the framework's table.

        A domain of None is that of frameworks without any.
        """
        return custom_translator(name, domain) or table.find(name, version, domain or "")

    # -- borders --------------------------------------------------

    def add_all_inputs(self, add: Callable[[SourceInput], Value]) -> None:
        """Adds every input, so that one message names all that have open dimensions."""
        dynamic: list[DynamicShapeError] = []
        for source in self.inputs:
            try:
                self.env[source.name] = self._frozen(add(source))
            except DynamicShapeError as e:
                dynamic.append(e)
        if dynamic:
            raise DynamicShapeError.of_all(dynamic)

    def _frozen(self, value: Value) -> Value:
        """The input, or the constant that the user wants in its place."""
        if value.name not in self.dimensions.values:
            return value
        port = self.graph.ports.pop(value.name)
        self.graph.inputs.remove(value)
        array = frozen_array(value.name, self.dimensions.values[value.name], port.dtype, port.shape)
        return Value(value.name, port.dtype, port.shape, data=array)

    def add_output(self, name: str, value: Value, dtype: DType, shape: Shape | None = None) -> None:
        """An output of its own value; `dtype` and `shape` are how it looks from outside."""
        port = Port(dtype, value.shape if shape is None else shape)
        value = self.t.operand(value) or value
        taken = any(value is v for v in (*self.graph.outputs, *self.graph.inputs))
        if taken or value.is_constant or value.name != name:
            value = self._own_output(value, name)
        self.graph.add_output(value, port)

    def _own_output(self, value: Value, name: str) -> Value:
        """A value of its own for an output that is an input, a constant or another output too."""
        self.t.builder.source, self.t.builder.stem = f"{self.framework} output {name}", name
        copy = self.t.copy(value)
        copy.name = (
            name if name not in {v.name for v in (*self.graph.inputs, *self.graph.outputs)} else copy.name
        )
        return copy


def constant_of(name: str, array: Array) -> Value | None:
    """A constant of the source; None for a type that QNN does not have: whoever uses it is refused."""
    try:
        return Value(name, dtype_of(array.dtype), array.shape, data=array)
    except (ValueError, TypeError):
        return None


def unsupported(problems: Sequence[Problem]) -> UnsupportedError:
    """All refusals in one message: grouped by op and reason, with counts and the first places."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for p in problems:
        groups.setdefault((p.op, p.reason), []).append(p)
    lines = [f"{len(problems)} node(s) cannot be converted:"]
    for (op, reason), members in groups.items():
        places = ", ".join(f"'{m.node}'" for m in members[:3]) + (" ..." if len(members) > 3 else "")
        lines.append(f"  {op} x{len(members)}: {reason} (at {places})")
    hint = next((p.hint for p in problems if p.hint), "")
    return UnsupportedError("\n".join(lines), hint=hint, problems=problems)
