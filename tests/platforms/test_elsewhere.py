"""Everything but Qualcomm's libraries works without what Linux alone has, and without what Windows lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.tool import environment
from tests.models.fetch import model_path

ROOT = Path(__file__).parents[2]
START = """import sys
sys.path.insert(0, {root!r})
from tests.platforms.elsewhere import stand_in_for
stand_in_for({system!r})
from openqnn.cli.main import main
for words in {commands!r}:
    code = main(words)
    assert code == 0, (words, code)
"""


@pytest.mark.parametrize("system", ["macos", "windows"])
def test_a_model_from_its_file_to_its_report(system: str, tmp_path: Path) -> None:
    model = model_path("mnist_conv")
    for index in range(2):
        image = np.random.default_rng(index).random((1, 1, 28, 28), np.float32) * 255
        np.save(tmp_path / f"{index}.npy", image)
    commands = [
        ["models", "list"],
        ["check", str(model)],
        ["convert", str(model), "-o", "net.oqnn"],
        ["convert", str(model), "-o", "net.oqnn"],
        ["inspect", "net.oqnn"],
        ["run", "net.oqnn", "--input", "Input3=0.npy", "--output_dir", "out"],
        ["quantize", "net.oqnn", "--data", ".", "-o", "fixed.oqnn", "--report", "report.html"],
        ["debug", str(model), "--data", ".", "--no_attribution"],
        ["view", "net.oqnn", "--html", "page.html"],
        ["diff", "net.oqnn", "net.oqnn"],
        ["explain", "OQ112"],
    ]
    script = START.format(root=str(ROOT), system=system, commands=commands)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    for name in ("net.oqnn", "fixed.oqnn", "report.html", "page.html"):
        assert (tmp_path / name).stat().st_size > 1000
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
