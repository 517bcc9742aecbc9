"""model.cpp: a graph as C++ source, for qnn-model-lib-generator and for eyes.

Compiles with the headers of this package and with those of the vendor's SDK; every initialiser names its
fields, which g++ and clang++ accept alike from C++11 on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from openqnn.emit import cpp_values as text
from openqnn.emit.emission_order import Identifiers, WeightNames, emission_steps, input_names, unique_params
from openqnn.formats.atomic import replacing
from openqnn.qnn.marshal import static_data
from openqnn.qnn.net import Net, NetNode, NetScalar, NetTensor, TensorKind, qnn_name

SDK_VERSION = "qaisw-v2.47.0.000000000000_openqnn"
"""In the form that readers of model libraries expect; the package's headers declare the interface of 2.47."""

_LINE_END = "\n"
DEFAULT_PREFIX = "QnnModel"


@dataclass(frozen=True, slots=True)
class CppOptions:
    """What the converter's flags change in the source: names of functions, comments, validation of nodes."""

    prefix: str = DEFAULT_PREFIX
    copyright: str = ""
    command: str = ""
    validate: bool = True
    sdk_version: str = SDK_VERSION
    seal: str = ""
    """A line that tells the model.bin that belongs to it."""


def write_cpp(
    nets: Sequence[Net],
    path: str | os.PathLike[str],
    options: CppOptions | None = None,
    weights: WeightNames | None = None,
) -> None:
    """Writes the source piece by piece. `weights` are the names in model.bin, when it is written as well."""
    with replacing(path) as file:
        for piece in print_cpp(nets, options, weights):
            file.write(piece.encode())


def print_cpp(
    nets: Sequence[Net], options: CppOptions | None = None, weights: WeightNames | None = None
) -> Iterator[str]:
    """The source, in pieces of whole lines."""
    options = options or CppOptions()
    weights = weights or WeightNames(nets)
    graphs = [
        _Graph(unique_params(net), index, weights, several=len(nets) > 1) for index, net in enumerate(nets)
    ]
    yield _head(options)
    for graph in graphs:
        yield from graph.functions()
    yield from _compose(graphs, options)
    yield from _free(options)


def _head(options: CppOptions) -> str:
    validate = int(options.validate)
    return (
        f"{_comment(options.copyright or 'No copyright text was given to the converter.')}\n"
        f"{_comment('Command Line used:', options.command)}\n"
        '#include "QnnOpDef.h"\n'
        '#include "QnnModel.hpp"\n\n'
        f"{options.seal}{_LINE_END if options.seal else ''}"
        "// Flag to determine if the backend should validate each node before it is added\n"
        f"#define DO_GRAPH_NODE_VALIDATIONS {validate}\n\n"
        "using namespace qnn_wrapper_api;\n"
        '__attribute__((visibility("default"))) const char* QNN_SDK_VERSION = '
        f"{text.string(options.sdk_version)};\n"
        'extern "C" {\n'
    )


def _comment(*paragraphs: str) -> str:
    lines = "\n".join(paragraphs).replace("*/", "* /").splitlines()
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"])


