"""The text form of a graph: one line per value and node, for people and for tests; it parses back equal.

    graph "tiny" {
      input %x: float32[1,4]
      const %w: float32[2,4] = data
      %y: float32[1,2] = FullyConnected(%x, %w, _) keep_dims=false name "fc" @ "onnx node /fc/Gemm"
      output %y
      given %y bits=8 <scale=[0.1] offset=[0] bits=8 symmetric=false> from "model"
      encoded %x by "calibration"
    }

Constants of up to eight elements are printed; larger ones say `data` and are looked up by name when parsing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from openqnn.errors import ModelError
from openqnn.ir.dtype import DType, dtype_of
from openqnn.ir.encoding import Blocks, Encoding
from openqnn.ir.given import Given
from openqnn.ir.graph import BUILTIN_PACKAGE, Array, Graph, Node, ParamValue, Port, Shape, Value, op_key

INLINE_ELEMENTS = 8
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")


# -- printing ------------------------------------------------------------------------------------------------


def print_graph(graph: Graph) -> str:
    return "\n".join(_lines(graph)) + "\n"


def _lines(graph: Graph) -> Iterator[str]:
    yield f"graph {_string(graph.name)} {{"
    for value in graph.inputs:
        yield f"  input {_declared(value)}{_port(graph, value)}"
    seen = set(graph.inputs)
    for node in graph.nodes:
        yield from _constants(node.inputs, seen)
        yield f"  {_node(node)}"
    yield from _constants(graph.outputs, seen)
    for value in graph.outputs:
        yield f"  output {_ref(value)}{_port(graph, value)}"
    yield from (f"  {line}" for line in print_known(graph.given, graph.provenance).splitlines())
    yield "}"


def _constants(values: list[Any], seen: set[Value]) -> Iterator[str]:
    for value in values:
        if isinstance(value, Value) and value.data is not None and value not in seen:
            seen.add(value)
            yield f"  const {_declared(value)} = {_data(value.data)}"


def _node(node: Node) -> str:
    outputs = ", ".join(_declared(v) for v in node.outputs)
    inputs = ", ".join("_" if v is None else _ref(v) for v in node.inputs)
    mark = "::" if node.op != node.op_name else ":"  # one: QNN's own op under another package's name
    package = "" if node.package == BUILTIN_PACKAGE else f"{_string(node.package)}{mark}"
    params = "".join(f" {k}={_param(v)}" for k, v in node.params.items())
    name = "" if node.outputs and node.name == node.outputs[0].name else f" name {_string(node.name)}"
    source = f" @ {_string(node.source)}" if node.source else ""
    return f"{outputs} = {package}{node.op_name}({inputs}){params}{name}{source}"


def _declared(value: Value) -> str:
    encoding = f" {_encoding(value.encoding)}" if value.encoding is not None else ""
    return f"{_ref(value)}: {_type(value.dtype, value.shape)}{encoding}"


def _type(dtype: DType, shape: Shape) -> str:
    return f"{dtype.label}[{','.join(map(str, shape))}]"


def _encoding(e: Encoding) -> str:
    axis = "" if e.axis is None else f" axis={e.axis}"
    numbers = f"scale={_param(e.scale)} offset={_param(e.offset)} bits={e.bitwidth}{axis}"
    return f"<{numbers} symmetric={_param(e.symmetric)}{_blocks(e.blocks)}>"


def _blocks(blocks: Blocks | None) -> str:
    if blocks is None:
        return ""
    return f" blocks={_param((blocks.axis, blocks.size))} multiples={_param(blocks.multiples)}"


def print_known(given: Mapping[str, Given], provenance: Mapping[str, str]) -> str:
    """What is given for tensors, and where encodings came from, a line each."""
    lines = [f"given {_quoted(name)} {_given(said)}\n" for name, said in given.items()]
    lines += [f"encoded {_quoted(name)} by {_string(source)}\n" for name, source in provenance.items()]
    return "".join(lines)


def _given(said: Given) -> str:
    flags = "".join(f" {word}=true" for word in ("floating", "signed") if getattr(said, word))
    encodings = "".join(f" {_encoding(e)}" for e in (said.encoding, *said.also) if e is not None)
    return f"bits={said.bitwidth}{flags}{encodings} from {_string(said.source)}"


def _port(graph: Graph, value: Value) -> str:
    """The outside view, printed where it differs from the value."""
    port = graph.ports.get(value.name)
    if port is None or (port.dtype, port.shape) == (value.dtype, value.shape):
        return ""
    return f" as {_type(port.dtype, port.shape)}"


def _ref(value: Value) -> str:
    return _quoted(value.name)


def _quoted(name: str) -> str:
    return "%" + (name if _PLAIN_NAME.fullmatch(name) else _string(name))


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)


def _data(data: Array) -> str:
    return _param(_plain(data)) if data.size <= INLINE_ELEMENTS else "data"


def _plain(data: Array) -> ParamValue:
    return tuple(cast("list[ParamValue]", data.astype(_exact(data.dtype)).ravel().tolist()))


def _exact(dtype: np.dtype[Any]) -> Any:
    """A type whose Python numbers print every element exactly."""
    return np.float64 if dtype.kind not in "biu" else dtype


def _param(value: ParamValue) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_param(v) for v in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


# -- parsing -------------------------------------------------------------------------------------------------

_LONGEST_NUMBER = 100  # digits; Python refuses to read integers of thousands
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<float>[+-]?(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf|nan)(?![\w.]))"""
    r"""|(?P<int>[+-]?\d+)|(?P<word>%?[A-Za-z_][A-Za-z0-9_./-]*)|(?P<mark>[%{}\[\]()<>=,:@]))"""
)


