"""A real Caffe network, OpenCV's face detector: converted, it gives the numbers of OpenCV."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import openqnn
from openqnn.ir import Graph
from tests.cli.tool import openqnn as command
from tests.cli.tool import tool
from tests.frontends.caffe.cases import Array
from tests.libraries import need
from tests.models.fetch import model_path
from tests.models.samples import photo

cv2 = pytest.importorskip("cv2")
MEANS = (104, 177, 123)
DETECTIONS = 124  # of the 200 rows, in the photograph


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both files, beside each other under one name."""
    folder = tmp_path_factory.mktemp("ssd")
    shutil.copyfile(model_path("ssd_face_weights"), folder / "ssd.caffemodel")
    return Path(shutil.copyfile(model_path("ssd_face_caffe"), folder / "ssd.prototxt"))


@pytest.fixture(scope="module")
def graph(network: Path) -> Graph:
    return openqnn.convert(network)


def image() -> Array:
    pixels = np.asarray(photo("astronaut").resize((300, 300)), np.float32)[:, :, ::-1]
    return np.ascontiguousarray((pixels - np.float32(MEANS)).transpose(2, 0, 1)[None])


def judged(network: Path, name: str = "detection_out") -> Array:
    net = cv2.dnn.readNetFromCaffe(str(network), str(network.with_suffix(".caffemodel")))
    net.setInput(image())
    return net.forward(name)


def test_it_finds_the_face_where_opencv_does(network: Path, graph: Graph) -> None:
    with openqnn.Session(graph) as session:
        found = session.run({"data": image()})["detection_out"]
    wanted = judged(network)
    assert found.shape == wanted.shape == (1, 1, 200, 7)
    assert np.count_nonzero(found[..., 2]) == np.count_nonzero(wanted[..., 2]) == DETECTIONS
    assert found[0, 0, 0, 2] > 0.99
    np.testing.assert_allclose(found, wanted, atol=5e-4)


@pytest.mark.parametrize("name", ["mbox_loc", "mbox_conf_flatten"])
def test_a_graph_may_end_anywhere(network: Path, name: str) -> None:
    with openqnn.Session(openqnn.convert(network, outputs=[name])) as session:
        found = session.run({"data": image()})[name]
    np.testing.assert_allclose(found, judged(network, name), atol=1e-4)


def test_it_compiles_for_htp(graph: Graph, tmp_path: Path) -> None:
    need("libQnnHtp.so")
    openqnn.compile(graph).save(tmp_path / "ssd.bin")
    assert (tmp_path / "ssd.bin").stat().st_size > graph_bytes(graph) / 2.5  # weights in half precision


def graph_bytes(graph: Graph) -> int:
    return sum(v.nbytes for v in graph.constants())


@pytest.mark.slow
def test_it_finds_the_face_on_htp(graph: Graph, tmp_path: Path) -> None:
    need("libQnnHtp.so")
    openqnn.compile(graph).save(tmp_path / "ssd.bin")
    with openqnn.Session(graph) as session:
        wanted = session.run({"data": image()})["detection_out"]
    with openqnn.Session(tmp_path / "ssd.bin", backend="htp", timeout=900) as session:
        found = session.run({"data": image()})["detection_out"]
    np.testing.assert_allclose(found[0, 0, 0], wanted[0, 0, 0], atol=2e-3)


def test_tools_take_either_file_and_tell_which_by_content(network: Path, tmp_path: Path) -> None:
    made = openqnn.load
    text, weights = tmp_path / "network.txt", tmp_path / "weights.data"
    shutil.copyfile(network, text)
    shutil.copyfile(network.with_suffix(".caffemodel"), weights)
    done = tool("qairt-converter", "-i", text, "--caffe_bin", weights, "-o", tmp_path / "a.dlc")
    assert done.code == 0, done.err
    done = command("convert", network.with_suffix(".caffemodel"), "-o", tmp_path / "b.oqnn")
    assert done.code == 0, done.err
    first, second = made(tmp_path / "a.dlc"), made(tmp_path / "b.oqnn")
    assert sorted(n.op for n in first.nodes) == sorted(n.op for n in second.nodes)
    done = command("check", text, "--caffemodel", weights)
    assert done.code == 0 and "PriorBox" in done.out
