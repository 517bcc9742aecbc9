"""EPContext models: a context binary in an ONNX model that ONNX Runtime's QNN execution provider loads.

One node per graph of the binary. The first one has the binary, in the model or in a file beside it; the
others share it. The provider finds a graph by the name of its node.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from openqnn.errors import ModelError, UsageError
from openqnn.formats.atomic import replacing, together
from openqnn.formats.beside import file_beside
from openqnn.ir import DType
from openqnn.qnn.context_info import ContextInfo, GraphInfo
from openqnn.qnn.net import Array, NetTensor

if TYPE_CHECKING:
    import onnx

DOMAIN = "com.microsoft"
SOURCE = "QNNExecutionProvider"
CHECKSUM = "openqnn.context.crc32"
"""The property of the model with the CRC-32 of its context binary."""
LARGEST_EMBEDDED = (1 << 31) - (1 << 20)  # a protobuf message ends at 2 GiB
_CONTEXT = b"\0\0\0\x02"
_READABLE = ("qnnexecutionprovider", "qnn")


def _context_graph(info: ContextInfo, name: str, cache: bytes | str, embed: bool) -> onnx.GraphProto:
    """One EPContext node for each graph of the context; the first one holds or names the binary."""
    import onnx

    nodes = [
        _node(graph, cache if index == 0 else None, embed, info) for index, graph in enumerate(info.graphs)
    ]
    inputs = {t.tensor.name: t.tensor for graph in info.graphs for t in graph.inputs}
    outputs = {t.tensor.name: t.tensor for graph in info.graphs for t in graph.outputs}
    return onnx.helper.make_graph(
        nodes, name, [_value(t) for t in inputs.values()], [_value(t) for t in outputs.values()]
    )


def write_epcontext(
    path: str | os.PathLike[str], blob: Array, info: ContextInfo, *, embed: bool = True, name: str = ""
) -> list[Path]:
    """Write the model, and with `embed=False` the binary as <stem>_qnn.bin beside it; gives the files."""
    target = Path(path)
    if embed and blob.nbytes > LARGEST_EMBEDDED:
        raise UsageError(
            f"{target}: the binary is too large for an ONNX file", hint="write it beside the model"
        )
    beside = target.with_name(f"{target.stem}_qnn.bin")
    if not embed:
        return write_epcontexts({target: info}, beside, blob, name)
    model = _model(_context_graph(info, name or target.stem, blob.tobytes(), True), blob)
    with replacing(target) as file:
        file.write(model.SerializeToString())
    return [target]


def write_epcontexts(
    models: Mapping[Path, ContextInfo], binary: Path, blob: Array, name: str = ""
) -> list[Path]:
    """Write a binary, and models that name it, each with its own graphs of it; gives the files."""
    with together():
        with replacing(binary) as file:
            file.write(blob.data)
        for target, info in models.items():
            if target.parent != binary.parent:
                raise UsageError(f"{target}: a context model stands in the folder of its binary, {binary}")
            graph = _context_graph(info, name or target.stem, binary.name, False)
            with replacing(target) as file:
                file.write(_model(graph, blob).SerializeToString())
    return [*models, binary]


def _model(graph: onnx.GraphProto, blob: Array) -> onnx.ModelProto:
    import onnx

    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid(DOMAIN, 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="openqnn")
    # A property of the model, since ONNX Runtime refuses attributes that the node's schema lacks.
    onnx.helper.set_model_props(model, {CHECKSUM: f"{zlib.crc32(blob.data):08x}"})
    return model


def _node(graph: GraphInfo, cache: bytes | str | None, embed: bool, info: ContextInfo) -> Any:
    import onnx

    attributes: dict[str, Any] = {}
    if cache is not None:
        attributes["ep_cache_context"] = cache
    # The reader's own default for main_context is 0, so it is always written.
    attributes |= {
        "main_context": int(cache is not None),
        "embed_mode": int(embed),
        "ep_sdk_version": info.build_id,
        "partition_name": graph.name,
        "source": SOURCE,
    }
    names = [[t.tensor.name for t in tensors] for tensors in (graph.inputs, graph.outputs)]
    node = onnx.helper.make_node("EPContext", *names, name=graph.name, domain=DOMAIN)
    for key, value in attributes.items():
        node.attribute.append(onnx.helper.make_attribute(key, value))
    return node


def _value(tensor: NetTensor) -> Any:
    import onnx

    dtype = DType(tensor.dtype)
    kind = onnx.helper.np_dtype_to_tensor_dtype(dtype.numpy)
    return onnx.helper.make_tensor_value_info(tensor.name, kind, tensor.dims)


@dataclass(frozen=True, slots=True)
class EpContext:
    """What an EPContext model holds: the bytes of the binary, or where it is."""

    data: bytes | None
    file: Path | None
    partitions: tuple[str, ...]
    sdk_version: str
    checksum: str = ""

    def binary(self) -> bytes:
        """The context binary; ModelError where it does not have its checksum."""
        assert self.data is not None or self.file is not None
        found = self.data if self.data is not None else cast(Path, self.file).read_bytes()
        if self.checksum and f"{zlib.crc32(found):08x}" != self.checksum:
            what = self.file or "the context binary in the model"
            hint = "compile it again, and keep both files of one compilation together"
            raise ModelError(f"{what} is damaged, or another model's: its checksum differs", hint=hint)
        return found


def _contexts_of_qnn(file: Path, model: onnx.ModelProto) -> list[dict[str, Any]]:
    """The attributes of the EPContext nodes that hold contexts of QNN; ModelError where there are none."""
    found = [_attributes(node) for node in model.graph.node if node.op_type == "EPContext"]
    ours = [a for a in found if str(a.get("source", "")).lower() in _READABLE]
    if not ours:
        others = ", ".join(sorted({str(a.get("source", "unknown")) for a in found}))
        reason = f"its contexts are of {others}" if found else "it has no EPContext node"
        raise ModelError(f"{file} holds no QNN context: {reason}")
    return ours


def graphs_without_binary(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The graphs of a model whose nodes all share the context of another model; () where one has a binary."""
    nodes = _contexts_of_qnn(Path(path), _read(Path(path)))
    if any("ep_cache_context" in node for node in nodes):
        return ()
    return tuple(str(node["name"]) for node in nodes)


