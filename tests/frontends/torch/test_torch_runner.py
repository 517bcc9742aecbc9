"""PyTorch models in torch itself, node by node, and the accuracy debugger about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openqnn.errors import InputError
from openqnn.frontends.torch.torch_runner import TorchRunner
from tests.cli.tool import tool

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:.*jit.*:DeprecationWarning")  # scripts are what it is about


def make_models(place: Path) -> tuple[Any, Any]:
    torch.manual_seed(0)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
            self.last = torch.nn.Linear(8, 5)

        def forward(self, x: Any) -> Any:
            return torch.softmax(self.last(torch.relu(self.conv(x)).mean((2, 3))), -1)

    net, x = Net().eval(), torch.rand(1, 3, 16, 16)
    torch.jit.trace(net, (x,)).save(str(place / "net.pt"))
    torch.export.save(torch.export.export(net, (x,)), str(place / "net.pt2"))
    x.numpy().tofile(place / "x.raw")
    (place / "list.txt").write_text(f"{place / 'x.raw'}\n")
    return net, x


def test_nodes_of_a_program(tmp_path: Path) -> None:
    net, x = make_models(tmp_path)
    runner = TorchRunner(tmp_path / "net.pt2")
    found = runner.run({"x": x.numpy()}, "all")
    with torch.no_grad():
        np.testing.assert_array_equal(found["conv2d"], net.conv(x).numpy())
        np.testing.assert_array_equal(found["softmax"], net(x).numpy())
    assert list(runner.run({"x": x.numpy()})) == ["softmax"]
    with pytest.raises(InputError, match="torch cannot run it on these inputs"):
        runner.run({"x": np.zeros((1, 4, 16, 16), np.float32)})


def test_a_script_has_its_own_outputs(tmp_path: Path) -> None:
    net, x = make_models(tmp_path)
    runner = TorchRunner(tmp_path / "net.pt")
    (found,) = runner.run({"x": x.numpy()}).values()
    with torch.no_grad():
        np.testing.assert_array_equal(found, net(x).numpy())
        between = runner.run({"x": x.numpy()}, "all")
        conv = next(array for name, array in between.items() if name.endswith("Conv_output_0"))
        np.testing.assert_allclose(conv, net.conv(x).numpy(), atol=1e-6)


@pytest.mark.parametrize("model", ["net.pt", "net.pt2"])
def test_a_whole_run(model: str, tmp_path: Path) -> None:
    _, x = make_models(tmp_path)
    output = next(iter(TorchRunner(tmp_path / model).run({"x": x.numpy()})))
    done = tool(
        "qnn-accuracy-debugger", "-f", "pytorch", "-r", "htp", "-m", tmp_path / model,
        "-i", "x", "1,3,16,16", tmp_path / "x.raw", "-o", output, "-a", "x86_64-linux-clang",
        "-l", tmp_path / "list.txt", "--default_verifier", "CosineSimilarity", "-w", tmp_path / "work",
    )  # fmt: skip
    assert done.code == 0, done.err
    summary = tmp_path / "work" / "verification" / "latest" / "summary.json"
    rows = json.loads(summary.read_text())
    assert rows[-1]["LayerType"] == "Softmax"
    assert rows[-1]["cosinesimilarity"] > 0.999
    assert len(rows) >= 4
