"""A program of its own: loads a TensorFlow model in any of its forms and writes it as a TFLite model.

    python convert_to_tflite.py REQUEST.json

It imports nothing but TensorFlow, so that any Python that has it can run it. The request names the model, its
kind, the folder for `model.tflite` and `answer.json`, and what is asked of it; the answer has the problem, if
there is one, and the names that inputs and outputs have.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

ANSWER, MODEL, REFERENCE = "answer.json", "model.tflite", "reference.npz"
HIDDEN = ("__saved_model_init_op", "__saved_model_train_op")
VARIABLES = ("VariableV2", "VarHandleOp", "Variable", "AutoReloadVariable")


class Problem(Exception):
    """Something that the user can mend; the second argument is what to do."""


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(request["folder"])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    answer: dict[str, Any] = {}
    try:
        tf: Any = importlib.import_module("tensorflow")
        answer = ROADS[request["kind"]](tf, request, folder)
    except Problem as e:
        answer = {"problem": str(e.args[0]), "hint": e.args[1] if len(e.args) > 1 else ""}
    except Exception as e:
        answer = _of_converter(str(e), type(e).__name__)
    (folder / ANSWER).write_text(json.dumps(answer), encoding="utf-8")


def _of_converter(text: str, kind: str) -> dict[str, Any]:
    """What TensorFlow's converter says in many lines, in one."""
    found = re.findall(r"(?:TF Select|Custom|Flex) ops: ([\w, ]+)", text)
    ops = sorted({op.strip() for group in found for op in group.split(",") if op.strip()})
    if not ops:
        ops = sorted(set(re.findall(r"error: '(?:tf|tfl)\.(\w+)' op", text)))
    if ops:
        return {"ops": ops}
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
    return {"problem": f"TensorFlow cannot convert it: {kind}: {line[:300]}"}


# -- functions: SavedModel and Keras ----------------------------------------------------------------------


def saved_model(tf: Any, request: dict[str, Any], folder: Path) -> dict[str, Any]:
    path, tag, key = request["model"], request["tag"], request["signature"] or "serving_default"
    loader = importlib.import_module("tensorflow.python.saved_model.loader_impl")
    parsed = loader.parse_saved_model(path)
    tags = [sorted(graph.meta_info_def.tags) for graph in parsed.meta_graphs]
    graph = next((g for g in parsed.meta_graphs if tag in g.meta_info_def.tags), None)
    if graph is None:
        raise Problem(
            f"the SavedModel has no tag '{tag}'", f"its tags: {_listed(tag for some in tags for tag in some)}"
        )
    keys = [k for k in graph.signature_def if k not in HIDDEN]
    if key not in keys:
        raise Problem(f"the SavedModel has no signature '{key}'", f"its signatures: {_listed(keys)}")
    signature = graph.signature_def[key]
    strings = [n for n, i in signature.inputs.items() if tf.as_dtype(i.dtype) == tf.string]
    if strings:
        raise Problem(f"input '{strings[0]}' is text; QNN graphs take numbers only")
    _declare_listed(graph.meta_info_def, request["custom"])
    try:
        loaded = tf.saved_model.load(path, tags=sorted(graph.meta_info_def.tags))
        function = loaded.signatures[key]
        specs = dict(function.structured_input_signature[1])
    except Exception:  # of Keras 2: objects that this TensorFlow does not know any more
        return _by_session(tf, request, folder, sorted(graph.meta_info_def.tags), signature)
    return _by_function(tf, request, folder, lambda **inputs: function(**inputs), specs, loaded)


