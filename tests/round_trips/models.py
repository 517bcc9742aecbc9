"""The real models through the files that QNN's tools exchange: the outputs stay the same, bit for bit.

    python -m tests.round_trips.models mnist_conv magika     # some
    python -m tests.round_trips.models --write               # all; writes docs/round_trips.md

Direct is a graph that goes from the converter to a backend in memory. The large image models have a smaller
input, as in `tests.htp.models`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import openqnn
from openqnn.emit import lower
from openqnn.vendor.trust import trusting
from tests.cli import tool as cli
from tests.cli.running import assert_done
from tests.htp.models import converted, inputs_of, shapes_of
from tests.models.fetch import model_ids, model_path
from tests.providers import OURS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "round_trips.md"
BUILT_IN, VENDOR, HTP = "cpu", "libQnnCpu.so", "htp"
TIMEOUT = 900.0
X86 = "x86_64-linux-clang"
Source = openqnn.Graph | Path


@dataclass(frozen=True, slots=True)
class Trip:
    """A way through a file: how the file is made, and the backends that the outputs are compared on."""

    title: str
    make: Callable[[str, Path], Path]
    backends: tuple[str, ...]


def to_dlc(model: str, folder: Path) -> Path:
    converted(model).save(folder / "m.dlc")
    return folder / "m.dlc"


def to_library(model: str, folder: Path) -> Path:
    """model.cpp and model.bin, and the library that is compiled from them, by the command line."""
    flags: list[object] = []
    for name, shape in shapes_of(model).items():
        flags += ["--input_shape", f"{name}={','.join(map(str, shape))}"]
    assert_done(cli.openqnn("convert", model_path(model), "-o", folder / "m.cpp", *flags))
    built = ("-c", folder / "m.cpp", "-b", folder / "m.bin", "-t", X86, "-o", folder)
    assert_done(cli.tool("qnn-model-lib-generator", *built))
    return folder / X86 / "libm.so"


def to_context(model: str, folder: Path) -> Path:
    openqnn.compile(converted(model), library(HTP), timeout=TIMEOUT).save(folder / "m.bin")
    return folder / "m.bin"


TRIPS = {
    "dlc": Trip("DLC", to_dlc, (BUILT_IN, VENDOR)),
    "library": Trip("model.cpp and library", to_library, (BUILT_IN, VENDOR)),
    "context": Trip("context binary", to_context, (HTP,)),
}
# Qualcomm's DLC library ends the process when it is given one of these.
NO_DLC = {
    "silero_openvino": "Lstm", "silero_seq": "Lstm", "ppocrv2_rec_lstm": "Lstm", "aecmos_gru": "Gru",
}  # fmt: skip

# Its nodes are in half precision, which libQnnCpu does not have.
NO_VENDOR = ("ukis_csmask",)


def library(backend: str) -> str:
    """HTP is that of the newest version at hand, whose simulator is several times faster."""
    newest = OURS[-1]
    return str(newest.htp) if backend == HTP and newest.folder is not None else backend


def outputs_of(source: Source, model: str, backend: str) -> dict[str, Any]:
    """What a graph or a file gives for the model's sample inputs, which it has in the model's order."""
    with trusting(), openqnn.Session(source, backend=library(backend), timeout=TIMEOUT) as session:
        arrays = zip(session.input_names, inputs_of(model).values(), strict=True)
        return session.run(dict(arrays))


@cache
def direct(model: str, backend: str) -> dict[str, Any]:
    """The outputs without a file, by the names that QNN's files have."""
    graph = converted(model)
    found = outputs_of(graph, model, backend)
    return dict(zip(lower(graph).outputs, found.values(), strict=True))


def backends(name: str, model: str) -> tuple[str, ...]:
    """Those of a trip that can run the model."""
    return tuple(b for b in TRIPS[name].backends if b != VENDOR or model not in NO_VENDOR)


def different(name: str, model: str, folder: Path) -> list[str]:
    """The outputs, each with its backend, that are not the same bits after the trip."""
    file = TRIPS[name].make(model, folder)
    bad: list[str] = []
    for backend in backends(name, model):
        wanted, found = direct(model, backend), outputs_of(file, model, backend)
        assert sorted(found) == sorted(wanted), f"{sorted(found)}, not {sorted(wanted)}"
        bad += [f"{key} on {backend}" for key in wanted if not _same(found[key], wanted[key])]
    return bad


def _same(found: Any, wanted: Any) -> bool:
    """Equal as numbers and as bits; a file has QNN's types, where a model may have wider integers."""
    if wanted.dtype.kind == "f":
        return found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes()
    return bool(np.array_equal(found.ravel(), wanted.ravel()))


# --- the page


@dataclass(frozen=True, slots=True)
class Row:
    """One model: a word on each trip."""

    model: str
    shapes: str
    words: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return all(word.startswith(("same", "none:")) for word in self.words)


def row(model: str) -> Row:
    words: list[str] = []
    for name in TRIPS:
        start = time.perf_counter()
        words.append(_word(name, model))
        print(f"{model}: {name}: {words[-1]} in {time.perf_counter() - start:.1f} s", flush=True)
    shapes = ", ".join("x".join(map(str, array.shape)) for array in inputs_of(model).values())
    return Row(model, shapes, tuple(words))


def _word(name: str, model: str) -> str:
    if name == "dlc" and model in NO_DLC:
        return f"none: {NO_DLC[model]}"
    try:
        with tempfile.TemporaryDirectory(prefix="openqnn-") as folder:
            bad = different(name, model, Path(folder))
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    if bad:
        return f"differs: {', '.join(bad)}"
    compared = backends(name, model)
    return "same" if compared == TRIPS[name].backends else f"same ({', '.join(compared)} only)"


def page(rows: Sequence[Row]) -> str:
    titles = [f"{trip.title} ({', '.join(trip.backends)})" for trip in TRIPS.values()]
    return "\n".join([
        "# Round trips of real models",
        "",
        "Generated by `python -m tests.round_trips.models --write`: each model is converted, written to a",
        "file, and read back or run from it. \"same\" means that every output is the same, bit for bit, as",
        "without the file on the same backends: `cpu` is the built-in one, `libQnnCpu.so` Qualcomm's, `htp`",
        "the simulator of QNN 2.51. Outputs of 64-bit integers are 32-bit ones in QNN's files.",
        "",
        "DLC files cannot hold Lstm and Gru: Qualcomm's library ends the process when it is given one.",
        "libQnnCpu has no half precision, which ukis_csmask is in. It adds in an order that depends on where",
        "its own memory falls: long means and sums of the same numbers can differ in the last bit from one",
        "run of the same graph to the next, with a file or without.",
        "",
        f"| model | inputs | {' | '.join(titles)} |",
        "| --- | --- | " + " | ".join("---" for _ in TRIPS) + " |",
        *(f"| {r.model} | {r.shapes} | {' | '.join(r.words)} |" for r in rows),
        "",
    ])  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="all when none is named")
    parser.add_argument("--write", action="store_true", help="write the page (needs all models)")
    args = parser.parse_args(argv)
    rows = [row(model) for model in args.models or model_ids()]
    if args.write and not args.models:
        PAGE.write_text(page(rows), encoding="utf-8")
    return 0 if all(r.ok for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
