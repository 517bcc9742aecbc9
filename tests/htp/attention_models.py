"""Attention models that nothing was tuned on: how accurate they are, and whether libQnnHtp is as accurate.

    make attention                                   # exports them, measures, compares
    python -m tests.htp.attention_models --write     # writes docs/attention_models.md
    python -m tests.htp.attention_models llama --write     # measures one, and leaves the other rows

The models are timm's and transformers' with random weights (`tests/models/export_attention.py`). They are
calibrated on 24 samples; figures are of 12 others, and those of libQnnHtp and of the simulation beside it of
the first four of these.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import openqnn
from openqnn.errors import OpenQnnWarning
from openqnn.ir import Array, Graph
from openqnn.runtime.metrics import sqnr
from tests.models.fetch import cache_directory
from tests.models.samples import IMAGENET_MEAN, IMAGENET_STD, photo, planes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "attention_models.md"
PHOTOS = ("astronaut", "chelsea", "coffee", "rocket", "china", "flower", "bus", "zidane")
CALIBRATION, EVALUATION, ON_HTP, TIMEOUT = 24, 12, 4, 600.0
VOCABULARY, SMALLEST = 200, 64
RECIPES = {"16/8": {"act_bw": 16, "weight_bw": 8}, "8/8": {"act_bw": 8, "weight_bw": 8}}
LEAST, WITHIN = 35.0, 1.0  # dB
MODELS = {
    "bert": "BERT", "llama": "Llama: rotary embeddings, grouped heads",
    "qwen3": "Qwen3: norms of queries and keys", "gpt_neox": "GPT-NeoX: embeddings that are rotated in part",
    "whisper_encoder": "Whisper's encoder", "segformer": "SegFormer", "swin_tiny": "Swin: shifted windows",
    "eva02_tiny": "EVA-02: rotary embeddings, SwiGLU", "edgenext_xx_small": "EdgeNeXt",
    "xcit_nano": "XCiT", "vit_tiny": "ViT", "mobilevit_xxs": "MobileViT", "levit_128s": "LeViT",
}  # fmt: skip
_WEIGHTS = "its weights have 8 bits: with 16 it has about 50 dB"
REASONS: dict[str, str] = {
    "llama": _WEIGHTS,
    "qwen3": _WEIGHTS,
    "levit_128s": "not proved: its norms are batch norms without statistics, logits reach 5000, and a softmax"
    " of them decides by single steps",
}
"""Why a model has less than 35 dB in 16/8."""
_FEW_STEPS = (
    "at 8/8 its class token has 1.5 to 4 of the 255 steps of the residual: single roundings decide, and both"
    " are equally far from floating point in every layer"
)
_CHANCE = (
    "at 8/8 chance: of four samples libQnnHtp is up to 4.4 dB worse on some, up to 1.3 dB better on others,"
    " and layer by layer both are equally far from floating point"
)
ODD: dict[str, str] = {"vit_tiny": _FEW_STEPS, "mobilevit_xxs": _CHANCE, "levit_128s": _CHANCE}
"""Why libQnnHtp is more than 1 dB from the simulation."""


@dataclass(frozen=True, slots=True)
class Row:
    """A model at one width: dB against floating point on all held-out samples, and on the first few of them
    in the simulation and on libQnnHtp; and of the one against the other."""

    model: str
    recipe: str
    all: float
    simulated: float
    htp: float
    between: float


def folder() -> Path:
    return cache_directory() / "attention"


def samples(graph: Graph, count: int, seed: int) -> list[dict[str, Array]]:
    """Crops of photographs, spectra of uneven loudness, or tokens."""
    rng = np.random.default_rng(seed)
    value = graph.inputs[0]
    port = graph.ports[value.name]
    if not port.dtype.is_float:
        return [
            {value.name: rng.integers(0, VOCABULARY, port.shape).astype(port.dtype.numpy)}
            for _ in range(count)
        ]
    if len(port.shape) == 4:
        return [{value.name: _crop(rng, port.shape[3], port.shape[2])} for _ in range(count)]
    loud = lambda: np.exp(rng.standard_normal((1, port.shape[1], 1)) * 0.5)
    return [{value.name: (rng.standard_normal(port.shape) * loud()).astype(np.float32)} for _ in range(count)]


def _crop(rng: np.random.Generator, width: int, height: int) -> Array:
    image = photo(PHOTOS[int(rng.integers(len(PHOTOS)))])
    side = int(rng.integers(SMALLEST, min(image.size)))
    left, top = (int(rng.integers(0, size - side + 1)) for size in image.size)
    part = image.crop((left, top, left + side, top + side)).resize((width, height))
    return planes(part, IMAGENET_MEAN, IMAGENET_STD)


def outputs(graph: Graph, feeds: Sequence[dict[str, Array]], backend: str = "cpu") -> list[Array]:
    with openqnn.Session(graph, backend, timeout=TIMEOUT) as session:
        return [session.run(feed)["y"].astype(np.float64) for feed in feeds]


def decibels(wanted: Sequence[Array], found: Sequence[Array]) -> float:
    both = (np.concatenate([array.ravel() for array in side]) for side in (wanted, found))
    return min(sqnr(*both), 200.0)


def measure(path: Path) -> list[Row]:
    """Floats and all recipes."""
    graph = openqnn.convert(path)
    feeds = samples(graph, EVALUATION, 2)
    wanted = outputs(graph, feeds)
    few = feeds[:ON_HTP]
    half = decibels(wanted[:ON_HTP], outputs(graph, few, "htp"))
    rows = [Row(path.stem, "float", np.inf, np.inf, half, half)]
    for name, recipe in RECIPES.items():
        with warnings.catch_warnings(action="ignore", category=OpenQnnWarning):
            fixed = openqnn.quantize(graph, samples(graph, CALIBRATION, 1), judge=False, **recipe)
        found, there = outputs(fixed, feeds), outputs(fixed, few, "htp")
        here = found[:ON_HTP]
        figures = decibels(wanted, found), decibels(wanted[:ON_HTP], here), decibels(wanted[:ON_HTP], there)
        rows.append(Row(path.stem, name, *figures, decibels(here, there)))
    return rows


INTRODUCTION = f"""\
# Attention models that nothing was tuned on