def _read(file: Path) -> onnx.ModelProto:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        return onnx.ModelProto.FromString(file.read_bytes())
    except OSError as error:
        raise ModelError(f"{file}: {error.strerror or error}") from error
    except (DecodeError, ValueError) as error:
        raise ModelError(f"{file} is not an ONNX model") from error


def read_epcontext(path: str | os.PathLike[str]) -> EpContext:
    """Find the context binary of a model; ModelError where there is none, or more than one."""
    file = Path(path)
    model = _read(file)
    ours = _contexts_of_qnn(file, model)
    mains = [a for a in ours if "ep_cache_context" in a]
    if len(mains) != 1:
        raise ModelError(f"{file} has {len(mains)} context binaries, and one can be run at a time")
    partitions = tuple(str(a["name"]) for a in ours)
    main = mains[0]
    sdk = str(main.get("ep_sdk_version", ""))
    checksum = next((p.value for p in model.metadata_props if p.key == CHECKSUM), "")
    return _context(file, main, (partitions, sdk, checksum))


def _context(file: Path, main: dict[str, Any], about: tuple[tuple[str, ...], str, str]) -> EpContext:
    """What the main node has: the binary itself, or the name of its file."""
    cache = main["ep_cache_context"]
    if not isinstance(cache, bytes) or not cache:
        raise ModelError(f"{file}: ep_cache_context is no text or binary, but {type(cache).__name__}")
    embedded = main.get("embed_mode", 1)
    if embedded not in (0, 1):
        raise ModelError(f"{file}: embed_mode is {embedded!r}: 1 is a binary in the model, 0 a file")
    if not embedded:
        return EpContext(None, _beside(file, cache), *about)
    _check_embedded(file, cache, "embed_mode" in main)
    return EpContext(cache, None, *about)


def _check_embedded(model: Path, cache: bytes, said: bool) -> None:
    """A name of a file is no context binary, though a model without embed_mode says so."""
    if cache.startswith(_CONTEXT):
        return
    about = "" if said else ", and embed_mode, which would tell, is missing"
    raise ModelError(f"{model}: what it holds is no context binary ({len(cache)} bytes){about}")


def _attributes(node: Any) -> dict[str, Any]:
    """Attributes by name. The binary stays bytes; other strings become text."""
    import onnx

    found: dict[str, Any] = {"name": node.name}
    for attribute in node.attribute:
        value: Any = onnx.helper.get_attribute_value(attribute)
        plain = isinstance(value, bytes) and attribute.name != "ep_cache_context"
        found[attribute.name] = value.decode(errors="replace") if plain else value
    return found


def _beside(model: Path, said: bytes) -> Path:
    """The provider takes files of the model's own folder only, and so does this."""
    name = said.decode(errors="replace")
    try:
        return file_beside(model, name)
    except ValueError as error:
        raise ModelError(f"{model} refers to {name}, outside its own folder") from error
    except FileNotFoundError as error:
        raise ModelError(f"{model} refers to {name}, which is not there") from error
