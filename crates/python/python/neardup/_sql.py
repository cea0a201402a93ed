"""Parts of SQL that the adapters share."""

from __future__ import annotations

from typing import Any

SHINGLES = (3, "word", "case")
SIGNING = (*SHINGLES, 128, 0)


def unless(defaults: tuple[Any, ...], *given: Any) -> tuple[Any, ...]:
    """Return the arguments ``given``, or none where they are the defaults."""
    return () if given == defaults else given


def operator_class(name: str, threshold: float, k: int, unit: str, fold: str) -> str:
    """Return the operator class of an index with its options."""
    if name == "minhash_ops":
        return f"{name} (threshold = {threshold})"
    return f"{name} (k = {k}, unit = '{unit}', fold = '{fold}')" if (k, unit, fold) != SHINGLES else name
