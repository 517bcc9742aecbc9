"""python benchmarks/export_networks.py FOLDER

Writes the networks that `python -m benchmarks chip_fits` fits, with random weights, as FOLDER/NAME.onnx by
the names of the published latencies. It takes an environment with torch, torchvision, timm and transformers;
torchvision may lack its compiled operators, of which these networks have none.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

IMAGE, VIDEO, WORDS = (1, 3, 224, 224), (1, 3, 16, 112, 112), 384


def declare_operators() -> None:
    """Names of torchvision's compiled operators, which its import asks for; none of them is ever called."""
    spec = importlib.util.find_spec("torchvision")
    assert spec is not None and spec.submodule_search_locations
    text = (Path(spec.submodule_search_locations[0]) / "_meta_registrations.py").read_text()
    for name in {found.split("::")[-1] for found in re.findall(r'register_(?:fake|meta)\("(.*?)"\)', text)}:
        try:
            torch.library.define(f"torchvision::{name}", "(Tensor x) -> Tensor")
        except RuntimeError:
            return  # they are there


def networks() -> dict[str, tuple[Callable[[], Any], tuple[int, ...] | int]]:
    import timm
    import torchvision.models as vision
    import transformers as text

    albert = text.AlbertConfig(
        embedding_size=128, hidden_size=768, num_attention_heads=12, intermediate_size=3072,
        num_hidden_layers=12, attn_implementation="eager",
    )  # fmt: skip
    return {
        "squeezenet1_1": (vision.squeezenet1_1, IMAGE),
        "mobilenet_v2": (vision.mobilenet_v2, IMAGE),
        "googlenet": (lambda: vision.googlenet(aux_logits=False, init_weights=True), IMAGE),
        "resnet18": (vision.resnet18, IMAGE),
        "resnet50": (vision.resnet50, IMAGE),
        "regnet": (vision.regnet_x_3_2gf, IMAGE),
        "wideresnet50": (vision.wide_resnet50_2, IMAGE),
        "resnext101": (vision.resnext101_32x8d, IMAGE),
        "dla102x": (lambda: timm.create_model("dla102x"), IMAGE),
        "resnet_3d": (vision.video.r3d_18, VIDEO),
        "resnet_2plus1d": (vision.video.r2plus1d_18, VIDEO),
        "mobilenet_v3_large": (vision.mobilenet_v3_large, IMAGE),
        "efficientnet_b0": (vision.efficientnet_b0, IMAGE),
        "convnext_tiny": (vision.convnext_tiny, IMAGE),
        "efficientformer": (lambda: timm.create_model("efficientformer_l1"), IMAGE),
        "levit": (lambda: timm.create_model("levit_128s"), IMAGE),
        "albert_base_v2_hf": (lambda: Words(text.AlbertForMaskedLM(albert)), WORDS),
        "mobile_bert_uncased_google": (
            lambda: Words(text.MobileBertForMaskedLM(text.MobileBertConfig())),
            WORDS,
        ),
    }


class Words(torch.nn.Module):
    """A language model that takes words alone, and gives its first result."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=words)[0]


def main(folder: Path) -> None:
    declare_operators()
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, shape) in networks().items():
        given = torch.randn(*shape) if isinstance(shape, tuple) else torch.randint(0, 1000, (1, shape))
        file = folder / f"{name}.onnx"
        torch.onnx.export(
            make().eval(), (given,), str(file), opset_version=17, dynamo=False, input_names=["x"]
        )
        print(file, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