class _Parser:
    def __init__(self, text: str, data: Mapping[str, Array]) -> None:
        self.text, self.data, self.at = text, data, 0
        self.values: dict[str, Value] = {}

    def fail(self, what: str) -> ModelError:
        line = self.text.count("\n", 0, self.at) + 1
        found = self.text[self.at : self.at + 20].strip().split("\n")[0]
        seen = repr(found) if found else "the end"
        return ModelError(f"graph text, line {line}: expected {what}, found {seen}")

    def next(self) -> tuple[str, str]:
        """Kind and text of the next token, which stays."""
        match = _TOKEN.match(self.text, self.at)
        return (match.lastgroup or "", match[match.lastgroup or 0]) if match else ("end", "")

    def take(self, kind: str, text: str | None = None) -> str:
        found = self.next()
        if found[0] != kind or (text is not None and found[1] != text):
            raise self.fail(text or kind)
        match = _TOKEN.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return found[1]

    def skip(self, kind: str, text: str) -> bool:
        if self.next() != (kind, text):
            return False
        self.take(kind, text)
        return True

    def string(self) -> str:
        try:
            found = str(json.loads(self.next()[1]))
            found.encode()  # half of a pair of surrogates is no letter, and nothing could write it
        except ValueError:
            raise self.fail("a string of valid letters and escapes") from None
        self.take("string")
        return found

    def graph(self) -> Graph:
        self.take("word", "graph")
        graph = Graph(self.string())
        self.take("mark", "{")
        while not self.skip("mark", "}"):
            self.statement(graph)
        graph.reserve(v.name for v in self.values.values())
        graph.reserve(n.name for n in graph.nodes)
        return graph

    def statement(self, graph: Graph) -> None:
        if self.skip("word", "input"):
            value = self.declared()
            graph.inputs.append(value)
            graph.ports[value.name] = self.port(value)
        elif self.skip("word", "output"):
            value = self.ref()
            graph.outputs.append(value)
            graph.ports[value.name] = self.port(value)
        elif self.skip("word", "const"):
            self.constant(self.declared())
        elif self.skip("word", "given"):
            name = self.name()
            graph.given[name] = self.given()
        elif self.skip("word", "encoded"):
            name = self.name()
            self.take("word", "by")
            graph.provenance[name] = self.string()
        else:
            graph.add(self.node())

    def port(self, value: Value) -> Port:
        if self.skip("word", "as"):
            return Port(*self.type())
        return Port(value.dtype, value.shape)

    def constant(self, value: Value) -> None:
        self.take("mark", "=")
        if self.skip("word", "data"):
            if value.name not in self.data:
                raise ModelError(f"graph text: no data for constant '{value.name}'")
            value.data = self.data[value.name]
            if value.data.dtype != value.dtype.numpy:
                found = f"{value.dtype.label}, and its data {value.data.dtype}"
                raise ModelError(f"graph text: constant '{value.name}' is {found}")
        else:
            value.data = self.array(value)
        if value.data.size != value.size:
            raise ModelError(
                f"graph text: constant '{value.name}' has {value.data.size} elements, not {value.size}"
            )
        value.data = value.data.reshape(value.shape)

    def array(self, value: Value) -> Array:
        numbers = self.param()
        try:
            return np.asarray(numbers, dtype=value.dtype.numpy)
        except (ValueError, TypeError, OverflowError) as e:
            raise ModelError(f"graph text: constant '{value.name}': {e}") from e

    def node(self) -> Node:
        outputs = [self.declared()]
        while self.skip("mark", ","):
            outputs.append(self.declared())
        self.take("mark", "=")
        package, own = BUILTIN_PACKAGE, True
        if self.next()[0] == "string":
            package = self.string()
            self.take("mark", ":")
            own = not self.skip("mark", ":")
        op = self.take("word") if own else op_key(package, self.take("word"))
        node = Node(op, outputs[0].name, self.operands(), outputs, package=package)
        while (
            self.next()[0] == "word"
            and self.next()[1] not in ("name", "input", "output", "const", "given", "encoded")
            and self.is_param()
        ):
            node.params.update([self.setting()])
        if self.skip("word", "name"):
            node.name = self.string()
        if self.skip("mark", "@"):
            node.source = self.string()
        return node

    def is_param(self) -> bool:
        return not self.next()[1].startswith("%")

    def operands(self) -> list[Value | None]:
        self.take("mark", "(")
        found: list[Value | None] = []
        while not self.skip("mark", ")"):
            found.append(None if self.skip("word", "_") else self.ref())
            self.skip("mark", ",")
        return found

    def name(self) -> str:
        if self.skip("mark", "%"):
            return self.string()
        return self.take("word")[1:]

    def ref(self) -> Value:
        name = self.name()
        if name not in self.values:
            raise ModelError(f"graph text: '{name}' is used before it is declared")
        return self.values[name]

    def declared(self) -> Value:
        name = self.name()
        self.take("mark", ":")
        value = Value(name, *self.type())
        if self.next() == ("mark", "<"):
            value.encoding = self.encoding()
        if name in self.values:
            raise ModelError(f"graph text: '{name}' is declared twice")
        self.values[name] = value
        return value

    def type(self) -> tuple[DType, Shape]:
        try:
            dtype = dtype_of(self.take("word"))
        except (ValueError, TypeError) as e:
            raise ModelError(f"graph text: {e}") from e
        shape = self.param()
        if not isinstance(shape, tuple) or not all(isinstance(d, int) for d in shape):
            raise self.fail("a shape")
        dims = tuple(int(d) for d in shape if isinstance(d, int))
        if min(dims, default=0) < 0:
            raise ModelError(f"graph text: shape {list(dims)} has a negative dimension")
        return dtype, dims

    def given(self) -> Given:
        found: dict[str, Any] = {}
        while self.next()[0] == "word" and self.next()[1] != "from":
            found.update([self.setting()])
        encodings: list[Encoding] = []
        while self.next() == ("mark", "<"):
            encodings.append(self.encoding())
        self.take("word", "from")
        bits, first = found.get("bits"), encodings[0] if encodings else None
        if not isinstance(bits, int):
            raise self.fail("the bits of what is given")
        flags = bool(found.get("floating")), bool(found.get("signed"))
        return Given(self.string(), bits, flags[0], first, flags[1], tuple(encodings[1:]))

    def setting(self) -> tuple[str, ParamValue]:
        key = self.take("word")
        self.take("mark", "=")
        return key, self.param()

    def encoding(self) -> Encoding:
        self.take("mark", "<")
        found: dict[str, Any] = {}
        while not self.skip("mark", ">"):
            found.update([self.setting()])
        try:
            axis, size = found.get("blocks", (0, 0))
            blocks = Blocks(axis, size, found["multiples"]) if size else None
            return Encoding(
                found["scale"], found["offset"], found["bits"], found.get("axis"), found["symmetric"], blocks
            )
        except (KeyError, ValueError, TypeError) as e:
            raise ModelError(f"graph text: an encoding is incomplete or wrong: {e}") from e

    def param(self) -> ParamValue:
        kind, text = self.next()
        if self.skip("mark", "["):
            items: list[ParamValue] = []
            while not self.skip("mark", "]"):
                items.append(self.param())
                self.skip("mark", ",")
            return tuple(items)
        if kind not in ("int", "float", "word"):
            raise self.fail("a value")
        self.take(kind)
        if kind == "word":
            return {"true": True, "false": False}.get(text, text)
        if len(text) > _LONGEST_NUMBER:
            raise self.fail(f"a number of at most {_LONGEST_NUMBER} digits")
        return int(text) if kind == "int" else float(text)


def parse_known(text: str) -> tuple[dict[str, Given], dict[str, str]]:
    """The lines of `print_known`."""
    graph, parser = Graph(), _Parser(text, {})
    while parser.next()[0] != "end":
        parser.statement(graph)
    return graph.given, graph.provenance


def parse_graph(text: str, data: Mapping[str, Array] | None = None) -> Graph:
    """The graph that a text describes; `data` holds the constants that the text does not print."""
    try:
        return _Parser(text, data or {}).graph()
    except RecursionError as e:
        raise ModelError("graph text: lists are nested too deep") from e
