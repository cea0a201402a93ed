"""From labeled pairs to parameters: which shingles best separate same pairs from different pairs, and at which threshold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy
from sklearn.metrics import precision_recall_curve

from .. import resemblance
from ._charts import BAR, INK, SECOND, draw

RESAMPLES = 1000

AT_ONCE = 1 << 22
"""Number of drawn weights that are held at the same time."""


@dataclass(frozen=True)
class Method:
    """A method of comparing, and how well it works: every figure with its 95 % interval."""

    k: int
    unit: str
    fold: str
    threshold: float
    precision: float
    precision_low: float
    precision_high: float
    recall: float
    recall_low: float
    recall_high: float
    f1: float
    f1_low: float
    f1_high: float
    sql: str
    """The statement that creates the index."""


@dataclass(frozen=True)
class Curve:
    """Precision and recall over the threshold, for each similarity of a pair, ascending."""

    thresholds: Any
    precision: Any
    precision_low: Any
    precision_high: Any
    recall: Any
    recall_low: Any
    recall_high: Any
    f1: Any
    f1_low: Any
    f1_high: Any


@dataclass(frozen=True)
class Calibration:
    """Methods, the best first, and their curves in the same order."""

    methods: list[Method]
    curves: list[Curve]
    pairs: int
    same: int
    left_out: int
    """Number of pairs whose weight no labeled pair has."""

    def __str__(self) -> str:
        lines = [
            f"{self.pairs} labeled pairs, {self.same} of them the same; 95 % intervals in brackets",
            *([f"left out, because no pair of their weight is labeled: {self.left_out}"] if self.left_out else []),
            "unit  k  fold   threshold  precision             recall                F1",
        ]
        for m in self.methods:
            figures = (
                f"{value:.3f} [{low:.3f}, {high:.3f}]"
                for value, low, high in (
                    (m.precision, m.precision_low, m.precision_high),
                    (m.recall, m.recall_low, m.recall_high),
                    (m.f1, m.f1_low, m.f1_high),
                )
            )
            lines.append(f"{m.unit:4} {m.k:2}  {m.fold:5}  {m.threshold:<9g}  " + " ".join(f"{figure:21}" for figure in figures).rstrip())
        return "\n".join(lines + [self.methods[0].sql + ";"])

    def svg(self) -> str:
        """Return a picture of the best method: precision and recall over the threshold with 95 % bands."""
        method, curve = self.methods[0], self.curves[0]
        title = f"{method.unit} shingles of {method.k}, fold {method.fold}"
        description = (
            f"at threshold {method.threshold:g} precision {method.precision:.3f}"
            f" ({method.precision_low:.3f} to {method.precision_high:.3f}), recall {method.recall:.3f}"
            f" ({method.recall_low:.3f} to {method.recall_high:.3f})"
        )

        def paint(axes: Any) -> None:
            for name, color, style in (("precision", BAR, "-"), ("recall", SECOND, "--")):
                values, low, high = (getattr(curve, name + part) for part in ("", "_low", "_high"))
                axes.plot(curve.thresholds, values, style, color=color, label=name)
                axes.fill_between(curve.thresholds, low, high, color=color, alpha=0.25, linewidth=0)
            axes.axvline(method.threshold, color=INK, linewidth=0.8, linestyle=":")
            axes.set(xlabel="threshold", xlim=(0, 1), ylim=(0, 1.02))
            axes.set_title(title, fontsize=9)
            axes.legend(loc="lower left", frameon=False)

        return draw("calibration", title, description, paint, 2.6)


def calibrate(
    pairs: Iterable[Sequence[Any]],
    k: Sequence[int] = (1, 2, 3, 4, 5, 8, 12),
    unit: Sequence[str] = ("word", "char"),
    fold: Sequence[str] = ("none", "case", "marks"),
    *,
    precision: float | None = None,
    recall: float | None = None,
    relation: str = "docs",
    column: str = "body",
    seed: int = 0,
) -> Calibration:
    """Return how well each combination of ``k``, ``unit`` and ``fold`` tells labeled pairs apart.

    A pair is (a, b, same), or (a, b, same, weight, similarity) from a sample: the weight is the number of pairs for which
    it stands, and pairs of one weight are a stratum. The similarity is not used. A pair without a label or a document
    (None, NaN) is represented by the labeled pairs of its stratum. The threshold is the one with the highest F1; with
    ``precision``, the one of the highest recall among those that reach it, and with ``recall`` the one of the highest
    precision. Intervals are by the Bayesian bootstrap, and hold for a threshold that was not chosen with the same pairs.
    ``relation`` and ``column`` are used in the statements.

    Raises ValueError without pairs of both labels, for a label other than True and False (1 and 0), and if no threshold
    reaches the wanted value.
    """
    labeled = _Labeled(pairs)
    if precision is not None and recall is not None:
        raise ValueError("one of precision and recall can be wanted, not both")
    found: list[tuple[float, float, int, Method, Curve]] = []
    for length, cut, folding in product(k, unit, fold):
        scores = numpy.array(resemblance(labeled.a, labeled.b, length, cut, folding))
        curve = _curve(scores, labeled, seed)
        place = _choose(curve, precision, recall)
        if place is None:
            continue
        lowest = curve.thresholds[place]
        below = curve.thresholds[place - 1] if place else 0.0
        threshold = roundest(below, lowest)
        figures = {
            name: float(getattr(curve, name)[place])
            for of in ("precision", "recall", "f1")
            for name in (of, f"{of}_low", f"{of}_high")
        }
        statement = _statement(relation, column, length, cut, folding)
        method = Method(length, cut, folding, threshold, **figures, sql=statement)
        rank = method.precision if recall is not None else method.recall if precision is not None else method.f1
        found.append((-round(rank, 12), below - lowest, len(found), method, curve))
    if not found:
        wanted = f"precision of {precision}" if recall is None else f"recall of {recall}"
        raise ValueError(f"no threshold reaches a {wanted} on these pairs")
    found.sort(key=lambda one: one[:3])
    return Calibration([one[3] for one in found], [one[4] for one in found], len(labeled.a), int(labeled.same.sum()), labeled.left_out)


class _Labeled:
    """The pairs as columns."""

    def __init__(self, pairs: Iterable[Sequence[Any]]) -> None:
        rows = [tuple(pair) for pair in pairs]
        if any(not 3 <= len(row) <= 5 for row in rows):
            raise ValueError("a pair is (a, b, same), or (a, b, same, weight, similarity)")
        weights = numpy.array([row[3] if len(row) > 3 else 1.0 for row in rows], dtype=float)
        if not (numpy.isfinite(weights) & (weights > 0)).all():
            raise ValueError("a weight is a number above 0")
        is_labeled = numpy.array([not any(map(_is_missing, row[:3])) for row in rows], dtype=bool)
        _, strata, drawn = numpy.unique(weights, return_inverse=True, return_counts=True)
        labeled = numpy.bincount(strata[is_labeled], minlength=len(drawn))
        self.left_out = int(drawn[labeled == 0].sum())
        represented = drawn / numpy.maximum(labeled, 1)
        # Only the ratios of weights matter; a single stratum keeps its own.
        self.weights = (weights * (represented / represented[-1:])[strata])[is_labeled]
        self.strata = numpy.unique(strata[is_labeled], return_inverse=True)[1]
        rows = [row for row, has_label in zip(rows, is_labeled, strict=True) if has_label]
        wrong = [row[2] for row in rows if row[2] not in (False, True)]
        if wrong:
            raise ValueError(f"same is True or False, not {wrong[0]!r}")
        self.a = [row[0] for row in rows]
        self.b = [row[1] for row in rows]
        self.same = numpy.array([bool(row[2]) for row in rows], dtype=bool)
        count = int(self.same.sum())
        if not 0 < count < len(rows):
            raise ValueError(
                f"{len(rows)} labeled pairs, {count} of them the same: label pairs that are the same and pairs that are not"
            )


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or pandas.NA."""
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and math.isnan(value))


