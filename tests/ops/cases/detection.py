"""Suppression of boxes, decoding of detections, region proposals."""

import numpy as np

from tests.ops.database import case, const, f, given

INT = np.int32
BOXES = const(
    [[0, 0, 10, 10], [0, 1, 10, 11], [20, 20, 30, 30], [21, 20, 31, 30], [50, 50, 60, 60], [0, 0, 5, 5]]
)
ONE = const(BOXES.data[None])
SMALL = const(BOXES.data[None, :, None] / 40)  # one of them leaves the unit square
TWO = const(np.stack([BOXES.data, BOXES.data + 3]))
SCORES = given([[[0.64, 0.27], [0.04, 0.02], [0.81, 0.91], [0.61, 0.73], [0.54, 0.94], [0.82, 0.1]]])
PAIR = given(np.concatenate([SCORES.data, SCORES.data[:, ::-1]]))
ANCHORS = const(
    [
        [0.1, 0.1, 0.2, 0.2],
        [0.5, 0.5, 0.3, 0.3],
        [0.52, 0.5, 0.3, 0.3],
        [0.8, 0.2, 0.1, 0.3],
        [0.3, 0.7, 0.2, 0.2],
    ]
)
SSD = given(
    [[[0.75, 0.75, 0.57], [0.92, 0.21, 0.85], [0.17, 0.96, 0.62], [0.61, 0.97, 0.79], [0.79, 0.05, 0.37]]]
)
DECODE = {"delta_scaling_factors": (10, 10, 5, 5), "confidence_threshold": 0.2, "iou_threshold": 0.5}
NMS = {"iou_threshold": 0.5, "score_threshold": 0.3}
LIMIT = {
    "nms_score_threshold": 0.1,
    "score_threshold": 0.05,
    "pre_nms_limit": -1,
    "iou_threshold": 0.3,
    "sigma": 0.5,
}
MANY = {"nms_kernel_method": "HARD", **LIMIT}
CLASSES = const(np.concatenate([BOXES.data, BOXES.data + 1], axis=1))
SPLIT = const([0, 0, 0, 0, 1, 1], INT), const([4, 2], INT)
GENERATE = {
    "img_size_ratio": (8, 8),
    "min_size": 1,
    "pre_nms_limit": 20,
    "post_nms_limit": 6,
    "iou_threshold": 0.3,
}
NONE = np.finfo(np.float32).min
RPN_ANCHORS = const([[-4, -4, 12, 12], [-8, -2, 16, 10]])
ROIS = const(
    [[0, 0, 0, 50, 40], [0, 0, 0, 224, 224], [0, 0, 0, 112, 112], [1, 0, 0, 460, 450], [0, 0, 0, 900, 900]]
)
FPN = {"roi_min_level": 2, "roi_max_level": 5, "roi_canonical_scale": 224, "roi_canonical_level": 4}


def selected(outputs: list[np.ndarray]) -> list[np.ndarray]:
    """Only the rows that are counted."""
    return [outputs[0][: int(outputs[1].sum())], outputs[1]]


