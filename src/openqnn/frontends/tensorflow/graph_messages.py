"""The messages of TensorFlow's graph files, as far as looking at a graph needs them: read without TensorFlow.

Field numbers are those of TensorFlow's published schema. What a table leaves out stays unread.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

from openqnn.errors import ModelError

PACKAGE: Final = "openqnn_tensorflow"
# field: (number, type, whether it is repeated); a capital type is another message, `map:X` one by name
_FIELDS: Final[dict[str, dict[str, tuple[int, str, bool]]]] = {
    "Dim": {"size": (1, "int64", False), "name": (2, "string", False)},
    "TensorShape": {"dim": (2, "Dim", True), "unknown_rank": (3, "bool", False)},
    "Tensor": {
        "dtype": (1, "int32", False), "tensor_shape": (2, "TensorShape", False),
        "tensor_content": (4, "bytes", False), "float_val": (5, "float", True),
        "double_val": (6, "double", True), "int_val": (7, "int32", True), "int64_val": (10, "int64", True),
        "bool_val": (11, "bool", True), "half_val": (13, "int32", True),
    },
    "Function": {"name": (1, "string", False)},
    "AttrList": {
        "s": (2, "bytes", True), "i": (3, "int64", True), "f": (4, "float", True), "b": (5, "bool", True),
        "type": (6, "int32", True), "shape": (7, "TensorShape", True), "tensor": (8, "Tensor", True),
        "func": (9, "Function", True),
    },
    "Attr": {
        "list": (1, "AttrList", False), "s": (2, "bytes", False), "i": (3, "int64", False),
        "f": (4, "float", False), "b": (5, "bool", False), "type": (6, "int32", False),
        "shape": (7, "TensorShape", False), "tensor": (8, "Tensor", False),
        "placeholder": (9, "string", False), "func": (10, "Function", False),
    },
    "Node": {
        "name": (1, "string", False), "op": (2, "string", False), "input": (3, "string", True),
        "attr": (5, "map:Attr", True),
    },
    "Arg": {"name": (1, "string", False), "type": (3, "int32", False)},
    "OpDef": {"name": (1, "string", False), "input_arg": (2, "Arg", True), "output_arg": (3, "Arg", True)},
    "FunctionDef": {
        "signature": (1, "OpDef", False), "node_def": (3, "Node", True), "ret": (4, "map:string", True),
    },
    "Library": {"function": (1, "FunctionDef", True)},
    "Graph": {"node": (1, "Node", True), "library": (2, "Library", False)},
    "TensorInfo": {
        "name": (1, "string", False), "dtype": (2, "int32", False), "tensor_shape": (3, "TensorShape", False),
    },
    "Signature": {"inputs": (1, "map:TensorInfo", True), "outputs": (2, "map:TensorInfo", True)},
    "MetaInfo": {"tags": (4, "string", True), "tensorflow_version": (5, "string", False)},
    "MetaGraph": {
        "meta_info_def": (1, "MetaInfo", False), "graph_def": (2, "Graph", False),
        "signature_def": (5, "map:Signature", True),
    },
    "SavedModel": {"saved_model_schema_version": (1, "int64", False), "meta_graphs": (2, "MetaGraph", True)},
}  # fmt: skip
TYPES: Final = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64",
    9: "int64", 10: "bool", 11: "qint8", 12: "quint8", 13: "qint32", 14: "bfloat16", 17: "uint16",
    19: "float16", 20: "resource", 21: "variant", 22: "uint32", 23: "uint64",
}  # fmt: skip
"""TensorFlow's numbers of types; those above 100 are references to them."""


def type_name(number: int) -> str:
    return TYPES.get(number % 100, f"type {number}") if number else ""


def read_message(path: Path, kind: str) -> Any:
    """A file of one of the messages, in binary or, where it ends so, in text."""
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    message = _messages()[kind]()
    try:
        data = path.read_bytes()
        if path.suffix == ".pbtxt":
            text_format.Parse(data.decode(), message, allow_unknown_field=True)
        else:
            message.ParseFromString(data)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}") from error
    except (DecodeError, UnicodeDecodeError, text_format.ParseError, RecursionError) as error:
        raise ModelError(
            f"{path}: it is no {kind} of TensorFlow, or damaged: {error}", hint="was it written to the end?"
        ) from error
    return message


@cache
def _messages() -> dict[str, Any]:
    """A class for each message, made from the table."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="openqnn_tensorflow.proto", package=PACKAGE, syntax="proto3"
    )
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, repeated) in fields.items():
            _add_field(message, field, number, kind, repeated)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in _FIELDS
    }


def _add_field(message: Any, name: str, number: int, kind: str, repeated: bool) -> None:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    added = message.field.add(
        name=name, number=number, label=Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
    )
    if kind.startswith("map:"):
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _add_field(entry, "key", 1, "string", False)
        _add_field(entry, "value", 2, kind.removeprefix("map:"), False)
        added.type, added.type_name = Field.TYPE_MESSAGE, f".{PACKAGE}.{message.name}.{entry.name}"
    elif kind[0].isupper():
        added.type, added.type_name = Field.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
    else:
        added.type = Field.Type.Value(f"TYPE_{kind.upper()}")