class _Graph:
    """The functions of one graph. Where a file holds several graphs, their names carry the graph's."""

    def __init__(self, net: Net, index: int, weights: WeightNames, *, several: bool) -> None:
        self.net = net
        self.variable = text.variable(net.name)
        self._index, self._weights = index, weights
        prefix = f"{qnn_name(net.name)}_" if several else ""
        self._functions = Identifiers(prefix), Identifiers(prefix)  # of tensors, of nodes
        self._locals = Identifiers()
        self.calls: list[str] = []

    def functions(self) -> Iterator[str]:
        for step in emission_steps(self.net):
            if isinstance(step, NetTensor):
                name = f"addTensor_{self._functions[0].of(step.name)}"
                body = self._tensor_body(step)
            else:
                name = f"addNode_{self._functions[1].of(step.name)}"
                body = self._node_body(step)
            self.calls.append(name)
            yield f"static ModelError_t {name}(QnnModel& model)\n{{\n  ModelError_t err = MODEL_NO_ERROR;\n"
            yield from body
            yield "  return err;\n}\n\n"

    def _tensor_body(self, tensor: NetTensor) -> Iterator[str]:
        yield from self._arrays(tensor)
        data, size = "nullptr", "0"
        if tensor.kind is TensorKind.STATIC:
            member = self._weights.of(self._index, tensor.name)
            data, size = f"BINVARSTART({member})", f"BINLEN({member})"
        literal = self._literal(tensor, data, size, "      ")
        yield (
            f"  VALIDATE(model.addTensor({text.string(tensor.name)}, // Tensor Name\n"
            f"      {literal}\n  ), err);\n"
        )

    def _node_body(self, node: NetNode) -> Iterator[str]:
        label = self._locals.of(node.name)
        yield f"  /* ADDING NODE FOR {_one_line(node.name)} */\n"
        params, inputs = list(node.params), input_names(node)
        for _, value in params:
            if isinstance(value, NetTensor):
                yield from self._arrays(value)
                yield from _values(value, self._array_name(value))
        if params:
            yield f"  Qnn_Param_t params_{label}[] = {{\n"
            yield ",\n".join(self._param(name, value) for name, value in params)
            yield "\n  };\n"
        if inputs:
            yield f"  const char* inputs_{label}[] = {{\n"
            yield ",\n".join(f"    {text.string(name)}" for name in inputs)
            yield "\n  };\n"
        outputs = [self.net.tensors[name] for name in node.outputs]
        for output in outputs:
            yield from self._arrays(output)
        yield f"  Qnn_Tensor_t outputs_{label}[] = {{\n"
        yield ",\n".join(f"    {self._literal(output, 'nullptr', '0', '    ')}" for output in outputs)
        yield "\n  };\n"
        yield (
            "  VALIDATE(model.addNode(QNN_OPCONFIG_VERSION_1, // Op_Config_t Version\n"
            f"      {text.string(node.name)}, // Node Name\n"
            f"      {text.string(node.package)}, // Package Name\n"
            f"      {text.string(node.op)}, // Qnn Node Type\n"
            f"      {f'params_{label}' if params else 'nullptr'}, // Node Params\n"
            f"      {len(params)}, // Num Node Params\n"
            f"      {f'inputs_{label}' if inputs else 'nullptr'}, // Input Tensor Names\n"
            f"      {len(inputs)}, // Num Input Tensor Names\n"
            f"      outputs_{label}, // Output Tensors\n"
            f"      {len(outputs)} // Num Output Tensors\n"
            "  ), err);\n"
        )

    def _param(self, name: str, value: NetScalar | NetTensor) -> str:
        if isinstance(value, NetScalar):
            number = f".{text.scalar_field(value.dtype)}= {text.scalar(value)}"
            return (
                f"    {{.paramType= QNN_PARAMTYPE_SCALAR, .name= {text.string(name)},\n"
                f"     .scalarParam= (Qnn_Scalar_t){{.dataType= {text.dtype(value.dtype)}, {number}}}}}"
            )
        data = static_data(value, text.stored(value))
        array = f"(uint8_t*){self._array_name(value)}" if data.nbytes else "nullptr"
        literal = self._literal(value, array, str(data.nbytes), "         ")
        return (
            f"    {{.paramType= QNN_PARAMTYPE_TENSOR, .name= {text.string(name)},\n"
            f"     .tensorParam= {literal}}}"
        )

    def _array_name(self, tensor: NetTensor) -> str:
        return text.variable(self._locals.of(tensor.name))

    def _arrays(self, tensor: NetTensor) -> Iterator[str]:
        """The arrays that a tensor's literal points to: dimensions, and encodings of the channels."""
        label = self._locals.of(tensor.name)
        if tensor.kind is not TensorKind.NULL:
            dims = ", ".join(map(str, tensor.dims or (1,)))
            yield f"  uint32_t dimensions_{label}[] = {{{dims}}};\n"
        quant = tensor.quant
        if quant is None or quant.axis is None:
            return
        if quant.bitwidth is None or quant.multiples:
            pairs = zip(quant.scales, quant.offsets, strict=True)
            items = [f"{{.scale= {text.scale(s)}, .offset= {o}}}" for s, o in pairs]
            yield from _array("Qnn_ScaleOffset_t", f"scaleOffset_{label}", items, 3)
            if quant.multiples:
                numbers = map(str, quant.multiples)
                yield from _array(f"uint{quant.multiple_storage}_t", f"multiples_{label}", numbers, 16)
                literal = text.expansion(tensor, quant, label)
                yield f"  Qnn_BlockwiseExpansion_t expansion_{label} = {literal};\n"
        else:
            yield from _array("float", f"scales_{label}", [text.scale(s) for s in quant.scales], 3)
            yield from _array("int32_t", f"offsets_{label}", [str(o) for o in quant.offsets], 16)

    def _literal(self, tensor: NetTensor, data: str, size: str, indent: str) -> str:
        label = self._locals.of(tensor.name)
        is_null = tensor.kind is TensorKind.NULL
        fields = (
            ".id=0",
            f".name= {text.string(tensor.name)}",
            f".type= QNN_TENSOR_TYPE_{tensor.kind.name}",
            ".dataFormat= QNN_TENSOR_DATA_FORMAT_DENSE",
            f".dataType= {text.dtype(tensor.dtype)}",
            f".quantizeParams= {text.quantization(tensor.quant, label)}",
            f".rank= {0 if is_null else len(tensor.dims or (1,))}",
            f".dimensions= {'nullptr' if is_null else f'dimensions_{label}'}",
            ".memType= QNN_TENSORMEMTYPE_RAW",
            f".clientBuf= {{.data= {data}, .dataSize= {size}}}",
            ".isDynamicDimensions= nullptr",
            ".sparseParams= {.type= QNN_SPARSE_LAYOUT_UNDEFINED, .hybridCoo= {.numSpecifiedElements= 0, "
            ".numSparseDimensions= 0}}",
            ".isProduced= 0",
        )
        inner = f",\n{indent}    ".join(fields)
        return (
            f"(Qnn_Tensor_t){{\n{indent}  .version= QNN_TENSOR_VERSION_2,\n{indent}  .v2= {{\n"
            f"{indent}    {inner}}}}}"
        )


