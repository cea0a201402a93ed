"""Pairs to label."""

from __future__ import annotations

from typing import Any

from psycopg import Connection, sql

from ._query import UserQuery

HEADER = ("a_key", "b_key", "similarity", "weight", "a", "b", "same")
"""Columns of a sample; the last is filled in by the person who labels."""


def sample(
    connection: Connection[Any],
    query: str,
    n: int = 100,
    k: int = 3,
    unit: str = "word",
    fold: str = "case",
    sample_rows: int = 20000,
    seed: int = 0,
) -> list[tuple[Any, ...]]:
    """Return pairs of documents to label, spread over all similarities, using ``near_dup_sample_pairs``.

    The query yields a key and a document. A row has the columns ``a_key``, ``b_key``, ``similarity``, ``weight``,
    ``a`` and ``b``.
    """
    asked = UserQuery(connection, query)
    rows = asked.run(
        "SELECT a_key, b_key, similarity, weight, a, b FROM near_dup_sample_pairs({}, {}, {}, {}, {}, {}, {}, {})",
        sql.SQL("NULL::" + asked.type_of(0)),
        asked.as_text("{}", sql.SQL(asked.text)),
        *map(sql.Literal, (n, k, unit, fold, sample_rows, seed)),
    )
    return list(rows.fetchall())
