"""From the cost model's figures to milliseconds on chips: numbers fitted to published device latencies.

Milliseconds are `start + slope * million cycles + read * megabytes read + moved * megabytes spilled and
filled + alive * megabytes of activations alive at once`. Of 8 bits each chip has one of the last two, by
which of them predicts networks better that were not fitted. The coefficients were found by the least
absolute relative error, none of them below zero, from latencies that Qualcomm publishes for its AI Hub models
(repository ai-hub-models at b61a009, runtime DLC) and cost figures of the same networks with random weights.
`median` and `largest` are the relative errors, and `order` Spearman's correlation, where each network is
predicted by a fit without it. `benchmarks/chip_fits.py` does all of that again.
"""

from __future__ import annotations

from dataclasses import dataclass

NETWORKS_8 = (
    "squeezenet1_1", "mobilenet_v2", "googlenet", "resnet18", "resnet50", "regnet_x_3_2gf",
    "wide_resnet50_2", "dla102x", "resnext101_32x8d", "r3d_18", "r2plus1d_18",
)  # fmt: skip
NETWORKS_16 = (
    "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "convnext_tiny", "efficientformer_l1",
    "levit_128s", "albert_base_v2", "mobilebert_uncased",
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
    alive: float = 0.0

    def milliseconds(self, cycles: float, read: float = 0.0, moved: float = 0.0, alive: float = 0.0) -> float:
        """`read`, `moved` and `alive` are bytes."""
        traffic = self.read * read + self.moved * moved + self.alive * alive
        return self.start + (self.slope * cycles + traffic) / 1e6


CHIPS = (
    ChipFit("QCS9100", 0.1905, 0.5809, 0.0, 0.0, 0.049, 0.64, "googlenet", 0.955, 11, 0.0732),
    ChipFit("SM8550", 0.1080, 0.5673, 0.0, 0.0, 0.043, 0.87, "googlenet", 0.973, 11, 0.0672),
    ChipFit("SM8650", 0.0851, 0.4421, 0.0, 0.0, 0.059, 0.87, "googlenet", 0.964, 11, 0.0395),
    ChipFit("SM8750", 0.0991, 0.3892, 0.0, 0.0027, 0.033, 0.71, "googlenet", 0.973, 11),
    ChipFit("SM8850", 0.0927, 0.3083, 0.0, 0.0, 0.069, 0.47, "googlenet", 0.973, 11),
    ChipFit("SC8380XP", 0.1570, 0.5535, 0.0, 0.0, 0.068, 0.58, "googlenet", 0.982, 11, 0.0954),
    ChipFit("SM8450", 0.3034, 0.8176, 0.0, 0.0323, 0.061, 0.51, "googlenet", 0.955, 11),
    ChipFit("QCS8275", 0.6229, 1.2952, 0.0, 0.1038, 0.078, 0.43, "googlenet", 0.955, 11),
    ChipFit("SA8775P", 0.3173, 0.5886, 0.0, 0.0, 0.062, 0.52, "googlenet", 0.952, 10, 0.0534),
)
"""For activations of 8 bits. googlenet is faster on all devices than its cost and its neighbours say."""

CHIPS_16 = (
    ChipFit("QCS9100", 0.4027, 0.4776, 0.0481, 0.0159, 0.105, 0.13, "albert_base_v2", 0.976, 8),
    ChipFit("SM8550", 0.2620, 0.3992, 0.0534, 0.0158, 0.012, 0.14, "levit_128s", 0.976, 8),
    ChipFit("SM8650", 0.1845, 0.2860, 0.0359, 0.0111, 0.052, 0.14, "levit_128s", 0.976, 8),
    ChipFit("SM8750", 0.0847, 0.2411, 0.0247, 0.0027, 0.191, 0.28, "mobilebert_uncased", 1.000, 8),
    ChipFit("SM8850", 0.0700, 0.1668, 0.0224, 0.0, 0.068, 0.33, "mobilebert_uncased", 1.000, 8),
    ChipFit("SC8380XP", 0.3925, 0.4117, 0.0578, 0.0194, 0.008, 0.11, "levit_128s", 0.976, 8),
    ChipFit("SM8450", 0.2771, 0.4725, 0.0819, 0.0323, 0.093, 0.17, "mobilebert_uncased", 1.000, 5),
    ChipFit("QCS8275", 0.6613, 0.7129, 0.1240, 0.1038, 0.081, 0.21, "albert_base_v2", 0.976, 8),
)
"""For activations of 16 bits. What spills adds nothing to the fit: `moved` is that of a fit of 8 bits."""

CHIPS_FLOAT = (
    ChipFit("QCS9100", 0.6665, 0.1008, 0.0434, 0.0, 0.136, 2.08, "albert_base_v2", 0.944, 18),
    ChipFit("SM8550", 0.5233, 0.0880, 0.0256, 0.0, 0.156, 2.90, "albert_base_v2", 0.915, 18),
    ChipFit("SM8650", 0.3467, 0.0673, 0.0183, 0.0, 0.092, 2.40, "albert_base_v2", 0.934, 18),
    ChipFit("SM8750", 0.2508, 0.0458, 0.0158, 0.0, 0.126, 2.75, "albert_base_v2", 0.928, 18),
    ChipFit("SM8850", 0.1719, 0.0374, 0.0141, 0.0, 0.135, 1.98, "albert_base_v2", 0.934, 18),
    ChipFit("SC8380XP", 0.6990, 0.0863, 0.0255, 0.0, 0.186, 2.88, "albert_base_v2", 0.905, 18),
    ChipFit("SM8450", 1.1025, 0.1354, 0.0447, 0.0, 0.148, 4.22, "albert_base_v2", 0.926, 18),
    ChipFit("QCS8275", 1.1375, 0.2837, 0.1607, 0.0, 0.156, 1.76, "albert_base_v2", 0.930, 18),
    ChipFit("SA8775P", 0.7293, 0.1049, 0.0421, 0.0, 0.153, 4.47, "albert_base_v2", 0.943, 15),
)
"""For half precision, of which the cost model lacks ops: rough, and far too much for transformers."""


def fits_for(width: int) -> tuple[ChipFit, ...]:
    """The fits for a width of activations; 32 stands for floating point."""
    return {16: CHIPS_16, 32: CHIPS_FLOAT}.get(width, CHIPS)