def _values(tensor: NetTensor, label: str) -> Iterator[str]:
    data = static_data(tensor, text.stored(tensor))
    if data.size:
        yield from _array(text.c_type(tensor.dtype), label, text.elements(tensor.dtype, data), 16)


def _array(kind: str, name: str, items: Iterable[str], per_line: int) -> Iterator[str]:
    yield f"  {kind} {name}[] = {{\n"
    line: list[str] = []
    for item in items:
        if len(line) == per_line:
            yield f"    {', '.join(line)},\n"
            line.clear()
        line.append(item)
    yield f"    {', '.join(line)}}};\n"


def _compose(graphs: Sequence[_Graph], options: CppOptions) -> Iterator[str]:
    yield (
        "QNN_API\n"
        f"ModelError_t {qnn_name(options.prefix)}_composeGraphs(Qnn_BackendHandle_t backendHandle,\n"
        "    QNN_INTERFACE_VER_TYPE interface,\n"
        "    Qnn_ContextHandle_t contextHandle,\n"
        "    const GraphConfigInfo_t** graphsConfigInfo,\n"
        "    const uint32_t numGraphsConfigInfo,\n"
        "    GraphInfoPtr_t** graphsInfo,\n"
        "    uint32_t* numGraphsInfo,\n"
        "    bool debug,\n"
        "    QnnLog_Callback_t logCallback,\n"
        "    QnnLog_Level_t maxLogLevel)\n{\n"
        "  ModelError_t err = MODEL_NO_ERROR;\n"
        "  (void)logCallback;\n"
        "  (void)maxLogLevel;\n\n"
    )
    yield from _declare(graphs)
    for graph in graphs:
        name, variable = text.string(graph.net.name), graph.variable
        yield (
            f"  /* model/graph for {_one_line(graph.net.name)} */\n"
            f"  const QnnGraph_Config_t** graphConfigs_{variable} = nullptr;\n"
            f"  VALIDATE(getQnnGraphConfigFromInfo({name}, graphsConfigInfo, numGraphsConfigInfo, "
            f"graphConfigs_{variable}), err);\n"
            f"  VALIDATE({variable}.initialize(backendHandle, interface, contextHandle, {name}, debug, "
            f"DO_GRAPH_NODE_VALIDATIONS, graphConfigs_{variable}), err);\n"
        )
        yield from (f"  VALIDATE({call}({variable}), err);\n" for call in graph.calls)
        yield "\n"
    pointers = ", ".join(f"&{graph.variable}" for graph in graphs)
    yield (
        f"  QnnModel* models[] = {{{pointers}}};\n"
        f"  uint32_t numModels = {len(graphs)};\n"
        "  VALIDATE(getGraphInfoFromModels(*models, numModels, graphsInfo), err);\n"
        "  *numGraphsInfo = numModels;\n"
        "  return err;\n} // COMPOSE_GRAPHS\n\n"
    )


def _declare(graphs: Sequence[_Graph]) -> Iterator[str]:
    if len(graphs) == 1:
        yield f"  QnnModel {graphs[0].variable};\n"
        return
    # getGraphInfoFromModels walks from the first model to the next in memory, so they must lie in an array.
    yield f"  QnnModel graphs_in_order[{len(graphs)}];\n"
    for index, graph in enumerate(graphs):
        yield f"  QnnModel& {graph.variable} = graphs_in_order[{index}];\n"


def _free(options: CppOptions) -> Iterator[str]:
    yield (
        "QNN_API\n"
        f"ModelError_t {qnn_name(options.prefix)}_freeGraphsInfo(GraphInfoPtr_t** graphsInfo, "
        "uint32_t numGraphsInfo)\n{\n"
        "  return qnn_wrapper_api::freeGraphsInfo(graphsInfo, numGraphsInfo);\n"
        "} // FREE_GRAPHS_INFO\n"
        '} // extern "C"\n'
    )


def _one_line(name: str) -> str:
    return re.sub(r"[^\w.:/ -]", "_", name).replace("*/", "*_")