def keras(tf: Any, request: dict[str, Any], folder: Path) -> dict[str, Any]:
    try:
        model = tf.keras.models.load_model(_with_suffix(request["model"], folder), compile=False)
    except Exception as e:
        line = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        raise Problem(f"Keras cannot load it: {line[:300]}") from e
    if not getattr(model, "inputs", None):
        raise Problem("the model was never built: its inputs are not known", "call it once before saving")
    inputs = [_plain(t.name) for t in model.inputs]
    specs = {n: tf.TensorSpec(t.shape, t.dtype, n) for n, t in zip(inputs, model.inputs, strict=True)}

    def call(**given: Any) -> dict[str, Any]:
        values = [given[n] for n in inputs]
        return _named(model, model(values if len(values) > 1 else values[0], training=False))

    return _by_function(tf, request, folder, call, specs, model)


def _with_suffix(model: str, folder: Path) -> str:
    """Keras goes by the suffix: a file that has another one is copied."""
    with Path(model).open("rb") as file:
        suffixes = (".h5", ".hdf5") if file.read(4) == b"\x89HDF" else (".keras",)
    if Path(model).suffix in suffixes:
        return model
    return str(shutil.copyfile(model, folder / f"model{suffixes[0]}"))


def _named(model: Any, results: Any) -> dict[str, Any]:
    """The results of a Keras model by the names of its outputs."""
    if isinstance(results, dict):
        return results
    outputs = list(getattr(model, "output_names", None) or _output_names(model))
    results = list(results) if isinstance(results, list | tuple) else [results]
    names = outputs if len(outputs) == len(results) else [f"output_{i}" for i in range(len(results))]
    return dict(zip(names, results, strict=True))


def _output_names(model: Any) -> list[str]:
    """Keras 3 numbers its tensors anew each time: an output then has the name of the layer that makes it."""
    names: list[str] = []
    for tensor in model.outputs:
        name = _plain(tensor.name)
        layer = getattr(getattr(tensor, "_keras_history", None), "operation", None)
        if name.startswith("keras_tensor") and layer is not None:
            name = layer.name
        names.append(f"{name}_{names.count(name)}" if name in names else name)
    return names


def _plain(name: str) -> str:
    return name.split(":", maxsplit=1)[0]


def _listed(names: Any) -> str:
    return ", ".join(repr(n) for n in names) or "none"


def _by_function(
    tf: Any, request: dict[str, Any], folder: Path, call: Any, specs: dict[str, Any], owner: Any
) -> dict[str, Any]:
    shapes = _shapes(request, list(specs))
    unknown = [n for n, s in specs.items() if n not in shapes and s.shape.rank is None]
    if unknown:
        raise Problem(f"input '{unknown[0]}' has no shape", f"say it: -d {unknown[0]} 1,...")
    static = {n: tf.TensorSpec(_settled(shapes.get(n), s.shape), s.dtype, n) for n, s in specs.items()}
    function = tf.function(call, autograph=False).get_concrete_function(**static)
    module = tf.Module()
    module.owner, module.held = owner, list(function.graph.variables)  # what is saved with it
    again = str(folder / "saved_model")
    tf.saved_model.save(module, again, signatures=function)
    converter = tf.lite.TFLiteConverter.from_saved_model(again)
    (folder / MODEL).write_bytes(_converted(tf, converter, request))
    if request["validate"]:
        ones = {n: tf.ones(s.shape, s.dtype) for n, s in static.items()}
        _save(folder, {k: v.numpy() for k, v in function(**ones).items()})
    dims = {n: list(s.shape) for n, s in specs.items()}
    return {"names": {}, "inputs": dims, "outputs": list(function.structured_outputs)}


def _shapes(request: dict[str, Any], names: list[str]) -> dict[str, list[int]]:
    """The shapes that the user gave, by the model's own names; `:0` at the end of one is not meant."""
    given = {_plain(n) if _plain(n) in names else n: s for n, s in request["shapes"].items()}
    for name in given:
        if name not in names:
            raise Problem(f"the model has no input '{name}'", f"its inputs: {_listed(names)}")
    return given


