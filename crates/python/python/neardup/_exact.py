"""Exact measures, of documents themselves and not of their signatures."""

from __future__ import annotations

from typing import Any, NamedTuple, overload

from . import _native


class Segment(NamedTuple):
    """A piece of a document, and how it occurs in the other document."""

    text: str
    standing: str
    """``'same'``, ``'chunk'`` (a common run of words), ``'moved'`` (a common run in another place) or ``'different'``."""
    chunk: int | None
    """The number of the common run, from 0 in the order of the first document."""
    words: int


class Explanation(NamedTuple):
    """How the document ``b`` differs from ``a``."""

    kind: str
    similarity: float
    words_only_in_a: list[str]
    words_only_in_b: list[str]
    a: list[Segment]
    """The first document, piece by piece without gaps."""
    b: list[Segment]


def _is_single(value: Any) -> bool:
    return value is None or isinstance(value, str)


@overload
def shingles(texts: str, k: int = 3, unit: str = "word", fold: str = "case") -> list[str]: ...
@overload
def shingles(texts: None, k: int = 3, unit: str = "word", fold: str = "case") -> None: ...
@overload
def shingles(texts: object, k: int = 3, unit: str = "word", fold: str = "case") -> Any: ...
def shingles(texts: Any, k: int = 3, unit: str = "word", fold: str = "case") -> Any:
    """Return the distinct shingles of a text, or of each text of a column, in order of first appearance."""
    if _is_single(texts):
        return _native.shingles([texts], k, unit, fold)[0]
    return _native.shingles(texts, k, unit, fold)


@overload
def shingle_hashes(texts: str, k: int = 3, unit: str = "word", fold: str = "case", seed: int = 0) -> list[int]: ...
@overload
def shingle_hashes(texts: None, k: int = 3, unit: str = "word", fold: str = "case", seed: int = 0) -> None: ...
@overload
def shingle_hashes(texts: object, k: int = 3, unit: str = "word", fold: str = "case", seed: int = 0) -> Any: ...
def shingle_hashes(texts: Any, k: int = 3, unit: str = "word", fold: str = "case", seed: int = 0) -> Any:
    """Return the distinct 64-bit hashes of the shingles of a text, or of each text of a column, sorted."""
    if _is_single(texts):
        return _native.shingle_hashes([texts], k, unit, fold, seed)[0]
    return _native.shingle_hashes(texts, k, unit, fold, seed)


@overload
def resemblance(a: str, b: str, k: int = 3, unit: str = "word", fold: str = "case") -> float: ...
@overload
def resemblance(a: object, b: object, k: int = 3, unit: str = "word", fold: str = "case") -> Any: ...
def resemblance(a: Any, b: Any, k: int = 3, unit: str = "word", fold: str = "case") -> Any:
    """Return the Jaccard similarity of two texts' shingle sets, 0 to 1; 0 if one is empty, or None for None.

    ``a`` and ``b`` may be columns of the same length; the result is a list then.
    """
    if _is_single(a) and _is_single(b):
        return _native.resemblances([a], [b], k, unit, fold)[0]
    return _native.resemblances(a, b, k, unit, fold)


@overload
def edit_distance(
    a: str, b: str, ins_cost: int = 1, del_cost: int = 1, sub_cost: int = 1, max: int | None = None
) -> int | None: ...
@overload
def edit_distance(
    a: object, b: object, ins_cost: int = 1, del_cost: int = 1, sub_cost: int = 1, max: int | None = None
) -> Any: ...
def edit_distance(
    a: Any, b: Any, ins_cost: int = 1, del_cost: int = 1, sub_cost: int = 1, max: int | None = None
) -> Any:
    """Return the least cost of the edits of characters that turn ``a`` into ``b``; None if it is above ``max``.

    ``a`` and ``b`` may be columns of the same length; the result is a list then. Ctrl-C takes effect between two pairs.
    """
    if _is_single(a) and _is_single(b):
        return _native.edit_distances([a], [b], ins_cost, del_cost, sub_cost, max)[0]
    return _native.edit_distances(a, b, ins_cost, del_cost, sub_cost, max)


@overload
def explain(a: str, b: str, min_words: int = 5) -> Explanation: ...
@overload
def explain(a: object, b: object, min_words: int = 5) -> Any: ...
def explain(a: Any, b: Any, min_words: int = 5) -> Any:
    """Return how ``b`` differs from ``a``, as ``near_dup_explain`` does in SQL, and both cut into segments.

    Common runs have at least ``min_words`` words; the server uses 5. ``a`` and ``b`` may be columns of
    the same length; then the result is a list.
    """
    if _is_single(a) and _is_single(b):
        return _explanation(_native.explanations([a], [b], min_words)[0])
    return [_explanation(found) for found in _native.explanations(a, b, min_words)]


def _explanation(found: Any) -> Explanation | None:
    if found is None:
        return None
    kind, similarity, only_in_a, only_in_b, a, b = found
    segments = [[Segment(*segment) for segment in side] for side in (a, b)]
    return Explanation(kind, similarity, only_in_a, only_in_b, *segments)