Written by `python -m tests.htp.attention_models --write`; `make attention` exports the models and measures
them.

Models of timm and transformers with random weights, exported by torch's ONNX exporter. SQNR in dB against
floating point, on {EVALUATION} samples that calibration (on {CALIBRATION}) did not see; on libQnnHtp, and in
the simulation beside it, on the first {ON_HTP} of these. `half` is the model in floats on libQnnHtp, in half
precision. `between` is the library against the simulation: for a network that a little changes a lot it is no
more than what quantization leaves.

| model | what | half | 16/8 | simulated | libQnnHtp | between | 8/8 | simulated | libQnnHtp | between | why |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
"""


BY_HAND = (
    ("MiniLM with two heads (`stackone-defender` 0.9.4), 64 tokens", "0.999998", 50.6, 50.6, 44.1, 47.9, 8),
    ("Moonshine's encoder (npm `@moonshine-ai/moonshine-js` 0.1.29)", "0.999997", 21.4, 21.3, 21.3, 45.4, 3),
)
PUBLISHED = """
## ViT, MobileViT and LeViT at 8/8

They are not in the table: they were looked at by themselves. At 8/8 libQnnHtp has 1.3 to 1.7 dB less than the
simulation, on four samples. That is chance, and no op: single steps of the first products differ, around a
mean of zero; LayerNorm and Softmax enlarge them; and both are equally far from floating point: the rms of the
error of a layer in the simulation is 1.01 times that on libQnnHtp in MobileViT (the median of 147 layers) and
1.00 times in ViT (of 51). In the end ten numbers decide. Sample by sample MobileViT has 26.3, 26.8, 25.4 and
26.1 dB in the simulation, and 27.0, 22.4, 23.6 and 27.4 on libQnnHtp; LeViT 12.3, 12.8, 14.8 and 15.9, and
9.6, 13.6, 14.8 and 13.7. ViT reads its class token, which has 1.5 to 4 of the 255 steps of its residual.

## EVA-02, EdgeNeXt, ViT and XCiT

On 12 samples, 16/8 and 8/8: EVA-02 49.5 and 27.8 dB, EdgeNeXt 45.3 and 30.6, ViT 41.0 and 7.6. XCiT has 48.2
and 27.2; on libQnnHtp 48.4 and 28.1 beside 48.7 and 28.0 in the simulation, on the first 4. Its class token
is 0.1 and its patches thousands: as one tensor of 16 bits a step is 0.5, and it had 7.0 dB at 16/8. At 8/8 it
had 10.0, by one answer to all pictures. Since then what joins tokens and norms or adds them works on each
part alone.

## As published

Two quantized transformers of packages, with their own weights, in dB on 8 samples that calibration (on 16)
did not see; on libQnnHtp, and in the simulation beside it, on as many as the last column says. Measured by
hand on 2026-11-19: the packages are not among the models that tests fetch. MiniLM reads sentences of this
project's pages and gives two numbers, Moonshine hears two seconds of speech.

| model | floats on libQnnHtp, cosine | 16/8 | simulated | libQnnHtp | between | samples |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
ROWS

MiniLM's first token spreads over 1600 steps of its residual's 16 bits, the others over 100: the LayerNorm
behind enlarges what single steps differ by, and its own results are within one step on both.
Which sentences it reads decides: on eight others, calibrated on 16 others, it has 55.6 dB in the simulation
and 55.8 on libQnnHtp, and 59.7 between them.
""".replace("ROWS", "\n".join(f"| {' | '.join(map(str, row))} |" for row in BY_HAND))


def rows_before() -> dict[str, str]:
    """The lines of the page's first table, by model."""
    lines = PAGE.read_text(encoding="utf-8").partition("\n## ")[0].splitlines() if PAGE.exists() else []
    return {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}


def page(rows: Sequence[Row]) -> str:
    """The page, with the rows that it had of models that were not measured."""
    lines: list[str] = []
    before = rows_before()
    for name, what in MODELS.items():
        own = {r.recipe: r for r in rows if r.model == name}
        if "float" not in own:
            lines += [before[name]] if name in before else []
            continue
        cells = [f"{own['float'].htp:.1f}"]
        for recipe in RECIPES:
            r = own[recipe]
            cells += [f"{r.all:.1f}", f"{r.simulated:.1f}", f"{r.htp:.1f}", f"{r.between:.1f}"]
        why = "; ".join(filter(None, (REASONS.get(name, ""), ODD.get(name, ""))))
        lines.append(f"| {name} | {what} | {' | '.join(cells)} | {why} |")
    return INTRODUCTION + "\n".join([*lines, ""]) + PUBLISHED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("models", nargs="*", help="some of them")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    arguments = parser.parse_args()
    rows: list[Row] = []
    for name in arguments.models or MODELS:
        rows += measure(folder() / f"{name}.onnx")
        print(*rows[-1 - len(RECIPES) :], sep="\n", flush=True)
        if arguments.write:
            PAGE.write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