def _settled(said: list[int] | None, shape: Any) -> list[int]:
    """What is not said is one sample; other open dimensions have to be."""
    if said is not None:
        return said
    found = shape.as_list() if hasattr(shape, "as_list") else list(shape)
    if any(d is None for d in found[1:]):
        words = ",".join(
            "1" if i == 0 and d is None else "N" if d is None else str(d) for i, d in enumerate(found)
        )
        raise Problem(f"an input has dynamic dimensions: {found}", f"say them with -d NAME {words}")
    return [1 if d is None else int(d) for d in found]


def _converted(tf: Any, converter: Any, request: dict[str, Any]) -> bytes:
    converter.allow_custom_ops = bool(request["custom"])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    converter.experimental_enable_resource_variables = False
    try:
        return converter.convert()
    except Exception as e:
        if "ariable" not in str(e):
            raise
        converter.experimental_enable_resource_variables = True  # state that the model changes
        return converter.convert()


def _save(folder: Path, outputs: dict[str, Any]) -> None:
    numpy: Any = importlib.import_module("numpy")
    numpy.savez(folder / REFERENCE, **outputs)


# -- graphs: frozen ones, checkpoints, SavedModels of Keras 2 ------------------------------------------------


def _by_session(
    tf: Any, request: dict[str, Any], folder: Path, tags: list[str], signature: Any
) -> dict[str, Any]:
    """The loader of TensorFlow 1, which knows graphs and no objects."""
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        v1.saved_model.load(session, tags, request["model"])
        inputs = {n: i.name for n, i in signature.inputs.items()}
        outputs = {n: o.name for n, o in signature.outputs.items()}
        frozen = _frozen(tf, session, list(outputs.values()))
    return _by_graph(tf, request, folder, frozen, inputs, outputs)


def _frozen(tf: Any, session: Any, outputs: list[str]) -> Any:
    v1 = tf.compat.v1
    graph = session.graph.as_graph_def()
    return v1.graph_util.convert_variables_to_constants(session, graph, [_plain(o) for o in outputs])


def frozen_graph(tf: Any, request: dict[str, Any], folder: Path) -> dict[str, Any]:
    graph = tf.compat.v1.GraphDef()
    try:
        graph.ParseFromString(Path(request["model"]).read_bytes())
    except Exception as e:
        raise Problem(
            "it is not a GraphDef", "a frozen graph is one; a SavedModel is given by its folder"
        ) from e
    if not graph.node:
        raise Problem("the graph has no nodes", "a SavedModel is given by its folder")
    _declare(graph, request["custom"])
    held = next((n for n in graph.node if n.op in VARIABLES), None)
    if held is not None:
        raise Problem(
            f"the graph is not frozen: '{held.name}' is a variable", "give the .meta file of the checkpoint"
        )
    return _by_names(tf, request, folder, graph)


def _declare_listed(info: Any, names: list[str]) -> None:
    """Ops of the user's that TensorFlow does not know, as a SavedModel or a checkpoint lists them."""
    text_format = importlib.import_module("google.protobuf.text_format")
    for op in info.stripped_op_list.op:
        if op.name in names and not _is_known(op.name):
            _register(text_format.MessageToString(op, as_one_line=True))


def _is_known(name: str) -> bool:
    return importlib.import_module("tensorflow.python.framework.op_def_registry").get(name) is not None


def _register(signature: str) -> None:
    importlib.import_module("tensorflow.lite.python.convert").register_custom_opdefs([signature])


def _declare(graph: Any, names: list[str]) -> None:
    """Ops of the user's that TensorFlow does not know, by their first node, where no file lists them."""
    for node in [node for node in graph.node if node.op in names and not _is_known(node.op)]:
        data = node.attr["T"].type if "T" in node.attr else 1
        _forget_types(node)
        if not _is_known(node.op):
            _register(_signature(node, data, _results(graph, node.op)))


def _forget_types(node: Any) -> None:
    """Types are no attributes of the op that is declared."""
    for name in [n for n, v in node.attr.items() if n[0] == "_" or v.WhichOneof("value") == "type"]:
        del node.attr[name]


