"""Blocks of the image, channels and batch."""

from __future__ import annotations

from tests.ops.database import Case, case, f

CASES: list[Case] = [
    case("ChannelShuffle", f(1, 4, 4, 6), num_groups=3),
    case("ChannelShuffle", f(2, 6, 5), num_groups=2, axis=1, label="axis"),
    case("DepthToSpace", f(1, 3, 4, 8), block_size=(2, 2)),
    case("DepthToSpace", f(2, 3, 4, 12), block_size=(2, 3), mode="CRD", label="crd"),
    case("SpaceToDepth", f(1, 6, 8, 2), block_size=(2, 2)),
    case("SpaceToDepth", f(2, 4, 6, 2), block_size=(2, 2), mode="CRD", label="crd"),
    case(
        "SpaceToDepth",
        f(2, 4, 6, 1),
        block_size=(2, 3),
        label="oblong",
        xfail="SpaceToDepth takes only square blocks",
        expect=lambda x: x.reshape(2, 2, 2, 2, 3).transpose(0, 1, 3, 2, 4),
    ),
    case("BatchToSpace", f(4, 3, 3, 2), block_size=(2, 2)),
    case("BatchToSpace", f(6, 3, 3, 2), block_size=(2, 3), crops=((1, 0), (2, 1)), label="crops"),
    case("SpaceToBatch", f(1, 4, 6, 2), block_size=(2, 2)),
    case("SpaceToBatch", f(2, 3, 5, 2), block_size=(2, 3), pad_amount=((1, 0), (0, 1)), label="pads"),
]
