"""Walks the layers of a Caffe network and lets the translators build the QNN graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from openqnn.errors import ModelError
from openqnn.formats.encodings import Parameter
from openqnn.frontends.caffe import detection, elementwise, layers, norm, shape
from openqnn.frontends.caffe.network import Layer
from openqnn.frontends.caffe.table import TABLE
from openqnn.frontends.custom_ops import custom_translator
from openqnn.frontends.dimensions import Dimensions, SourceInput, input_shape
from openqnn.frontends.importer import BaseImporter
from openqnn.frontends.registry import Translator
from openqnn.frontends.signature import BASIC_KINDS, Signature, call, signature_of
from openqnn.frontends.translation import Refused
from openqnn.ir import Array, DType, Value

# Their translators are in the table once they are imported.
FAMILIES: Final = (detection, elementwise, layers, norm, shape)
# Fields that change nothing in inference.
IDLE: Final = frozenset({
    "engine", "moving_average_fraction", "debug_info", "visualize", "visualize_threshold", "save_file",
    "save_output_param", "objectness_score", "stable_prod_grad", "force_nd_im2col", "dropout_ratio",
    "scale_train", "normalized_bbox",
})  # fmt: skip
KINDS: Final = {**BASIC_KINDS, "bool": (bool, int), "dict[str, Any]": dict}


class Importer(BaseImporter[Layer]):
    """Translates one network; `weights` are the blobs of its layers."""

    framework = "caffe"

    def __init__(
        self,
        name: str,
        layers: Sequence[Layer],
        inputs: Sequence[SourceInput],
        outputs: Sequence[str],
        weights: Mapping[str, list[Array]],
        dimensions: Dimensions,
    ) -> None:
        self.layers, self.wanted = layers, outputs
        self.blobs = {
            layer.name: [f"{layer.name}.{_label(layer.type, i)}" for i in range(len(weights[layer.name]))]
            for layer in layers
            if layer.name in weights
        }
        arrays = {
            name: blob
            for layer, names in self.blobs.items()
            for name, blob in zip(names, weights[layer], strict=True)
        }
        names = [i.name for i in inputs] + [top for layer in layers for top in layer.tops]
        super().__init__(name, dimensions, arrays, inputs, [*names, *arrays])

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Filters and matrices have output channels first, transposed filters input channels."""
        turned = {layer.name for layer in self.layers if layer.type == "Deconvolution"}
        return {
            name: Parameter(a.shape, *((1, 0) if name.rpartition(".")[0] in turned else (0, 1)))
            if a.ndim > 1
            else Parameter(a.shape)
            for name, a in self.arrays.items()
        }

    def nodes(self) -> Sequence[Layer]:
        return self.layers

    def add_inputs(self) -> None:
        def add(source: SourceInput) -> Value:
            return self.graph.add_input(source.name, DType.FLOAT_32, input_shape(source, self.dimensions))

        self.add_all_inputs(add)

    def add_outputs(self) -> None:
        for name in self.wanted:
            value = self.env.get(name)
            if not isinstance(value, Value):
                raise ModelError(f"output '{name}' is not produced by any layer")
            self.add_output(name, value, DType.FLOAT_32)

    def translate(self, node: Layer) -> None:
        """What lies behind a layer that was refused is looked at only for layers that are not known."""
        lost = next((name for name in node.bottoms if name not in self.names), None)
        if lost is not None:
            self.add_problem(node.type, node.name, f"it reads '{lost}', which no layer gives")
        elif all(name in self.env for name in node.bottoms):
            self.attempt(node.type, node.name, lambda: self._translate(node))
        else:
            try:
                _translator_of(node)
            except Refused as e:
                self.add_problem(node.type, node.name, e.message, e.hint)

    def _translate(self, node: Layer) -> None:
        self.t.begin(node.type, f"caffe layer {node.name}", node.tops)
        translator = _translator_of(node)
        known = signature_of(translator)
        given = {k: _plain(known, k, v) for k, v in node.params.items() if not _is_idle(k)}
        if "blobs" in known.attributes:
            given["blobs"] = self._blobs(node, needed="blobs" in known.required)
        inputs = [self.env[name] for name in node.bottoms]
        results = call(translator, self.t, inputs, given, kinds=KINDS)
        results = list(results) if isinstance(results, list | tuple) else [results]
        if len(results) < len(node.tops):
            raise Refused(f"{len(node.tops)} tops are declared, it has {len(results)}")
        self.bind(node.tops, results, node.name)

    def _blobs(self, node: Layer, *, needed: bool) -> list[Value]:
        names = self.blobs.get(node.name, [])
        if needed and not names:
            hint = "do the .prototxt and the .caffemodel belong together?"
            raise Refused("the file of weights has none for it", hint=hint)
        return [self.env[name] for name in names]


def _translator_of(node: Layer) -> Translator:
    found = custom_translator(node.type) or TABLE.find(node.type)
    if found is None:
        raise Refused(
            f"layers of type {node.type or 'none'} are not known",
            hint=f"say what it is with @openqnn.composite('', '{node.type}') in a file for --custom_ops,"
            " describe it in an op package, or end the graph before it",
        )
    return found


# Types whose layers need weights, and what their blobs are called; others have blobs in some forms only.
_LABELS: Final = {
    **dict.fromkeys(("Convolution", "Deconvolution", "InnerProduct", "Embed"), ("weight", "bias")),
    **dict.fromkeys(("ConvolutionDepthwise", "DepthwiseConvolution"), ("weight", "bias")),
    "BatchNorm": ("mean", "variance", "factor"), "PReLU": ("slope",), "Normalize": ("scale",),
}  # fmt: skip
WEIGHTED: Final = frozenset(_LABELS)


def _label(kind: str, index: int) -> str:
    names = _LABELS.get(kind, ("weight", "bias") if kind == "Scale" else ())
    return names[index] if index < len(names) else f"blob{index}"


def _is_idle(key: str) -> bool:
    return key in IDLE or key.endswith("filler")


def _plain(known: Signature, key: str, values: list[Any]) -> Any:
    """A field that may be repeated stays a list; of the others the last one counts, as in protobuf."""
    kinds = known.attributes.get(key, ())
    listed = next((k for k in kinds if k.startswith("list[")), "")
    if not listed:
        return values[-1] if values else None
    wanted = (int,) if listed == "list[int]" else (int, float)
    wrong = next((v for v in values if not isinstance(v, wanted)), None)
    if wrong is not None:
        raise Refused(f"'{key}' is {wrong!r}, {'integers' if wanted == (int,) else 'numbers'} are expected")
    return values
