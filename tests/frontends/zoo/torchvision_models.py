"""torchvision's networks with random weights, beside torch's CPU build."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.export_networks import declare_operators

SMALL, LEAST = 64, {"inception_v3": 96, "googlenet": 96, "alexnet": 96, "vit_b_32": 96, "vit_l_32": 96}
"""Sides of the images; some networks halve them too often for the common one."""
FRAMES, VIDEO = 8, {"s3d": (16, 224)}
"""Frames and sides of videos, where the network has a fixed pooling at its end."""
WINDOWS = 224
"""The side that MaxViT's windows fit into."""


def models() -> Any:
    """The package's networks; they are Python, and need no library of its own."""
    declare_operators()
    return importlib.import_module("torchvision.models")


def names() -> list[str]:
    """Classification, segmentation and video."""
    kinds = models(), models().segmentation, models().video
    return [name for kind in kinds for name in models().list_models(kind)]


def network(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    """A network, ready for inference, and an input."""
    found = models()
    torch.manual_seed(0)
    options: dict[str, Any] = {}
    side = LEAST.get(name, SMALL)
    if name.startswith("vit_"):
        options["image_size"] = side
    if name == "maxvit_t":
        side = WINDOWS
    if name.startswith("mvit"):
        sizes = {"spatial_size": (SMALL, SMALL), "temporal_size": FRAMES}
        module = importlib.import_module("torchvision.models.video.mvit")
        vars(module)["MViT"] = lambda **given: found.video.MViT(**given | sizes)
    if name in ("googlenet", "inception_v3"):
        options["init_weights"] = False
    if name in found.list_models(found.segmentation):
        options["weights_backbone"] = None
    model = found.get_model(name, weights=None, **options).eval()
    shape: tuple[int, ...] = (1, 3, side, side)
    if name in found.list_models(found.video):
        frames, side = VIDEO.get(name, (FRAMES, SMALL))
        shape = (1, 3, frames, side, side)
    x = torch.rand(shape)
    settle(model, x)
    return model, x


def settle(model: torch.nn.Module, x: torch.Tensor) -> None:
    """Batch norms take the statistics of an input, as after training: or numbers grow by depth."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    if norms:
        with torch.no_grad():
            model(torch.cat([x, torch.rand_like(x)]))
    for norm in norms:
        norm.eval()


def saved(name: str, folder: Path) -> tuple[Path, NDArray[np.float32], NDArray[np.float32]]:
    """A network as a .pt2 file, an input, and what torch makes of it."""
    model, x = network(name)
    path = folder / f"{name}.pt2"
    torch.export.save(torch.export.export(model, (x,)), path)
    with torch.no_grad():
        return path, x.numpy(), first(model(x)).numpy()


def first(output: Any) -> torch.Tensor:
    """What is compared: the only output, or the first of a segmentation's."""
    return next(iter(output.values())) if isinstance(output, dict) else output