def _results(graph: Any, op: str) -> int:
    """How many results of an op are read."""
    alike = {n.name for n in graph.node if n.op == op}
    read = [i.lstrip("^").partition(":") for n in graph.node for i in n.input]
    return 1 + max((int(k or 0) for name, _, k in read if name in alike), default=0)


def _signature(node: Any, data: int, results: int) -> str:
    """An op's definition as TensorFlow writes it."""
    kinds = {"s": "string", "i": "int", "f": "float", "b": "bool", "shape": "shape"}
    attributes = [(name, value.WhichOneof("value")) for name, value in node.attr.items()]
    words = [
        f"attr: {{ name: '{name}' type: '{kinds[kind] if kind in kinds else _list_kind(node, name)}' }}"
        for name, kind in attributes
    ]
    count = len([name for name in node.input if not name.startswith("^")])
    inputs = [f"input_arg: {{ name: 'in{i}' type: {data} }}" for i in range(count)]
    outputs = [f"output_arg: {{ name: 'out{i}' type: {data} }}" for i in range(results)]
    return f"name: '{node.op}' {' '.join([*inputs, *outputs, *words])}"


def _list_kind(node: Any, name: str) -> str:
    found = node.attr[name].list
    return "list(float)" if found.f else "list(string)" if found.s else "list(int)"


def checkpoint(tf: Any, request: dict[str, Any], folder: Path) -> dict[str, Any]:
    v1 = tf.compat.v1
    prefix = request["model"][: -len(".meta")]
    if not Path(prefix + ".index").is_file():
        raise Problem(
            f"the checkpoint's variables are missing: {prefix}.index", "they belong beside the .meta file"
        )
    meta = v1.MetaGraphDef()
    meta.ParseFromString(Path(request["model"]).read_bytes())
    _declare_listed(meta.meta_info_def, request["custom"])
    with v1.Graph().as_default(), v1.Session() as session:
        saver = v1.train.import_meta_graph(request["model"], clear_devices=True)
        saver.restore(session, prefix)
        outputs = request["outputs"] or _ends(session.graph.as_graph_def())
        _check_nodes(session.graph.as_graph_def(), outputs)
        graph = _frozen(tf, session, outputs)
    return _by_names(tf, request | {"outputs": outputs}, folder, graph)


def _by_names(tf: Any, request: dict[str, Any], folder: Path, graph: Any) -> dict[str, Any]:
    placeholders = [n.name for n in graph.node if n.op == "Placeholder"]
    inputs = [_plain(n) for n in request["shapes"]] or placeholders
    outputs = request["outputs"] or _ends(graph)
    _check_nodes(graph, [*inputs, *outputs])
    if not inputs:
        raise Problem("the graph has no inputs", "name them with -d NAME DIMS")
    names = lambda some: {n: n if ":" in n else f"{n}:0" for n in some}
    return _by_graph(tf, request, folder, graph, names(inputs), names(outputs))


def _check_nodes(graph: Any, names: list[str]) -> None:
    known = {n.name for n in graph.node}
    lost = next((n for n in names if _plain(n) not in known), None)
    if lost is not None:
        close = importlib.import_module("difflib").get_close_matches(_plain(lost), list(known), 3)
        raise Problem(f"the graph has no node '{lost}'", f"did you mean {_listed(close)}?" if close else "")


def _ends(graph: Any) -> list[str]:
    """Nodes that nothing reads and that compute something of the inputs."""
    read = {_plain(i.lstrip("^")) for n in graph.node for i in n.input}
    idle = ("Const", "NoOp", "Placeholder", "Assert")
    ends = [n.name for n in graph.node if n.name not in read and n.op not in idle]
    depending = _reached(graph)
    return [name for name in ends if name in depending] or ends  # a variable's state depends on no input


