"""The file of qnn-throughput-net-run: what it says, and what is refused with the path of the key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openqnn.errors import InputError
from openqnn.formats.throughput_config import read_throughput_config


def config() -> dict[str, Any]:
    return {
        "backends": [{"backendName": "cpu", "backendPath": "libQnnCpu.so"}],
        "models": [
            {"modelName": "m", "modelPath": "m.so"},
            {"modelName": "bin", "modelPath": "m.bin", "loadFromCachedBinary": True},
        ],
        "contexts": [{"contextName": "c"}, {"contextName": "d"}],
        "testCase": {
            "iteration": 1,
            "threads": [
                {"threadName": "t", "backend": "cpu", "context": "c", "model": "m", "useRandomData": True}
            ],
        },
    }


def read(content: Any, folder: Path) -> Any:
    file = folder / "config.json"
    file.write_text(json.dumps(content))
    return read_throughput_config(file)


def second(**changes: Any) -> dict[str, Any]:
    made = config()
    thread = {"threadName": "u", "backend": "cpu", "context": "c", "model": "m", "useRandomData": True}
    made["testCase"]["threads"].append({**thread, **changes})
    return made


def changed(path: str, value: Any) -> dict[str, Any]:
    made = config()
    place: Any = made
    *way, last = [int(w) if w.isdigit() else w for w in path.split("/")]
    for word in way:
        place = place[word]
    place[last] = value
    return made


def test_defaults(tmp_path: Path) -> None:
    found = read(config(), tmp_path)
    thread = found.threads[0]
    assert (thread.loop, thread.interval, thread.by_time, found.iteration) == (1, 0, False, 1)
    assert found.models["m"].input_type == "NATIVE" and found.models["m"].output_type == "NATIVE_ONLY"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (changed("testCase/threads/0/model", "other"), "testCase.threads[0].model: 'other' is not among"),
        (changed("testCase/threads/0/context", "x"), "testCase.threads[0].context: 'x' is not among"),
        (changed("testCase/threads/0/backend", "x"), "testCase.threads[0].backend: 'x' is not among"),
        (changed("testCase/threads/0/Loop", 1), "testCase.threads[0].Loop: there is no such key"),
        (changed("testCase/threads/0/loop", 0), "testCase.threads[0].loop: must be at least 1"),
        (changed("testCase/threads/0/loop", True), "testCase.threads[0].loop: must be a whole number"),
        (changed("testCase/threads/0/useRandomData", False), "testCase.threads[0].useRandomData: nothing"),
        (changed("testCase/iteration", 0), "testCase.iteration: must be at least 1, or below 0"),
        (changed("testCase/iteration", None), "testCase.iteration: is missing, and required"),
        (changed("models/1/modelName", "m"), "models[1].modelName: 'm' is the name of models[0] already"),
        (changed("models/0/saveOutput", "NATIVE_ALL"), "models[0].outputPath: is required"),
        (changed("models/0/inputDataType", "BYTE"), "models[0].inputDataType: is one of NATIVE, FLOAT"),
        (changed("contexts/0/priority", "URGENT"), "contexts[0].priority: is one of"),
        (changed("contexts/0/executeAsyncQueueDepth", 0), "contexts[0].executeAsyncQueueDepth: must be"),
        (changed("backends", []), "backends: must be a list with at least one entry"),
        (changed("extra", 1), "extra: there is no such key"),
        (second(threadName="t"), "testCase.threads[1].threadName: 't' is the name of"),
        (second(backendConfig="x.json"), "testCase.threads[1].backendConfig: backend 'cpu' is set up once"),
        (second(model="bin"), "testCase.threads[1].context: context 'c' is the one that the binary"),
        (second(initModelInLoop=True), "testCase.threads[1].initModelInLoop: context 'c' is shared"),
        (
            second(model="bin", context="d", initModelInLoop=True),
            "testCase.threads[1].initModelInLoop: cannot be true",
        ),
    ],
)
def test_refused(content: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(content, tmp_path)
    assert said in caught.value.message


def test_context_on_two_backends(tmp_path: Path) -> None:
    content = second(backend="htp")
    content["backends"].append({"backendName": "htp", "backendPath": "libQnnHtp.so"})
    with pytest.raises(InputError, match=r"threads\[1\]\.context: context 'c' is on backend 'cpu'"):
        read(content, tmp_path)


def test_no_json(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"backends": [')
    with pytest.raises(InputError, match="is not JSON"):
        read_throughput_config(tmp_path / "c.json")
