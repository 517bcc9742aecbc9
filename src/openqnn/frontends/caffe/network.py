"""A network as it runs in inference: its layers and inputs, every blob with one writer and a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from openqnn.errors import ModelError, UsageError
from openqnn.frontends.caffe.prototxt import Message
from openqnn.frontends.dimensions import SourceInput

LEFT_OUT: Final = frozenset({"Accuracy", "Silence"})
DATA: Final = frozenset(
    {"Data", "ImageData", "HDF5Data", "AnnotatedData", "MemoryData", "WindowData", "DummyData"}
)
NO_PARAMETERS: Final = frozenset({"transform_param", "loss_param", "input_param", "data_param"})
OLD_TYPES: Final = {
    "ABSVAL": "AbsVal", "ARGMAX": "ArgMax", "BNLL": "BNLL", "CONCAT": "Concat", "CONVOLUTION": "Convolution",
    "DECONVOLUTION": "Deconvolution", "DROPOUT": "Dropout", "ELTWISE": "Eltwise", "EXP": "Exp",
    "FLATTEN": "Flatten", "INNER_PRODUCT": "InnerProduct", "LRN": "LRN", "MVN": "MVN", "POOLING": "Pooling",
    "POWER": "Power", "RELU": "ReLU", "SIGMOID": "Sigmoid", "SLICE": "Slice", "SOFTMAX": "Softmax",
    "SPLIT": "Split", "TANH": "TanH", "THRESHOLD": "Threshold", "SILENCE": "Silence", "ACCURACY": "Accuracy",
    "DATA": "Data", "IMAGE_DATA": "ImageData", "HDF5_DATA": "HDF5Data", "SOFTMAX_LOSS": "SoftmaxWithLoss",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of the network, with the names of its blobs as no other layer has them."""

    name: str
    type: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    params: Mapping[str, list[Any]]


@dataclass(frozen=True, slots=True)
class Network:
    """What a .prototxt says, for inference."""

    name: str
    layers: Sequence[Layer]
    inputs: Sequence[SourceInput]


def read_network(message: Message, stem: str) -> Network:
    """The network of the outermost message; `stem` is its name where it has none."""
    layers = _renamed([layer for layer in map(_layer, _layer_messages(message)) if layer is not None])
    inputs = _inputs(message, layers)
    name = str((message.get("name") or [stem])[-1]) or stem
    return Network(name, [layer for layer in layers if layer.type != "Input"], inputs)


def _layer_messages(message: Message) -> list[Message]:
    found = [*message.get("layer", []), *message.get("layers", [])]
    if not found or not all(isinstance(layer, dict) for layer in found):
        hint = "is it the .prototxt of a network, or of a solver?"
        raise ModelError("the network has no layers", hint=hint)
    if any("layer" in layer for layer in found):
        hint = "Caffe's upgrade_net_proto_text writes it in the form of today"
        raise ModelError("the network is in the oldest form, with layers inside layers", hint=hint)
    return found


def _layer(message: Message) -> Layer | None:
    """A layer as it runs in inference; None for those of training."""
    phases = [rule.get("phase", [""])[-1] for rule in message.get("include", []) if isinstance(rule, dict)]
    without = [rule.get("phase", [""])[-1] for rule in message.get("exclude", []) if isinstance(rule, dict)]
    kind = str((message.get("type") or [""])[-1])
    kind = OLD_TYPES.get(kind, kind)
    if (phases and all(p == "TRAIN" for p in phases)) or "TEST" in without or kind in LEFT_OUT:
        return None
    name = str((message.get("name") or [kind])[-1])
    bottoms, tops = (tuple(map(str, message.get(key, []))) for key in ("bottom", "top"))
    return Layer(name, kind, bottoms, tops, _params(message, kind))


