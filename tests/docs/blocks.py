"""The code blocks of the pages: which there are, which run, and how.

A block of `sh`, `python` or `console` runs. Of `console`, what follows `$ ` is run, and the rest is output. A
block whose first line is a comment that begins with `NOT_RUN` does not run, and says to the reader why. Other
languages are contents of files and output, and `text` is output. A block of `sh frameworks` or of `python
frameworks` needs PyTorch or TensorFlow: `make frameworks` runs it.

`python -m tests.docs.blocks PAGE` runs the blocks of a page in the working folder, one after the other, with
a network for digits as model.onnx and data for it; Python's names live from block to block.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

RUN = ("sh", "bash", "python", "console")
SHOWN = ("text", "json", "yaml", "xml", "cpp", "toml", "html")
NOT_RUN = "not run by the tests: "
FRAMEWORKS = "frameworks"
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[\w+-]*)(?P<more>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, and the line of the page that it begins at."""

    language: str
    text: str
    line: int
    more: str = ""

    @property
    def runs(self) -> bool:
        first = self.text.partition("\n")[0].removeprefix("$ ").lstrip("#/ ")
        return self.language in RUN and self.more != FRAMEWORKS and not first.startswith(NOT_RUN)


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(m["language"], m["text"], text.count("\n", 0, m.start()) + 1, m["more"].strip())
        for m in _FENCE.finditer(text)
    ]


def indented_code(page: Path) -> list[str]:
    """Lines that Markdown takes for code because they are indented: they say no language."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return re.findall(r"(?<=\n\n) {4}[^\s*+-].*|(?<=\n\n)\t.*", text)


def prepare(folder: Path) -> None:
    """The files that pages take for granted: model.onnx, samples/ and digit.npy."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    from openqnn.models.fetch import model_path

    model = onnx.load(model_path("mnist_conv"))
    names = {model.graph.input[0].name: "x", model.graph.output[0].name: "y"}
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    model.graph.input[0].name, model.graph.output[0].name = "x", "y"
    onnx.save(model, folder / "model.onnx")
    digit = numpy_helper.to_array(onnx.load_tensor(model_path("mnist_digit")))
    np.save(folder / "digit.npy", digit)
    (folder / "samples").mkdir()
    for shift in range(8):
        np.save(folder / "samples" / f"{shift}.npy", np.roll(digit, (shift % 3, shift // 3), axis=(2, 3)))
    digit.tofile(folder / "digit.raw")
    (folder / "inputs.txt").write_text("x:=digit.raw\n", encoding="utf-8")


def run_page(page: Path) -> int:
    """Runs all blocks; the exit code of the first that fails."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page):
        if not block.runs:
            continue
        print(f"--- {page.name}:{block.line}", flush=True)
        if block.language == "python":
            exec(compile(block.text, f"{page}:{block.line}", "exec"), names)
            continue
        done = subprocess.run(["bash", "-e", "-c", commands(block)], check=False)
        if done.returncode:
            print(f"{page}:{block.line}: exit code {done.returncode}", file=sys.stderr)
            return done.returncode
    return 0


def commands(block: Block) -> str:
    """What a block runs in a shell."""
    if block.language != "console":
        return block.text
    return "\n".join(line[2:] for line in block.text.splitlines() if line.startswith(("$ ", "> ")))


if __name__ == "__main__":
    prepare(Path())
    sys.exit(run_page(Path(sys.argv[1])))
