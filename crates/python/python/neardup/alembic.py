"""Guards and trackers in migrations of Alembic, and a filter for --autogenerate."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from . import _sql

__all__ = ["Guard", "Tracker", "include_object"]


class _Made:
    _statements = staticmethod(_sql.guard)

    def __init__(
        self, table: str, column: str, threshold: float = 0.8, *, schema: str | None = None, **options: Any
    ) -> None:
        self._create, self._drop = self._statements(schema, table, column, threshold, options)

    def create(self, op: Any) -> None:
        """Create it with the operations of a migration."""
        self._execute(op, self._create)

    def drop(self, op: Any) -> None:
        """Drop it with everything that it created."""
        self._execute(op, self._drop)

    def _execute(self, op: Any, statements: list[str]) -> None:
        for statement in statements:
            # A colon must not begin a parameter.
            op.execute(text(statement.replace(":", "\\:")))


class Guard(_Made):
    """A guard, with the arguments of ``near_dup_protect``; ``exceptions`` is the name of a table.

    Its trigger is called ``{table}_guard``, and its notes are in ``{table}_near_dups``, unless ``trigger_name`` or
    ``notes`` say otherwise.
    """


class Tracker(_Made):
    """Maintained clusters, with the arguments of ``near_dup_track``.

    They are in ``{table}_clusters``, unless ``clusters`` says otherwise.
    """

    _statements = staticmethod(_sql.tracker)


_TABLES = (
    {"key", "near_key", "similarity", "noted_at"},
    {"key", "cluster", "canonical", "similarity"},
    {"number", "at", "event", "from_cluster", "to_cluster", "key", "similarity", "replaced"},
)


def include_object(object: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:
    """Return False for the tables that guards and trackers create, which no model declares."""
    if type_ != "table" or not reflected or compare_to is not None:
        return True
    columns = set(object.columns.keys())
    suffix = (name or "").rpartition("_")[2]
    return not (
        columns in _TABLES
        or (suffix == "queue" and columns == {"key"})
        or (suffix == "canonical" and columns >= {"key", "kept"})
        or (suffix == "state" and columns >= {"singleton", "next_cluster"})
    )
