"""The adapter for Model Explorer: its graphs are drawn by the real program, in a real browser.

Model Explorer goes into an environment of its own: OPENQNN_TEST_EXPLORER is the path of that Python. `make
explorer` creates one and runs these tests.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import openqnn
from openqnn.viewer.open_views import open_views
from tests.browser import chromium_or_skip
from tests.cli.tool import environment, tool
from tests.models.fetch import model_path, static_shapes

PYTHON = os.environ.get("OPENQNN_TEST_EXPLORER", "")
PACKAGE = Path(__file__).parents[2] / "integrations" / "model_explorer"
MODEL = "ppocr_cls"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="OPENQNN_TEST_EXPLORER names no Python with Model Explorer"),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    graph = openqnn.convert(model_path(MODEL), input_shapes=static_shapes(MODEL))
    for name in ("m.oqnn", "m.dlc"):
        graph.save(folder / name)
    openqnn.compile(graph, "htp").save(folder / "m.bin")
    source = model_path("mnist_conv")
    assert tool("qnn-onnx-converter", "-i", source, "-o", folder / "model.cpp").code == 0
    return {p.name: p for p in folder.iterdir() if p.name in ("m.oqnn", "m.dlc", "m.bin", "model_net.json")}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Model Explorer's server with the adapter."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    paths = os.pathsep.join([str(PACKAGE), environment()["PYTHONPATH"]])
    words = [PYTHON, "-m", "model_explorer", "--extensions", "openqnn_model_explorer", "--port", str(port)]
    server = subprocess.Popen(
        [*words, "--no_open_in_browser", "--skip_health_check"], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, env={**environment(), "PYTHONPATH": paths},
    )  # fmt: skip
    found = f"http://localhost:{port}"
    try:
        _wait_for(found, server)
        yield found
    finally:
        server.kill()
        server.communicate()


def _wait_for(address: str, server: subprocess.Popen[str]) -> None:
    for _ in range(240):
        assert server.poll() is None, server.stdout.read() if server.stdout else ""
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            time.sleep(0.25)
    pytest.fail("the server does not answer")


def ask(address: str, path: Path) -> dict[str, object]:
    command = {"cmdId": "convert", "extensionId": "openqnn", "modelPath": str(path), "settings": {}}
    content = quote(json.dumps({**command, "deleteAfterConversion": False}))
    with urllib.request.urlopen(f"{address}/api/v1/send_command?json={content}", timeout=120) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize("name", ["m.oqnn", "m.dlc", "m.bin", "model_net.json"])
def test_the_adapter_answers_with_graphs(address: str, files: dict[str, Path], name: str) -> None:
    graphs = ask(address, files[name])["graphs"]
    assert isinstance(graphs, list) and graphs
    nodes = graphs[0]["nodes"]
    ids = {node["id"] for node in nodes}
    edges = [edge for node in nodes for edge in node["incomingEdges"]]
    assert len(nodes) > 2 and edges and all(edge["sourceNodeId"] in ids for edge in edges)
    labels = {node["label"] for node in nodes}
    assert ("Compiled" if name == "m.bin" else "Conv2d") in labels


def test_a_shape_that_the_file_does_not_tell_is_left_out(address: str, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    nodes = [onnx.helper.make_node("Mystery", [a], [b], domain="of.mine") for a, b in ("xm", "my")]
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in "xy"]
    versions = [onnx.helper.make_opsetid("of.mine", 1)]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:])
    onnx.save(onnx.helper.make_model(graph, opset_imports=versions), tmp_path / "m.onnx")
    (found,) = ask(address, tmp_path / "m.onnx")["graphs"]
    (told,) = found["nodes"][1]["outputsMetadata"]
    assert {"__tensor_tag", "tensor_name"} == {attribute["key"] for attribute in told["attrs"]}


def test_the_graph_is_drawn(address: str, files: dict[str, Path], tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    program = chromium_or_skip()
    said: list[str] = []
    data = {"models": [{"url": str(files["m.dlc"]), "adapterId": "openqnn"}]}
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        page = browser.new_page(viewport={"width": 800, "height": 600})
        page.on("pageerror", lambda error: said.append(str(error)))
        page.set_default_timeout(180_000)
        page.goto(f"{address}/?data={quote(json.dumps(data))}")
        page.wait_for_selector("canvas", timeout=180_000)
        page.wait_for_timeout(4000)
        page.screenshot(path=tmp_path / "explorer.png")
        text = page.inner_text("body")
        browser.close()
    assert not said
    assert "Failed" not in text and "Error" not in text
    nodes = len(open_views(files["m.dlc"])[0].nodes)
    assert "op node count" in text and f"{nodes} nodes" in text
    assert len((tmp_path / "explorer.png").read_bytes()) > 20_000