def _reached(graph: Any) -> set[str]:
    """The nodes that depend on a placeholder."""
    readers: dict[str, list[str]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(_plain(name.lstrip("^")), []).append(node.name)
    waiting, found = [n.name for n in graph.node if n.op == "Placeholder"], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += readers.get(name, [])
    return found


def _by_graph(
    tf: Any,
    request: dict[str, Any],
    folder: Path,
    graph: Any,
    inputs: dict[str, str],
    outputs: dict[str, str],
) -> dict[str, Any]:
    """A frozen graph; `inputs` and `outputs` are the user's names and the graph's tensors."""
    v1 = tf.compat.v1
    dims = _graph_dims(tf, request, graph, inputs)
    file = folder / "frozen.pb"
    file.write_bytes(graph.SerializeToString())
    arrays = [_plain(t) for t in inputs.values()]
    ends = [_node(t) for t in outputs.values()]
    converter = v1.lite.TFLiteConverter.from_frozen_graph(
        str(file), arrays, ends, {_plain(t): dims[n] for n, t in inputs.items()}
    )
    (folder / MODEL).write_bytes(_converted(tf, converter, request))
    if request["validate"]:
        _validate_graph(tf, folder, graph, inputs, outputs, dims)
    names = {_node(t): n for n, t in (*inputs.items(), *outputs.items())}
    lost = _unconsumed(graph, outputs)
    return {"names": names, "inputs": dims, "outputs": list(outputs), "unconsumed": lost}


def _node(tensor: str) -> str:
    """A tensor by its node's name, as TFLite has it; a second result keeps its number."""
    return tensor.removesuffix(":0")


def _graph_dims(tf: Any, request: dict[str, Any], graph: Any, inputs: dict[str, str]) -> dict[str, list[int]]:
    v1 = tf.compat.v1
    shapes = {_plain(n): s for n, s in request["shapes"].items()}
    dims: dict[str, list[int]] = {}
    with v1.Graph().as_default() as whole:
        v1.import_graph_def(graph, name="")
        types = {o.type for o in whole.get_operations()}
        loops = sorted(types & {"Enter", "Exit", "NextIteration", "LoopCond"})
        if loops:
            raise Problem(f"the graph has loops ({', '.join(loops)}); QNN has none")
        for name, tensor in inputs.items():
            found = whole.get_tensor_by_name(tensor).shape
            said = shapes.get(_plain(name), shapes.get(_plain(tensor)))
            dims[name] = _settled(said, found.as_list() if found.rank is not None else [None, None])
    return dims


def _validate_graph(
    tf: Any,
    folder: Path,
    graph: Any,
    inputs: dict[str, str],
    outputs: dict[str, str],
    dims: dict[str, list[int]],
) -> None:
    v1, numpy = tf.compat.v1, importlib.import_module("numpy")
    with v1.Graph().as_default() as whole, v1.Session(graph=whole) as session:
        v1.import_graph_def(graph, name="")
        types = {n: whole.get_tensor_by_name(t).dtype.as_numpy_dtype for n, t in inputs.items()}
        feeds = {t: numpy.ones(dims[n], types[n]) for n, t in inputs.items()}
        found = session.run(list(outputs.values()), feeds)
        _save(folder, dict(zip(outputs, found, strict=True)))


def _unconsumed(graph: Any, outputs: dict[str, str]) -> list[str]:
    """Nodes that no output depends on."""
    nodes = {n.name: n for n in graph.node}
    waiting, needed = [_plain(t) for t in outputs.values()], set[str]()
    while waiting:
        name = waiting.pop()
        if name in needed or name not in nodes:
            continue
        needed.add(name)
        waiting += [_plain(i.lstrip("^")) for i in nodes[name].input]
    return [f"{n.op} '{n.name}'" for n in graph.node if n.name not in needed]


ROADS = {"saved_model": saved_model, "keras": keras, "frozen": frozen_graph, "checkpoint": checkpoint}

if __name__ == "__main__":
    main()
