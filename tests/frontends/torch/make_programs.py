"""Writes the small .pt2 files of this folder, with inputs and torch's own results beside them.

Run it with torch 2.13: python -m tests.frontends.torch.make_programs. The files are checked in, so that tests
of the reader need no torch.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

FOLDER = Path(__file__).parent / "programs"


class Block(nn.Module):
    def __init__(self, inside: int, out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inside, out, 3, padding=1)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.hardswish(self.norm(self.conv(x)))


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Block(3, 4), Block(4, 6)
        self.depthwise = nn.Conv2d(6, 6, 3, stride=2, groups=6)
        self.head = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.max_pool2d(self.second(self.first(x)), 2)
        y = torch.relu(self.depthwise(y)).mean((2, 3))
        return torch.softmax(self.head(y), -1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.project = nn.LayerNorm(8), nn.Linear(8, 24)
        self.gate = nn.RMSNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(self.norm(x)).view(x.shape[0], -1, 3, 2, 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.gate(F.gelu(y.transpose(1, 2).flatten(2)) + x)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gru(self.lstm(x)[0].transpose(0, 1))[0]


class Image(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = F.pixel_shuffle(x, 2)
        up = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
        return torch.cat([up[:, :, ::2], y.repeat(1, 1, 1, 2)], 1), torch.topk(x.flatten(1), 3).values


class Writes(nn.Module):
    """Parts of a tensor are written in place, through views."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[:, 0] = 1.0
        y[:, 1:3].add_(x[:, :2])
        F.relu(y, inplace=True)
        return y.t() + 1


class Cache(nn.Module):
    """A buffer that every call shifts."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.copy_(torch.cat([self.seen[:, 1:], x], 1))
        return self.seen.sum(1)


class Unknown(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j0(x) + torch.masked_select(x, x > 0).sum()


@torch.library.custom_op("acme::blend", mutates_args=())
def blend(
    x: torch.Tensor, table: torch.Tensor, bias: torch.Tensor | None, factor: float, taps: list[int],
    mode: str = "plus", on: bool = True, *, power: int = 2,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """An op of the user's with every kind of argument and two results."""
    y = factor * x**power + (table if mode == "plus" else -table)
    y = y if bias is None else y + bias
    return (y if on else x.clone()), y * float(sum(taps))


@blend.register_fake
def _(x: torch.Tensor, *_rest: Any, **_more: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(x), torch.empty_like(x)


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(5))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a, b = blend(torch.relu(x), self.table, None, 2.5, [1, 3], "minus", power=3)
        c, d = blend(x, self.table, self.table, 0.5, [2])
        return torch.tanh(a) + b + c, d


CASES = {
    "own": (Own, {"x": (2, 5)}, ()),
    "cnn": (Cnn, {"x": (1, 3, 8, 8)}, ()),
    "attention": (Attention, {"x": (2, 5, 8)}, ()),
    "dynamic": (Attention, {"x": (2, 5, 8)}, (0,)),
    "recurrent": (Recurrent, {"x": (2, 3, 4)}, ()),
    "image": (Image, {"x": (1, 4, 3, 4)}, ()),
    "writes": (Writes, {"x": (2, 4)}, ()),
    "cache": (Cache, {"x": (1, 1)}, ()),
    "unknown": (Unknown, {"x": (2, 3)}, ()),
}


def write(name: str) -> None:
    kind, shapes, open_axes = CASES[name]
    torch.manual_seed(len(name))
    module = kind().eval()
    inputs = {n: torch.randn(shape) for n, shape in shapes.items()}
    dynamic = (
        {n: {a: torch.export.Dim("batch", max=64) for a in open_axes} for n in shapes} if open_axes else None
    )
    program = torch.export.export(module, tuple(inputs.values()), dynamic_shapes=dynamic)
    target = FOLDER / f"{name}.pt2"
    torch.export.save(program, target)
    _clean(target, name)
    results = module(*inputs.values())
    listed = results if isinstance(results, tuple) else (results,)
    arrays = {f"in_{n}": v.numpy() for n, v in inputs.items()}
    np.savez(
        FOLDER / f"{name}.npz", **arrays, **{f"out_{i}": v.detach().numpy() for i, v in enumerate(listed)}
    )


def _clean(path: Path, name: str) -> None:
    """Without the pickle, and without the paths of the machine that it was written on."""
    with zipfile.ZipFile(path) as zipped:
        entries = {
            n: zipped.read(n) for n in zipped.namelist() if "sample_inputs" not in n and "/.data/" not in n
        }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as zipped:
        for entry, data in entries.items():
            if entry.endswith("models/model.json"):
                text = re.sub(r'File \\"[^"\\]*/(site-packages|frontends)/', r'File \\"/\1/', data.decode())
                data = json.dumps(json.loads(text), separators=(",", ":")).encode()
            zipped.writestr(zipfile.ZipInfo(entry), data)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in CASES:
        write(each)
