"""Recurrent cells and frames of a signal."""

import numpy as np

from tests.ops.database import Given, case, const, f, w

T, B, W, H = 4, 3, 5, 6
# forget, cell, output, input
GATES = [[w(H, W) for _ in range(4)], [w(H, H) for _ in range(4)], [w(H) for _ in range(4)]]
STATE = (w(B, H), w(B, H))


def lstm(x: Given, units: int = H, **given: Given | None) -> list[Given | None]:
    """The 24 slots; the keywords fill optional ones. Without `coupled` the cell has an input gate."""
    weights, recurrent, biases = GATES
    coupled = "coupled" in given
    slots: list[Given | None] = [x, *weights[:3], *recurrent[:3], *biases[:3], *STATE, *[None] * 12]
    if not coupled:
        slots[16], slots[17], slots[21] = weights[3], recurrent[3], biases[3]
    for name, slot in NAMES.items():
        slots[slot] = given.get(name, slots[slot])
    while slots[-1] is None:
        slots.pop()
    return slots


NAMES = {
    "ln_i": 12,
    "ln_f": 13,
    "ln_c": 14,
    "ln_o": 15,
    "p_i": 18,
    "p_f": 19,
    "p_o": 20,
    "proj": 22,
    "b_proj": 23,
}
NORMS = {k: w(H, low=0.5, high=1.5) for k in ("ln_i", "ln_f", "ln_c", "ln_o")}
PEEPHOLES = {k: w(H) for k in ("p_i", "p_f", "p_o")}
X = f(T, B, W)

GRU = [*(w(H, W) for _ in range(3)), *(w(H, H) for _ in range(3)), *(w(H) for _ in range(6))]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gru(x: np.ndarray, *more: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Time first, reset after the recurrent weights."""
    (wz, wr, wn, rz, rr, rn), rest = more[:6], [*more[6:], *[None] * 7]
    bz, br, bn, cz, cr, cn = (0 if v is None else v for v in rest[:6])
    h = np.zeros((x.shape[1], wz.shape[0])) if rest[6] is None else rest[6][0]
    out = []
    for step in x:
        z, r = sigmoid(step @ wz.T + bz + h @ rz.T + cz), sigmoid(step @ wr.T + br + h @ rr.T + cr)
        h = (1 - z) * np.tanh(step @ wn.T + bn + r * (h @ rn.T + cn)) + z * h
        out.append(h)
    return np.array(out), h[None]


LATE = {"linear_before_reset": 1}
first = lambda outputs: outputs[:1]

CASES = [
    case("Lstm", *lstm(X)),
    case("Lstm", *lstm(X), direction="REVERSE", label="reverse"),
    case("Lstm", *lstm(f(B, T, W)), time_major=False, label="batch-first"),
    case("Lstm", *lstm(f(B, W)), time_major=False, label="one-step"),
    case("Lstm", *lstm(X, **PEEPHOLES), label="peepholes"),
    case("Lstm", *lstm(X, **NORMS), label="norm"),
    case("Lstm", *lstm(X, coupled=None, p_f=w(H), p_o=w(H)), label="coupled"),
    case("Lstm", *lstm(X, proj=w(H, H), b_proj=w(H)), output_clip_threshold=0.4, label="projection"),
    case("Lstm", *lstm(X, **PEEPHOLES), cell_clip_threshold=0.3, direction="REVERSE", label="clip"),
    case("Lstm", *lstm(X), shapes=[(T, B, H), *[(B, H)] * 7], label="gates"),
    # libQnnCpu gives the initial state back as the last one: only the sequence is compared with it.
    case("Gru", f(B, T, W), *GRU, w(1, B, H), time_major=False, valid=first, **LATE),
    case(
        "Gru",
        f(B, T, W),
        *GRU,
        w(1, B, H),
        time_major=False,
        valid=first,
        direction="REVERSE",
        label="reverse",
    ),
    case("Gru", f(B, T, W), *GRU, w(1, B, H), time_major=False, valid=first, label="early"),
    case(
        "Gru",
        X,
        *GRU,
        w(1, B, H),
        label="last",
        expect=gru,
        **LATE,
        xfail="libQnnCpu mixes up the batch when time comes first, and returns the initial state",
    ),
    case("Gru", X, *GRU[:6], label="no-bias", expect=gru, xfail="libQnnCpu crashes without biases", **LATE),
    case("Stft", f(2, 32, 1), const(np.hanning(8)), frame_step=4),
    case("Stft", f(1, 20, 1), frame_step=3, frame_length=6, onesided=False, label="plain"),
    case("Buffer", f(1, 4, 3), buffer_size=8, buffer_dim=1),
]
