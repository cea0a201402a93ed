"""Exact measures of texts, and MinHash and SimHash signatures, bit for bit the same as those of the extension pg_neardup.

Options have the names, the order and the defaults that they have in SQL. ``texts`` is a
column: a list or any other iterable of texts, a NumPy array, a pandas Series, or any object that has the
Arrow PyCapsule interface, such as arrays of pyarrow and Series of polars. None, NaN and NULL give
None. The work is distributed over all processors, without the interpreter's lock.

Invalid arguments raise ValueError with the server's message and its hint. An item of a column that
cannot be used is named by its number, counted from 0.

The modules ``neardup.psycopg``, ``neardup.asyncpg``, ``neardup.sqlalchemy`` and ``neardup.django``
add the type ``minhash_signature`` to these libraries; ``neardup.alembic`` has guards and trackers for migrations.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple, overload

from . import _native
from ._errors import existing_key
from ._exact import Explanation, Segment, edit_distance, explain, resemblance, shingle_hashes, shingles
from ._html import diff_html
from ._signature import Signature, made

__version__ = _native.VERSION

__all__ = [
    "Explanation",
    "Interval",
    "Segment",
    "Signature",
    "bands",
    "cardinality",
    "containment",
    "diff_html",
    "distance",
    "distances",
    "edit_distance",
    "existing_key",
    "explain",
    "interval",
    "near_dup",
    "pack",
    "resemblance",
    "set_signature",
    "shingle_hashes",
    "shingles",
    "signature",
    "signatures",
    "sim",
    "simhash",
    "simhashes",
    "union",
    "winnow",
]


class Interval(NamedTuple):
    """An estimated similarity and the limits of the true similarity, each 0 to 1."""

    low: float
    estimate: float
    high: float


@overload
def signatures(
    texts: Iterable[str], k: int = 3, unit: str = "word", fold: str = "case", slots: int = 128, seed: int = 0
) -> list[Signature]: ...
@overload
def signatures(
    texts: object, k: int = 3, unit: str = "word", fold: str = "case", slots: int = 128, seed: int = 0
) -> list[Signature | None]: ...
def signatures(
    texts: Any, k: int = 3, unit: str = "word", fold: str = "case", slots: int = 128, seed: int = 0
) -> Any:
    """Return the MinHash signature of each text, as ``minhash`` does in SQL.

    Shingles are of ``k`` (1 to 256) units, ``'word'``, ``'char'`` or ``'stop'``; ``fold`` is
    ``'none'``, ``'case'`` or ``'marks'``; a signature has ``slots`` (1 to 1024) of 32 bits. Linear
    time, about 2 microseconds for a text of 1.6 kB.
    """
    return _native.signatures(texts, k, unit, fold, slots, seed, made)


@overload
def signature(
    text: str, k: int = 3, unit: str = "word", fold: str = "case", slots: int = 128, seed: int = 0
) -> Signature: ...
@overload
def signature(
    text: str | None, k: int = 3, unit: str = "word", fold: str = "case", slots: int = 128, seed: int = 0
) -> Signature | None: ...
def signature(
    text: str | None, k: int = 3, unit: str = "word", fold: str = "case", slots: int = 128, seed: int = 0
) -> Signature | None:
    """Return the MinHash signature of one text, or None for None; see `signatures`."""
    return signatures([text], k, unit, fold, slots, seed)[0]


def set_signature(elements: Iterable[str | int | None], slots: int = 128, seed: int = 0) -> Signature:
    """Return the MinHash signature of a set of texts or integers, as ``minhash`` does for an array in SQL.

    None among them is ignored; a single text raises TypeError. Comparable with other sets of the same slots and seed, but not with documents.
    """
    return made(_native.set_signature(elements, slots, seed))


def sim(a: bytes, b: bytes) -> float:
    """Return the estimated Jaccard similarity of two documents, 0 to 1; 0 if one is empty.

    Raises ValueError for signatures made with different parameters.
    """
    return _native.sim(a, b)


def distance(a: bytes, b: bytes) -> float:
    """Return 1 - `sim`."""
    return 1.0 - _native.sim(a, b)


def distances(signature: bytes, others: Any) -> list[float | None]:
    """Return the `distance` of one signature from each signature of a column.

    Raises ValueError if one of them was made with different parameters.
    """
    return _native.distances(signature, others)


def near_dup(a: bytes, b: bytes, threshold: float = 0.8) -> bool:
    """Return whether ``sim(a, b) >= threshold``, greater than 0 and at most 1.

    False for signatures made with different parameters, and for signatures of empty documents.
    """
    return _native.near_dup(a, b, threshold)


def interval(a: bytes, b: bytes, confidence: float = 0.95) -> Interval:
    """Return `sim` and its Clopper-Pearson limits, as ``minhash_interval`` does in SQL.

    Raises ValueError for signatures made with different parameters, and for a confidence outside
    0 < confidence < 1.
    """
    return Interval(*_native.interval(a, b, confidence))


@overload
def containment(a: str, b: str, k: int = 3, unit: str = "word", fold: str = "case") -> float: ...
@overload
def containment(a: bytes, b: bytes) -> float | None: ...
@overload
def containment(a: object, b: object, k: int = 3, unit: str = "word", fold: str = "case") -> Any: ...
def containment(a: Any, b: Any, k: int = 3, unit: str = "word", fold: str = "case") -> Any:
    """Return the share of the first text's shingles that are in the second; 0 if one is empty, or None for None.

    ``a`` and ``b`` may be columns of the same length; then the result is a list. For two signatures, return the
    estimated share of the set of ``a`` that is in the set of ``b``, or None if no slot is informative. Raises
    ValueError for packed signatures and for those made with different parameters.
    """
    if isinstance(a, bytes) and isinstance(b, bytes):
        return _native.containment(a, b)
    if (a is None or isinstance(a, str)) and (b is None or isinstance(b, str)):
        return _native.containments([a], [b], k, unit, fold)[0]
    return _native.containments(a, b, k, unit, fold)


def cardinality(signature: bytes) -> float:
    """Return the estimated number of distinct shingles or elements, off by 6 to 9 % at 128 slots.

    Raises ValueError for packed and for imported signatures.
    """
    return _native.cardinality(signature)


@overload
def bands(signature: bytes, threshold: float, /) -> list[int]: ...
@overload
def bands(signature: bytes, bands: int, rows: int, /) -> list[int]: ...
def bands(signature: bytes, threshold: Any, rows: int | None = None, /) -> list[int]:
    """Return the band keys of a signature, as ``minhash_bands`` does in SQL; an empty document has none.

    ``bands(signature, threshold)``: of b keys, signatures of k slots whose `sim` reaches the threshold
    share at least b - (1 - threshold) k. ``bands(signature, bands, rows)`` returns the keys of the classic scheme.
    """
    if rows is None:
        return _native.bands(signature, threshold)
    return _native.classic_bands(signature, threshold, rows)


def union(a: bytes, *others: bytes) -> Signature:
    """Return the signature of the union of the sets, bit for bit.

    Raises ValueError for packed signatures, and for signatures made with different parameters.
    """
    _native.check(a)
    return made(reduce(_native.union, (a, *others), a))


def pack(signature: bytes, bits: int) -> Signature:
    """Return the signature with only the low ``bits`` (1, 2, 4, 8 or 16) of each slot."""
    return made(_native.pack(signature, bits))


def simhashes(
    texts: Any,
    k: int = 1,
    unit: str = "word",
    fold: str = "case",
    bits: int = 64,
    weighting: str = "log",
    seed: int = 0,
) -> list[str | None]:
    """Return the SimHash of each text as the digits of a bit string, or None for None and for an empty text.

    ``bits`` is a multiple of 64 up to 4096; ``weighting`` is ``'tf'``, ``'log'`` or ``'set'``; the
    other arguments are the same as for `signatures`.
    """
    return _native.simhashes(texts, k, unit, fold, bits, weighting, seed)


def simhash(
    text: str | None,
    k: int = 1,
    unit: str = "word",
    fold: str = "case",
    bits: int = 64,
    weighting: str = "log",
    seed: int = 0,
) -> str | None:
    """Return the SimHash of one text, or None for None; see `simhashes`."""
    return _native.simhashes([text], k, unit, fold, bits, weighting, seed)[0]


def winnow(
    texts: Any, k: int, window: int, unit: str = "word", fold: str = "case", seed: int = 0
) -> list[list[int] | None]:
    """Return the sorted fingerprints of the passages of each text, as ``winnow`` does in SQL.

    Texts with a common run of at least ``window`` (1 to 65536) + k - 1 units share one.
    """
    return _native.winnow(texts, k, window, unit, fold, seed)
