"""The adapter that Model Explorer loads: any file that OpenQNN's viewer opens, as Model Explorer's graphs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from model_explorer import Adapter, AdapterMetadata, ModelExplorerGraphs
from model_explorer.graph_builder import Graph, GraphNode, IncomingEdge, KeyValue, MetadataItem

from openqnn.viewer.open_views import open_views
from openqnn.viewer.view import Overlay, View, ViewNode, ViewTensor

_PATH = re.compile(r"(?:^|\s)/?((?:[\w.\-]+/)+)[\w.\-]+")
"""A name with slashes in the words about a node's source: `onnx node /decoder/up/Resize`."""


class OpenqnnAdapter(Adapter):
    """Graphs of QNN and of the models that become them."""

    metadata: ClassVar = AdapterMetadata(
        id="openqnn",
        name="OpenQNN",
        description="QNN graphs: DLC, .oqnn, context binaries, net.json",
        fileExts=["dlc", "oqnn", "bin", "json", "onnx"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        """Every graph of the file; errors of OpenQNN reach the page with their hint."""
        views = open_views(model_path)
        ids = _unique([view.title for view in views])
        return {"graphs": [_graph(view, name) for view, name in zip(views, ids, strict=True)]}


def _unique(names: Sequence[str]) -> list[str]:
    return [name if names.index(name) == i else f"{name} {i}" for i, name in enumerate(names)]


def _graph(view: View, name: str) -> Graph:
    nodes = [_node(node, number, view.overlays) for number, node in enumerate(view.nodes)]
    for maker, reader, tensor in view.edges():
        source, target = view.nodes[maker], view.nodes[reader]
        edge = IncomingEdge(str(maker), _place(source.outputs, tensor), _place(target.inputs, tensor))
        nodes[reader].incomingEdges.append(edge)
    return Graph(id=name, nodes=nodes, groupNodeAttributes={"": dict(view.facts)})


def _place(tensors: Sequence[ViewTensor], name: str) -> str:
    return str(next(i for i, tensor in enumerate(tensors) if tensor.name == name))


def _node(node: ViewNode, number: int, overlays: Sequence[Overlay]) -> GraphNode:
    told = {"name": node.name, "source": node.source, **node.params}
    told |= {o.title: f"{o.values[node.name]:,g} {o.unit}".strip() for o in overlays if node.name in o.values}
    return GraphNode(
        id=str(number),
        label=node.op,
        namespace=_namespace(node),
        attrs=[KeyValue(key, value) for key, value in told.items() if value],
        inputsMetadata=_metadata(node.inputs),
        outputsMetadata=_metadata(node.outputs),
    )


def _namespace(node: ViewNode) -> str:
    """The modules around a node: as the view knows them, else by the slashes of names."""
    scope = getattr(node, "scope", "")
    found = _PATH.search(node.source) or _PATH.search(node.name)
    return str(scope) if scope else found[1].strip("/") if found else ""


def _metadata(tensors: Sequence[ViewTensor]) -> list[MetadataItem]:
    return [MetadataItem(str(i), _tensor(tensor)) for i, tensor in enumerate(tensors)]


def _tensor(tensor: ViewTensor) -> list[KeyValue]:
    told = {
        "__tensor_tag": tensor.name,
        "tensor_name": tensor.name,
        "shape": tensor.dtype
        if tensor.shape is None
        else f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]",
        "quantization": tensor.encoding,
        "encoding from": tensor.origin,
    }
    return [KeyValue(key, value) for key, value in told.items() if value]
