"""A program of its own: runs a TensorFlow model in any of its forms, and writes all its tensors.

    python show_tensors.py REQUEST.json

It imports nothing but TensorFlow and its neighbour, so that any Python that has TensorFlow can run it. The
request has what `convert_to_tflite.py` is told, and `inputs`, a file of arrays by name.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # -P leaves the script's own folder out
road: Any = importlib.import_module("convert_to_tflite")
TENSORS = "tensors.npz"


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(request["folder"])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    try:
        tf: Any = importlib.import_module("tensorflow")
        graph, names = GRAPHS[request["kind"]](tf, request)
        answer = {"names": show(tf, request, graph, names)}
    except road.Problem as e:
        answer = {"problem": str(e.args[0]), "hint": e.args[1] if len(e.args) > 1 else ""}
    except Exception as e:
        line = next((line.strip() for line in str(e).splitlines() if line.strip()), "no reason given")
        answer = {"problem": f"TensorFlow cannot run it: {type(e).__name__}: {line[:300]}"}
    (folder / road.ANSWER).write_text(json.dumps(answer), encoding="utf-8")


# -- a model as a frozen graph, and the tensors that the user's names mean -----------------------------------


def frozen(tf: Any, request: dict[str, Any]) -> Any:
    graph = tf.compat.v1.GraphDef()
    graph.ParseFromString(Path(request["model"]).read_bytes())
    return graph, {}


def checkpoint(tf: Any, request: dict[str, Any]) -> Any:
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        saver = v1.train.import_meta_graph(request["model"], clear_devices=True)
        saver.restore(session, request["model"][: -len(".meta")])
        ends = request["outputs"] or road._ends(session.graph.as_graph_def())
        return road._frozen(tf, session, ends), {}


def saved_model(tf: Any, request: dict[str, Any]) -> Any:
    key = request["signature"] or "serving_default"
    try:
        loaded = tf.saved_model.load(request["model"])  # it holds the variables
        return _by_function(loaded.signatures[key])
    except Exception:  # of Keras 2: objects that this TensorFlow does not know any more
        return _by_session(tf, request, key)


def _by_session(tf: Any, request: dict[str, Any], key: str) -> Any:
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        found = v1.saved_model.load(session, [request["tag"]], request["model"]).signature_def[key]
        names = {n: i.name for n, i in (*found.inputs.items(), *found.outputs.items())}
        return road._frozen(tf, session, [o.name for o in found.outputs.values()]), names


def keras(tf: Any, request: dict[str, Any]) -> Any:
    model = tf.keras.models.load_model(request["model"], compile=False)
    specs = [tf.TensorSpec(t.shape, t.dtype, road._plain(t.name)) for t in model.inputs]

    def call(*given: Any) -> dict[str, Any]:
        values: list[Any] = list(given)
        return road._named(model, model(values if len(values) > 1 else values[0], training=False))

    return _by_function(tf.function(call, autograph=False).get_concrete_function(*specs))


def _by_function(function: Any) -> Any:
    convert = importlib.import_module("tensorflow.python.framework.convert_to_constants")
    plain = convert.convert_variables_to_constants_v2(function)
    names = {road._plain(t.name): t.name for t in plain.inputs}
    structured = function.structured_outputs
    if isinstance(structured, dict):
        names |= {n: t.name for n, t in zip(sorted(structured), plain.outputs, strict=True)}
    return plain.graph.as_graph_def(), names


GRAPHS = {"saved_model": saved_model, "keras": keras, "frozen": frozen, "checkpoint": checkpoint}


# -- running it -------------------------------------------------------------------------------------------


def show(tf: Any, request: dict[str, Any], graph: Any, names: dict[str, str]) -> list[str]:
    numpy: Any = importlib.import_module("numpy")
    v1 = tf.compat.v1
    with numpy.load(request["inputs"]) as file:
        given = {name: file[name] for name in file.files}
    with v1.Graph().as_default() as whole, v1.Session(graph=whole) as session:
        v1.import_graph_def(graph, name="")
        feeds = {_tensor(whole, names, name): array for name, array in given.items()}
        wanted = [t for op in whole.get_operations() for t in op.outputs if _shown(op, t)]
        found = _run(session, wanted, {t: a.astype(t.dtype.as_numpy_dtype) for t, a in feeds.items()})
    called = {tensor: name for name, tensor in names.items()}
    known = {called.get(name, _short(name)): array for name, array in found.items()}
    numpy.savez(Path(request["folder"]) / TENSORS, **{str(i): a for i, a in enumerate(known.values())})
    return list(known)


def _tensor(whole: Any, names: dict[str, str], name: str) -> Any:
    wanted = names.get(name) or names.get(road._plain(name)) or (name if ":" in name else f"{name}:0")
    try:
        return whole.get_tensor_by_name(wanted)
    except (KeyError, ValueError):
        inputs = [op.name for op in whole.get_operations() if op.type == "Placeholder"]
        raise road.Problem(
            f"the model has no input '{name}'", f"its inputs: {road._listed(inputs)}"
        ) from None


def _short(name: str) -> str:
    """A tensor without the call of the function that it is in, which TFLite's names do not have either."""
    return name.removesuffix(":0").removeprefix("StatefulPartitionedCall/")


def _shown(op: Any, tensor: Any) -> bool:
    kind = tensor.dtype.base_dtype
    return op.type not in ("Const", "Placeholder", "NoOp") and (
        kind.is_floating or kind.is_integer or kind.is_bool
    )


def _run(session: Any, wanted: list[Any], feeds: dict[Any, Any]) -> dict[str, Any]:
    """All tensors at once, or one by one where some need an input that is not given."""
    try:
        found = session.run(wanted, feeds)
        return {t.name: a for t, a in zip(wanted, found, strict=True)}
    except Exception:
        singles: dict[str, Any] = {}
        reason: Exception | None = None
        for tensor in wanted:
            try:
                singles[tensor.name] = session.run(tensor, feeds)
            except Exception as e:
                reason = e
        if not singles and reason is not None:
            raise reason from None
        return singles


if __name__ == "__main__":
    main()
