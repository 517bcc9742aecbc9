"""From the cost model's figures to milliseconds on chips: numbers fitted to published device latencies.

Milliseconds are `start + slope * million cycles + read * megabytes read + moved * megabytes spilled and
filled`. The coefficients were found by the least absolute relative error, none of them below zero, from
latencies that Qualcomm publishes for its AI Hub models (repository ai-hub-models at b61a009, runtime DLC) and
cost figures of the same networks with random weights. `median` and `largest` are the relative errors, and
`order` Spearman's correlation, where each network is predicted by a fit without it. `benchmarks/chip_fits.py`
does all of that again.
"""

from __future__ import annotations

from dataclasses import dataclass

NETWORKS_8 = (
    "squeezenet1_1", "mobilenet_v2", "googlenet", "resnet18", "resnet50", "regnet_x_3_2gf",
    "wide_resnet50_2", "dla102x", "resnext101_32x8d", "r3d_18", "r2plus1d_18",
)  # fmt: skip
NETWORKS_16 = (
    "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "convnext_tiny", "efficientformer_l1",
    "levit_128s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChipFit:
    """Milliseconds of one chip, and how far off they were for networks that were not fitted."""

    chip: str
    start: float
    slope: float
    read: float
    moved: float
    median: float
    largest: float
    outlier: str
    order: float
    networks: int

    def milliseconds(self, cycles: float, read: float = 0.0, moved: float = 0.0) -> float:
        """`read` and `moved` are bytes."""
        return self.start + (self.slope * cycles + self.read * read + self.moved * moved) / 1e6


CHIPS = (
    ChipFit("QCS9100", 0.3301, 0.6142, 0.0, 0.0210, 0.068, 0.74, "googlenet", 0.955, 11),
    ChipFit("SM8550", 0.2540, 0.5812, 0.0, 0.0215, 0.031, 1.05, "googlenet", 0.973, 11),
    ChipFit("SM8650", 0.1706, 0.4407, 0.0, 0.0148, 0.058, 0.98, "googlenet", 0.964, 11),
    ChipFit("SM8750", 0.0984, 0.3908, 0.0, 0.0047, 0.037, 0.71, "googlenet", 0.964, 11),
    ChipFit("SM8850", 0.0918, 0.3108, 0.0, 0.0, 0.060, 0.48, "googlenet", 0.973, 11),
    ChipFit("SC8380XP", 0.3273, 0.6032, 0.0, 0.0244, 0.127, 0.76, "googlenet", 0.964, 11),
    ChipFit("SM8450", 0.3042, 0.8146, 0.0, 0.0497, 0.064, 0.51, "googlenet", 0.955, 11),
    ChipFit("QCS8275", 0.6221, 1.2970, 0.0, 0.1166, 0.082, 0.43, "googlenet", 0.955, 11),
    ChipFit("SA8775P", 0.4241, 0.6157, 0.0, 0.0141, 0.114, 0.59, "googlenet", 0.939, 10),
)
"""For activations of 8 bits. googlenet is faster on all devices than its cost and its neighbours say."""

CHIPS_16 = (
    ChipFit("QCS9100", 0.4853, 0.3426, 0.0583, 0.0210, 0.036, 0.07, "efficientnet_b0", 0.829, 6),
    ChipFit("SM8550", 0.2769, 0.3714, 0.0555, 0.0215, 0.015, 0.14, "efficientnet_b0", 0.771, 6),
    ChipFit("SM8650", 0.2097, 0.2380, 0.0396, 0.0148, 0.055, 0.12, "efficientnet_b0", 0.829, 6),
    ChipFit("SM8750", 0.1234, 0.1615, 0.0311, 0.0047, 0.044, 0.16, "convnext_tiny", 0.771, 6),
    ChipFit("SM8850", 0.0849, 0.1466, 0.0241, 0.0, 0.054, 0.12, "convnext_tiny", 0.829, 6),
    ChipFit("SC8380XP", 0.3974, 0.4032, 0.0584, 0.0244, 0.011, 0.13, "efficientnet_b0", 0.771, 6),
    ChipFit("QCS8275", 0.7303, 0.5941, 0.1332, 0.1166, 0.089, 0.13, "efficientnet_b0", 0.829, 6),
)
"""For activations of 16 bits. None of the six networks spills, so that `moved` is that of 8 bits."""


def fits_for(width: int) -> tuple[ChipFit, ...]:
    """The fits for a width of activations."""
    return CHIPS_16 if width == 16 else CHIPS
