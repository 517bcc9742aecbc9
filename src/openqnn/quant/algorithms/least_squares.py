"""Weights that suit the data as it arrives in fixed point.

A layer that tells small differences between large numbers lets the noise of its data through and little else.
Least squares give weights whose products with the noisy data are nearest to the outputs in floating point;
they amplify less. What suits the samples at hand need not suit those to come, so every output takes as much
of the change as samples that had no part in it agree on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]

# What is added to the square of an input, as a share of it, is inputs by rows. More rows than these are not
# new: neighbours resemble each other.
NEW_ROWS = 4096
TINY = 1e-6
ROWS_PER_INPUT = 4  # fewer tell nothing: magika lost 1.5 dB with three
FOLDS = 4  # parts of the samples: each is judged by what the others gave
LEAST_GAIN = 0.05  # of the noise of an output: less is not worth a change
ERRORS = 3  # standard errors that a mean must be above to count


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of one sample as they arrive, [group, row, inner], and what their noise does, [group, row, outer].

    Both are without the means over all samples, which are the bias's to restore.
    """

    data: Floats
    noise: Floats


@dataclass(frozen=True, slots=True)
class Sums:
    """Over rows: of products of inputs, [group, inner, inner], and of inputs with the noise."""

    squares: Floats
    products: Floats
    rows: int

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.squares + other.squares, self.products + other.products, self.rows + other.rows)

    def without(self, other: Sums) -> Sums:
        return Sums(self.squares - other.squares, self.products - other.products, self.rows - other.rows)

    def change(self) -> Floats:
        """What to add to weights so that the least of the noise comes out.

        Inputs are damped by their own squares: the quiet ones beside a loud one are those that drown.
        """
        inner = self.squares.shape[1]
        own = np.diagonal(self.squares, axis1=1, axis2=2)
        damping = inner / min(self.rows, NEW_ROWS) * own + TINY * np.maximum(
            own.mean(axis=1, keepdims=True), TINY
        )
        return np.linalg.solve(self.squares + damping[:, None, :] * np.eye(inner), self.products)


class Seen:
    """All samples, and the sums over each fold of them: a single one where they are too few to judge by."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = samples
        rows, inner = sum(s.data.shape[1] for s in samples), samples[0].data.shape[2]
        count = FOLDS if len(samples) >= FOLDS and rows >= ROWS_PER_INPUT * inner else 1
        self.folds = [range(k, len(samples), count) for k in range(count)]
        self.parts = [_sums([samples[i] for i in fold]) for fold in self.folds]
        self.whole = reduce(add, self.parts)


def fitted(weights: Floats, seen: Seen) -> Floats:
    """The weights, [group, inner, outer], changed so that less of the noise comes out."""
    if len(seen.folds) == 1:
        return weights
    won, cost, noise = (np.empty((len(seen.samples), len(weights), weights.shape[2])) for _ in range(3))
    for fold, part in zip(seen.folds, seen.parts, strict=True):
        change = seen.whole.without(part).change().astype(np.float32)
        for i in fold:
            sample = seen.samples[i]
            less = sample.data @ change
            won[i] = (sample.noise * less).sum(axis=1)
            cost[i] = (less**2).sum(axis=1)
            noise[i] = (sample.noise**2).sum(axis=1)
    share = _share(won, cost.mean(axis=0), noise.mean(axis=0))
    return weights + share[:, None, :] * seen.whole.change() if share.any() else weights


def agreed(seen: Floats) -> Floats:
    """The mean over samples, the first axis, less where it may be chance: as James and Stein shrink.

    Samples of one kind are alike, and those to come are not: their spread is taken for several times what it
    is. Of the mean that is within three standard errors nothing remains.
    """
    mean = seen.mean(axis=0)
    if len(seen) < 2:
        return mean
    chance = ERRORS**2 * seen.var(axis=0, ddof=1) / len(seen)
    return mean * np.maximum(1 - chance / np.maximum(mean**2, 1e-300), 0)


def _share(won: Floats, cost: Floats, noise: Floats) -> Floats:
    """How much of the change each output takes: of `noise` a share s leaves `noise - 2 s won + s^2 cost`."""
    sure = agreed(won)
    share = np.clip(sure / np.maximum(cost, 1e-300), 0, 1)
    return np.where(2 * share * sure - share**2 * cost > LEAST_GAIN * noise, share, 0.0)


def _sums(samples: Sequence[Sample]) -> Sums:
    data = np.concatenate([s.data for s in samples], axis=1)
    noise = np.concatenate([s.noise for s in samples], axis=1)
    turned = data.transpose(0, 2, 1)
    return Sums((turned @ data).astype(np.float64), (turned @ noise).astype(np.float64), data.shape[1])