def _curve(scores: Any, labeled: _Labeled, seed: int) -> Curve:
    """Return the curve over all similarities above 0.

    The interval comes from the Bayesian bootstrap (Rubin, Annals of Statistics 1981): within each stratum, the pairs
    get weights from a Dirichlet distribution, whose parameters make the variance of a mean equal to its unbiased
    estimate, from four pairs on. Half a pair is added to each of the four outcomes, like Jeffreys' prior,
    because ten pairs without an error do not prove that there are none. It has the least weight of its outcome, or of
    all pairs if there is none.
    """
    order = numpy.argsort(scores, kind="stable")
    scores, same, weights = scores[order], labeled.same[order], labeled.weights[order]
    strata = labeled.strata[order]
    exact, missed, thresholds = precision_recall_curve(same, scores, sample_weight=weights, drop_intermediate=False)
    # Nothing is similar at 0. A threshold of 1 finds no pair unless one is that similar.
    kept, top = thresholds > 0, [1.0] if scores[-1] < 1 else []
    precision, recall, thresholds = (
        numpy.append(values[kept], end) for values, end in ((exact[:-1], [0.0] * len(top)), (missed[:-1], [0.0] * len(top)), (thresholds, top))
    )
    starts = numpy.searchsorted(scores, thresholds)
    least = [_least(mask, weights, starts, is_found) for mask, is_found in ((same, True), (~same, True), (same, False))]
    random = numpy.random.Generator(numpy.random.PCG64(seed % 2**64))
    sizes = numpy.bincount(strata)
    shapes = numpy.maximum(1 - 2 / sizes, 0.5)[strata]
    parts: list[list[Any]] = [[], [], []]
    at_once = max(1, min(RESAMPLES, AT_ONCE // len(scores)))
    for first in range(0, RESAMPLES, at_once):
        count = min(at_once, RESAMPLES - first)
        drawn = random.standard_gamma(shapes, (count, len(scores)))
        for stratum, size in enumerate(sizes):
            drawn[:, strata == stratum] *= size / drawn[:, strata == stratum].sum(axis=1, keepdims=True)
        drawn *= weights
        half = random.standard_gamma(0.5, (count, 3, 1))
        right, wrong = (_found(drawn * mask, starts) for mask in (same, ~same))
        missing = (drawn * same).sum(axis=1, keepdims=True) - right
        right, wrong, missing = (
            weight + half[:, place] * low for place, (weight, low) in enumerate(zip((right, wrong, missing), least, strict=True))
        )
        parts[0].append(right / (right + wrong))
        parts[1].append(right / (right + missing))
        parts[2].append(2 * right / (2 * right + wrong + missing))
    limits = [numpy.percentile(numpy.concatenate(part), (2.5, 97.5), axis=0) for part in parts]
    total = precision + recall
    f1 = numpy.divide(2 * precision * recall, total, out=numpy.zeros_like(total), where=total > 0)
    around = []
    for values, (low, high) in zip((precision, recall, f1), limits, strict=True):
        around += [values, numpy.minimum(low, values), numpy.maximum(high, values)]
    return Curve(thresholds, *around)


def _least(mask: Any, weights: Any, starts: Any, is_found: bool) -> Any:
    """Return the least weight among the pairs of a label that each threshold finds, or does not."""
    of_label = numpy.where(mask, weights, numpy.inf)
    if is_found:
        least = numpy.minimum.accumulate(numpy.append(of_label, numpy.inf)[::-1])[::-1][starts]
    else:
        least = numpy.minimum.accumulate(numpy.insert(of_label, 0, numpy.inf))[starts]
    return numpy.where(numpy.isfinite(least), least, weights.min())


def _found(drawn: Any, starts: Any) -> Any:
    """Return the weight from each start to the end."""
    sums = numpy.cumsum(drawn[:, ::-1], axis=1)[:, ::-1]
    return numpy.pad(sums, ((0, 0), (0, 1)))[:, starts]


def _choose(curve: Curve, precision: float | None, recall: float | None) -> int | None:
    """Return the place of the wanted threshold; of several equally good ones, the highest."""
    wanted = curve.f1
    if precision is not None:
        wanted = numpy.where(curve.precision >= precision, curve.recall, -1)
    elif recall is not None:
        wanted = numpy.where(curve.recall >= recall, curve.precision, -1)
    best = wanted.max()
    return None if best < 0 else int(numpy.flatnonzero(wanted >= best - 1e-12)[-1])


def roundest(below: float, lowest: float) -> float:
    """Return the number with the fewest decimals that is above ``below`` and at most ``lowest``, near the middle."""
    middle = below + (lowest - below) / 2
    for decimals in range(1, 16):
        scale = 10.0**decimals
        first, last = math.floor(below * scale), math.floor(lowest * scale)
        number = max(min(math.floor(middle * scale + 0.5), last), first + 1) / scale
        if below < number <= lowest:
            return number
    return float(lowest)


def _statement(relation: str, column: str, k: int, unit: str, fold: str) -> str:
    return f"CREATE INDEX ON {relation} USING neardup ({column} text_ops (k = {k}, unit = {unit}, fold = {fold}))"
