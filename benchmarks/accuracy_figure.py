"""Draws docs/images/accuracy.svg from the figures of docs/accuracy.md.

python -m benchmarks.accuracy_figure
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, FIGURE = DOCS / "accuracy.md", DOCS / "images" / "accuracy.svg"
SECTION, BITS, MEASURED = "## On libQnnHtp", "8/8", "2026-11-17"
PEERS = (("OpenQNN", "ours"), ("ONNX Runtime, better of two", "ort"), ("AIMET", "aimet"))
ROW, LEFT, RIGHT, TOP, BOTTOM, WIDTH = 22, 150, 30, 74, 58, 760
STYLE = """
  .card { fill: #ffffff; stroke: #d0d7de } .word { fill: #1f2328 } .quiet { fill: #59636e }
  .grid { stroke: #d8dee4 } .ours { fill: #0969da } .ort { fill: #bc4c00 } .aimet { fill: #6e7781 }
  text { font: 12px system-ui, "DejaVu Sans", sans-serif }
  .title { font-size: 15px; font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #0d1117; stroke: #30363d } .word { fill: #e6edf3 } .quiet { fill: #9198a1 }
    .grid { stroke: #21262d } .ours { fill: #4493f8 } .ort { fill: #f0883e } .aimet { fill: #b1bac4 }
  }
"""


def figures() -> dict[str, dict[str, float | None]]:
    """Decibels by network and by who quantized it; None where a peer refused the network."""
    section = PAGE.read_text(encoding="utf-8").partition(f"{SECTION}\n")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line[:1] == "|"
    ]
    names = rows[0]
    found = [dict(zip(names, row, strict=True)) for row in rows[2:]]
    return {row["model"]: _of(row) for row in found if row["bits"] == BITS}


def _of(row: dict[str, str]) -> dict[str, float | None]:
    number = lambda cell: float(cell) if re.fullmatch(r"-?[\d.]+", cell) else None
    both = [n for n in (number(row["ort"]), number(row["ort per channel"])) if n is not None]
    return {"ours": number(row["ours"]), "ort": max(both, default=None), "aimet": number(row["aimet"])}


def svg() -> str:
    """The figure: a line for each network, and a dot for each who quantized it."""
    found = sorted(figures().items(), key=lambda item: -(item[1]["ours"] or 0))
    height = TOP + ROW * len(found) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        f' aria-label="{_title(found)}"><style>{STYLE}</style>',
        f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
        f'<text class="word title" x="20" y="28">{_title(found)}</text>',
        *_legend(), *_grid(height),
    ]  # fmt: skip
    for index, (model, numbers) in enumerate(found):
        parts += _row(TOP + ROW * index + ROW // 2, model, numbers)
    foot = (
        f"Weights and activations of 8 bits (OpenQNN's default has 16 in small nodes), on Qualcomm's HTP"
        f" simulator, {MEASURED}"
    )
    parts.append(f'<text class="quiet" x="20" y="{height - 14}">{foot}</text>')
    return "\n".join([*parts, "</svg>", ""])


def lead(found: list[tuple[str, dict[str, float | None]]]) -> float:
    """By how much ours is better than the better peer, in decibels, on average."""
    leads = [
        n["ours"] - max(p for p in (n["ort"], n["aimet"]) if p is not None) for _, n in found if n["ours"]
    ]
    return sum(leads) / len(leads)


def _title(found: list[tuple[str, dict[str, float | None]]]) -> str:
    return (
        f"{len(found)} networks in 8 bits: {lead(found):.1f} dB nearer to floating point than the better peer"
    )


def _legend() -> list[str]:
    parts, x = [], 20
    for words, kind in PEERS:
        parts.append(f'<circle class="{kind}" cx="{x + 5}" cy="48" r="5"/>')
        parts.append(f'<text class="word" x="{x + 16}" y="52">{words}</text>')
        x += 40 + 7 * len(words)
    return [
        *parts,
        f'<text class="quiet" x="{WIDTH - 20}" y="52" text-anchor="end">SQNR in dB, more is better</text>',
    ]


def _grid(height: int) -> list[str]:
    parts: list[str] = []
    for decibels in range(0, 61, 10):
        x = _x(decibels)
        parts.append(f'<line class="grid" x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{height - BOTTOM + 4}"/>')
        parts.append(
            f'<text class="quiet" x="{x}" y="{height - BOTTOM + 18}" text-anchor="middle">{decibels}</text>'
        )
    return parts


def _row(y: int, model: str, numbers: dict[str, float | None]) -> list[str]:
    known = [n for n in numbers.values() if n is not None]
    parts = [
        f'<text class="word" x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{model}</text>',
        f'<line class="grid" stroke-width="2" x1="{_x(min(known))}" y1="{y}" x2="{_x(max(known))}"'
        f' y2="{y}"/>',
    ]
    for _, kind in reversed(PEERS):
        if (number := numbers[kind]) is not None:
            parts.append(f'<circle class="{kind}" cx="{_x(number)}" cy="{y}" r="5"/>')
    return parts


def _x(decibels: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * max(decibels, 0) / 60, 1)


if __name__ == "__main__":
    FIGURE.parent.mkdir(exist_ok=True)
    FIGURE.write_text(svg(), encoding="utf-8")
