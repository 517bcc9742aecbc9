"""python benchmarks/export_resnet50.py FILE.pt2

Writes torchvision's ResNet-50 with random weights, for `python -m benchmarks large_files`. It takes an
environment with torch and torchvision, which may lack its compiled operators.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmarks.export_networks import declare_operators


def main() -> None:
    declare_operators()
    import torchvision

    torch.manual_seed(0)
    model = torchvision.models.resnet50(weights=None).eval()
    torch.export.save(torch.export.export(model, (torch.rand(1, 3, 224, 224),)), sys.argv[1])


if __name__ == "__main__":
    main()
