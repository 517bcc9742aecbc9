"""A small decoder with a cache: `make FOLDER` writes it, `run FOLDER FILE [BACKEND]` continues a text."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import openqnn

WIDTH, WORDS, LAYERS, CACHE, PROMPT, STEPS = 64, 50, 2, 32, 8, 6
NEVER = -1e4  # what is added to the scores of places that do not count


def build() -> onnx.ModelProto:
    """`tokens` new words behind `past` places of a cache, of which `mask` says what counts."""
    random = np.random.default_rng(0)
    weights: list[onnx.TensorProto] = []
    nodes: list[onnx.NodeProto] = []

    def weight(*shape: int) -> str:
        data = random.normal(0, shape[0] ** -0.5, shape).astype(np.float32)
        weights.append(numpy_helper.from_array(data, f"w{len(weights)}"))
        return weights[-1].name

    def add(op: str, *inputs: str, name: str = "", **attributes: object) -> str:
        name = name or f"t{len(nodes)}"
        nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    x = add("Gather", weight(WORDS, WIDTH), "words")
    for i in range(LAYERS):
        new = (add("MatMul", x, weight(WIDTH, WIDTH)) for _ in range(2))
        keys, values = (
            add("Concat", f"past_{kind}_{i}", part, name=f"present_{kind}_{i}", axis=1)
            for kind, part in zip(("key", "value"), new, strict=True)
        )
        query = add("MatMul", x, weight(WIDTH, WIDTH))
        scores = add("Add", add("MatMul", query, add("Transpose", keys, perm=[0, 2, 1])), "mask")
        x = add("Add", x, add("MatMul", add("Softmax", scores, axis=-1), values))
    add("MatMul", x, weight(WIDTH, WORDS), name="scores")

    def info(name: str, *shape: int | str, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    cache = [f"{kind}_{i}" for i in range(LAYERS) for kind in ("key", "value")]
    inputs = [info("words", 1, "tokens", kind=TensorProto.INT32), info("mask", 1, "tokens", "total")]
    inputs += [info(f"past_{name}", 1, "past", WIDTH) for name in cache]
    outputs = [info("scores", 1, "tokens", WORDS)]
    outputs += [info(f"present_{name}", 1, "total", WIDTH) for name in cache]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def mask(tokens: int, seen: int) -> np.ndarray:
    """Each new word sees the words before it; the cache is filled from its end."""
    places = np.arange(CACHE)
    last = CACHE - tokens + np.arange(tokens)[:, None]
    counts = (places <= last) & (places >= CACHE - tokens - seen)
    return np.where(counts, 0, NEVER).astype(np.float32)[None]


def continued(session: openqnn.Session, prompt: list[int]) -> list[int]:
    """The session takes `prefill` for the prompt, and `decode` for each word behind it: by their shapes."""
    names = [f"{kind}_{i}" for i in range(LAYERS) for kind in ("key", "value")]
    cache = {name: np.zeros((1, CACHE - len(prompt), WIDTH), np.float32) for name in names}
    words, new, seen = list(prompt), list(prompt), 0
    for _ in range(STEPS):
        feeds = {"words": np.asarray([new], np.int32), "mask": mask(len(new), seen)}
        found = session.run(feeds | {f"past_{name}": array for name, array in cache.items()})
        seen += len(new)
        cache = {name: found[f"present_{name}"][:, 1:] for name in names}  # the oldest place makes room
        new = [int(found["scores"][0, -1].argmax())]
        words += new
    return words


def reference(path: Path, prompt: list[int]) -> list[int]:
    """The same without a cache: ONNX Runtime computes the whole text for every word."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    empty = {i.name: np.zeros((1, 0, WIDTH), np.float32) for i in session.get_inputs()[2:]}
    words = list(prompt)
    for _ in range(STEPS):
        size = len(words)
        whole = np.where(np.tri(size, dtype=bool), 0, NEVER).astype(np.float32)[None]
        feeds = {"words": np.asarray([words], np.int32), "mask": whole} | empty
        words.append(int(session.run(["scores"], feeds)[0][0, -1].argmax()))
    return words


def main(action: str, folder: Path, file: str = "", backend: str = "cpu") -> int:
    path, prompt = folder / "decoder.onnx", [3, 14, 15, 9, 26, 5, 35, 8]
    if action == "make":
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(build(), path)
        return 0
    wanted = reference(path, prompt)
    with openqnn.Session(folder / file, backend=backend) as session:
        words = continued(session, prompt)
    print(f"{file} on {backend}: {words[PROMPT:]}, ONNX Runtime without a cache: {wanted[PROMPT:]}")
    return int(words != wanted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]))