def _params(message: Message, kind: str) -> dict[str, list[Any]]:
    """The fields of a layer's messages of parameters, of which it usually has one."""
    if kind == "Input":
        given = [p for p in message.get("input_param", []) if isinstance(p, dict)]
        return {"shape": [s for p in given for s in p.get("shape", []) if isinstance(s, dict)]}
    found: dict[str, list[Any]] = {}
    for key, values in message.items():
        if key.endswith("_param") and key not in NO_PARAMETERS:
            for part in (v for v in values if isinstance(v, dict)):
                found.update(part)
    return found


def _renamed(layers: Sequence[Layer]) -> list[Layer]:
    """Layers whose blobs have one writer each: in Caffe a layer may write over what it reads.

    The last writer keeps the blob's name; what others wrote is named by blob and layer.
    """
    last = {top: index for index, layer in enumerate(layers) for top in layer.tops}
    current: dict[str, str] = {}
    made: list[Layer] = []
    for index, layer in enumerate(layers):
        bottoms = tuple(current.get(b, b) for b in layer.bottoms)
        tops = tuple(top if last[top] == index else f"{top}.{layer.name}" for top in layer.tops)
        current.update(zip(layer.tops, tops, strict=True))
        made.append(Layer(layer.name, layer.type, bottoms, tops, layer.params))
    return made


# -- inputs --------------------------------------------------------------------------------------------------


def _inputs(message: Message, layers: Sequence[Layer]) -> list[SourceInput]:
    """Inputs in each of the three ways in which networks declare them."""
    names = [str(n) for n in message.get("input", [])]
    shapes = [s.get("dim", []) for s in message.get("input_shape", []) if isinstance(s, dict)]
    flat = message.get("input_dim", [])
    shapes += [flat[i : i + 4] for i in range(0, len(flat), 4)]
    found = [SourceInput(n, _sizes(shapes[i]) if i < len(shapes) else None) for i, n in enumerate(names)]
    for layer in layers:
        if layer.type in DATA:
            hint = "take the network for inference, usually deploy.prototxt, whose first layer is Input"
            raise ModelError(f"layer '{layer.name}' reads a data set ({layer.type})", hint=hint)
        if layer.type == "Input":
            found += _tops_of_input(layer)
    if not found:
        raise ModelError("the network declares no input", hint="deploy.prototxt has a layer of type Input")
    return found


def _tops_of_input(layer: Layer) -> list[SourceInput]:
    dims = [s.get("dim", []) for s in layer.params["shape"]]
    known = [_sizes(d) for d in dims] or [None]
    return [SourceInput(top, known[min(i, len(known) - 1)]) for i, top in enumerate(layer.tops)]


def _sizes(dims: Sequence[Any]) -> tuple[int | str, ...]:
    return tuple(int(d) if isinstance(d, int) and d > 0 else "?" for d in dims)


# -- outputs -------------------------------------------------------------------------------------------------


def results(layers: Sequence[Layer]) -> list[str]:
    """Blobs that no layer reads."""
    read = {name for layer in layers for name in layer.bottoms}
    found = [top for layer in layers for top in layer.tops if top not in read]
    if not found:
        raise ModelError("the network has no output: every blob is read by a layer")
    return found


def needed(layers: Sequence[Layer], wanted: Sequence[str]) -> list[Layer]:
    """The layers that compute the wanted blobs."""
    makers: Mapping[str, Layer] = {top: layer for layer in layers for top in layer.tops}
    unknown = next((name for name in wanted if name not in makers), None)
    if unknown is not None:
        near = get_close_matches(unknown, makers, 3)
        hint = f"near: {', '.join(near)}" if near else ""
        raise UsageError(f"the network has no blob '{unknown}'", hint=hint)
    waiting, kept = list(wanted), set[int]()
    while waiting:
        layer = makers.get(waiting.pop())
        if layer is not None and id(layer) not in kept:
            kept.add(id(layer))
            waiting += layer.bottoms
    return [layer for layer in layers if id(layer) in kept]
