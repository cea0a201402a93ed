"""Errors of the server."""

from __future__ import annotations

REJECTED = "23P01"


def existing_key(error: BaseException) -> str | None:
    """Return the key of the existing row, as text, from the error with which a guard rejects its near-duplicate.

    The error comes from psycopg or asyncpg, or wraps such an error in SQLAlchemy or Django. None for errors that name no
    such row: errors of constraints, errors about a row that the role may not see, and all others.
    """
    found: BaseException | None = error
    seen: list[BaseException] = []
    while found is not None and found not in seen:
        seen.append(found)
        if getattr(found, "sqlstate", None) == REJECTED:
            key = getattr(getattr(found, "diag", found), "column_name", None)
            if key is not None:
                return str(key)
        found = getattr(found, "orig", None) or found.__cause__
    return None