def two_batches(boxes: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
    """The second batch has its boxes moved and its scores in reverse order."""
    picks = [
        (0, 0, 5),
        (0, 0, 2),
        (0, 0, 4),
        (0, 1, 4),
        (0, 1, 2),
        (1, 0, 0),
        (1, 0, 3),
        (1, 1, 1),
        (1, 1, 3),
    ]
    return [np.array(picks), np.array([5, 4])]


def both(boxes: np.ndarray, scores: np.ndarray, features: np.ndarray) -> list[np.ndarray]:
    picks, kinds = [[4, 2, 5, 2], [1, 3, 0, 3]], [[1, 1, 0, 0], [1, 1, 0, 0]]
    marks = [[scores[b, i, k] for i, k in zip(picks[b], kinds[b], strict=True)] for b in range(2)]
    take = lambda x: np.array([x[b, picks[b]] for b in range(2)])
    return [take(boxes), np.array(marks), np.array(kinds), np.array([4, 4]), take(features)]


def combined(boxes: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
    """Worked by hand: three of class 0 and three of class 1, of which the best five."""
    picks, kinds = [4, 2, 5, 2, 0], [1, 1, 0, 0, 0]
    marks = [scores[0, i, k] for i, k in zip(picks, kinds, strict=True)]
    return [boxes[:, picks, 0], np.array([marks]), np.array([kinds]), np.array([5])]


def soft(boxes: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
    """Box 0 overlaps box 5, which scores more, by a quarter: its score shrinks by e^(-0.25^2 / (2 sigma))."""
    picks, kinds = [4, 2, 5, 2, 0, 4], [1, 1, 0, 0, 0, 0]
    marks = [scores[0, i, k] for i, k in zip(picks, kinds, strict=True)]
    marks[4] *= np.exp(-(0.25**2) / (2 * 0.5))
    return [boxes[:, picks], np.array([marks]), np.array([kinds]), np.array([6])]


def proposals(
    scores: np.ndarray, deltas: np.ndarray, anchors: np.ndarray, size: np.ndarray
) -> list[np.ndarray]:
    """Without deltas the anchors themselves, moved eight pixels a cell; the best and those away from it."""
    cells = [(y, x, k) for y in range(2) for x in range(3) for k in range(2)]
    boxes = np.array([anchors[k] + np.tile([8 * x, 8 * y], 2) for y, x, k in cells])
    boxes = np.clip(boxes, 0, np.tile(size[0, ::-1], 2))
    marks, chosen = scores.reshape(-1), []
    for i in np.argsort(-marks):
        if all(_iou(boxes[i], boxes[j]) <= 0.3 for j in chosen):
            chosen.append(i)
    chosen = chosen[:6]
    fill = 6 - len(chosen)
    return [np.r_[marks[chosen], [NONE] * fill], np.r_[boxes[chosen], np.zeros((fill, 4))], np.zeros(6, INT)]


def _iou(a: np.ndarray, b: np.ndarray) -> float:
    common = np.prod(np.clip(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0, None))
    return common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


def scaled(rois: np.ndarray, deltas: np.ndarray, info: np.ndarray) -> list[np.ndarray]:
    """Without deltas the boxes come back clipped to the image at its scale."""
    limit = np.tile(info[0, 1::-1], 2)
    return [np.tile(np.clip(rois[:, 1:], 0, limit), 2), np.array([2.0])]


def summit(heat: np.ndarray, boxes: np.ndarray) -> list[np.ndarray]:
    return [np.array([[4.0]]), np.array([[[0.5 * 8 + 2, 0.375 * 16 + 1]]])]


# A quadratic hill with its top at column 2.0, row 1.5 (cell centres are at .5), of height 4.
HILL = given(4 - (np.mgrid[:4, :4][1] + 0.5 - 2.0) ** 2 - 2 * (np.mgrid[:4, :4][0] + 0.5 - 1.5) ** 2)
NO_RUN = "libQnnCpu validates it but does not finalize"

CASES = [
    case(
        "NonMaxSuppression",
        ONE,
        const(SCORES.data.transpose(0, 2, 1)),
        iou_threshold=0.5,
        score_threshold=0.2,
        max_boxes_selected=3,
        valid=selected,
    ),
    case(
        "NonMaxSuppression",
        TWO,
        const(PAIR.data.transpose(0, 2, 1)),
        iou_threshold=0.2,
        score_threshold=0.5,
        max_boxes_selected=9,
        valid=selected,
        label="batches",
        expect=two_batches,
        xfail="libQnnCpu does not finalize a count per batch",
    ),
    case("MultiClassNms", ONE, SCORES, shape=(1, 10, 4), **NMS),
    case("MultiClassNms", ONE, SCORES, f(1, 6, 3), shape=(1, 4, 4), **NMS, label="features"),
    case(
        "MultiClassNms",
        TWO,
        PAIR,
        f(2, 6, 3),
        shape=(2, 4, 4),
        **NMS,
        label="batches",
        expect=both,
        xfail="libQnnCpu gives the features of the last batch to the first",
    ),
    case(
        "MultiClassNms",
        ONE,
        SCORES,
        shape=(1, 6, 4),
        soft_nms_sigma=0.5,
        label="soft",
        expect=soft,
        **NMS,
        xfail="libQnnCpu ignores soft_nms_sigma",
    ),
    case(
        "CombinedNms",
        SMALL,
        given(SCORES.data[..., :1]),
        max_boxes_per_class=3,
        max_total_boxes=5,
        **NMS,
        clip_boxes=True,
    ),
    case(
        "CombinedNms",
        SMALL,
        given(SCORES.data[..., :1]),
        max_boxes_per_class=3,
        max_total_boxes=5,
        **NMS,
        pad_per_class=True,
    ),
    case(
        "CombinedNms",
        const(ONE.data[:, :, None]),
        SCORES,
        max_boxes_per_class=3,
        max_total_boxes=5,
        label="classes",
        xfail="libQnnCpu lets each box keep only its best class",
        expect=combined,
        iou_threshold=0.5,
        score_threshold=0.1,
    ),
    *(
        case("DetectionOutput", SSD, f(1, 5, 4), ANCHORS, shape=(1, 8), nms_type="REGULAR", **DECODE, **more)
        for more in ({}, {"output_background": False, "detection_limit": 2}, {"use_bg_in_nms": True})
    ),
    case(
        "DetectionOutput", SSD, f(1, 5, 4), ANCHORS, shape=(1, 8), detection_limit=1, **DECODE, label="fast"
    ),
    case(
        "DetectionOutput",
        SSD,
        f(1, 5, 4),
        ANCHORS,
        shape=(1, 8),
        detection_limit=2,
        output_background=False,
        **DECODE,
        label="fast",
    ),
    case(
        "BoxWithNmsLimit",
        CLASSES,
        given(SCORES.data[0]),
        const([0] * 6, INT),
        const([6], INT),
        shapes=[(12, 4), (12,), (12,), (12,), (1,)],
        **MANY,
    ),
    case(
        "BoxWithNmsLimit",
        CLASSES,
        given(SCORES.data[0]),
        *SPLIT,
        shapes=[(12, 4), (12,), (12,), (12,), (2,)],
        **{**LIMIT, "nms_kernel_method": "LINEAR"},
    ),
    case(
        "BoxWithNmsLimit",
        CLASSES,
        given(SCORES.data[0]),
        *SPLIT,
        shapes=[(12, 4), (12,), (12,), (12,), (2,)],
        **{**LIMIT, "nms_kernel_method": "GAUSSIAN", "nms_score_threshold": 0.4},
    ),
    case(
        "BoxWithNmsLimit",
        CLASSES,
        given(SCORES.data[0]),
        *SPLIT,
        shapes=[(12, 4), (12,), (12,), (12,), (2,)],
        **{**MANY, "pre_nms_limit": 3},
    ),
    case(
        "AxisAlignedBboxTransform",
        const([[1, 2, 10, 20], [5, 5, 30, 25]]),
        f(2, 8),
        const([0, 1], INT),
        const([[24, 28], [40, 26]]),
        weights=(10, 10, 5, 5),
    ),
    case("AxisAlignedBboxTransform", const([[1, 2, 10, 20]]), f(1, 4), const([0], INT), const([[24, 28]])),
    case(
        "BboxTransform",
        const([[0, 1, 2, 10, 20], [0, 5, 5, 30, 25]]),
        given(np.zeros((2, 8))),
        const([[20, 24, 2]]),
        weights=(10, 10, 5, 5),
        xfail=NO_RUN,
        expect=scaled,
    ),
    case(
        "GenerateProposals",
        f(1, 1, 1, 2, low=0),
        f(1, 1, 1, 8, low=-0.3, high=0.3),
        RPN_ANCHORS,
        const([[40, 50]]),
        **{**GENERATE, "iou_threshold": 0.9},
    ),
    case(
        "GenerateProposals",
        given(np.linspace(0.9, 0.1, 12)[[3, 8, 1, 0, 5, 7, 2, 11, 4, 6, 10, 9]].reshape(1, 2, 3, 2)),
        given(np.zeros((1, 2, 3, 8))),
        RPN_ANCHORS,
        const([[40, 50]]),
        label="cells",
        expect=proposals,
        **GENERATE,
        xfail="libQnnCpu reads past the anchors for every cell but the first",
    ),
    case(
        "CollectRpnProposals",
        *(f(3, 5) for _ in range(5)),
        *(f(3) for _ in range(5)),
        rpn_min_level=2,
        rpn_max_level=6,
        post_nms_top=7,
    ),
    case(
        "CollectRpnProposals",
        given([[0, 1, 1, 2, 2], [0, 3, 3, 4, 4]]),
        given([0.2, 0.7]),
        rpn_min_level=2,
        rpn_max_level=2,
        post_nms_top=3,
        label="short",
        xfail="libQnnCpu insists on five levels",
        expect=lambda rois, scores: np.r_[rois[::-1], np.zeros((1, 5))],
    ),
    case("DistributeFpnProposals", ROIS, **FPN),
    case(
        "DistributeFpnProposals",
        const([[0, 0, 0, 4, 4]]),
        **FPN,
        label="tiny",
        xfail="libQnnCpu sends regions whose level would be negative to the last",
        expect=lambda rois: [np.array([0]), rois, *[np.zeros_like(rois)] * 3],
    ),
    case(
        "HeatMapMaxKeyPoint",
        given(HILL.data[None, :, :, None]),
        const([[2, 1, 10, 17]]),
        expect=summit,
        xfail="libQnnCpu refuses every data type",
    ),
]
