"""Parts of SQL that the adapters share."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

SHINGLES = (3, "word", "case")
SIGNING = (*SHINGLES, 128, 0)


def unless(defaults: tuple[Any, ...], *given: Any) -> tuple[Any, ...]:
    """Return the arguments ``given``, or none if they are the defaults."""
    return () if given == defaults else given


def guard(
    schema: str | None, table: str, column: str, threshold: float, options: dict[str, Any]
) -> tuple[list[str], list[str]]:
    """Return the statements that create a guard with arguments of near_dup_protect, and those that drop it with its notes."""
    named = {"trigger_name": _derived(table, "guard"), **chosen(options)}
    if named.get("action") == "note":
        named.setdefault("notes", _derived(table, "near_dups"))
    place = identifier(schema, table)
    drop = [f"SELECT near_dup_unprotect({literal(place)}, {literal(named['trigger_name'])})"]
    if "notes" in named:
        drop.append(_drop_beside(place, named["notes"]))
    return [_call("near_dup_protect", place, column, threshold, named)], drop


def tracker(
    schema: str | None, table: str, column: str, threshold: float, options: dict[str, Any]
) -> tuple[list[str], list[str]]:
    """Return the statements that create a tracker with arguments of near_dup_track, and those that drop it completely."""
    named = {"clusters": _derived(table, "clusters"), **chosen(options)}
    place = identifier(schema, table)
    return [_call("near_dup_track", place, column, threshold, named)], [_drop_beside(place, named["clusters"])]


def chosen(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options whose values are not None or (), which stand for the server's defaults."""
    return {name: value for name, value in options.items() if value not in (None, ())}


def _derived(table: str, suffix: str) -> str:
    """Return the server's name for an object of a table: at most 63 bytes, of which ``suffix`` keeps its own."""
    return table.encode()[: 62 - len(suffix)].decode(errors="ignore") + f"_{suffix}"


def _drop_beside(place: str, name: str) -> str:
    """Return the statement that drops the table ``name`` in the schema of the table ``place``.

    The name alone could find another table in the search_path. There is no percent sign, which drivers would take for
    a parameter.
    """
    found = f"FROM pg_class WHERE oid = {literal(place)}::regclass"
    drop = f"SELECT 'DROP TABLE ' || relnamespace::regnamespace || {literal('.' + identifier(None, name))} {found}"
    return f"DO {literal(f'BEGIN EXECUTE ({drop}); END')}"


def _call(function: str, table: str, column: str, threshold: float, named: dict[str, Any]) -> str:
    arguments = [literal(table), literal(column), literal(threshold)]
    arguments += [f"{name} => {literal(value)}" for name, value in named.items()]
    return f"SELECT {function}({', '.join(arguments)})"


def identifier(schema: str | None, name: str) -> str:
    """Return the name of a table in quotes, with its schema if there is one."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in (schema, name) if part is not None)


def literal(value: Any) -> str:
    """Return a string, a number, a duration or a list of names as SQL."""
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, timedelta):
        return f"'{value.days} days {value.seconds + value.microseconds / 1e6:f} seconds'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"ARRAY[{', '.join(map(literal, value))}]::name[]"


def operator_class(name: str, threshold: float, k: int, unit: str, fold: str) -> str:
    """Return the operator class of an index with its options."""
    if name == "minhash_ops":
        return f"{name} (threshold = {threshold})"
    return f"{name} (k = {k}, unit = '{unit}', fold = '{fold}')" if (k, unit, fold) != SHINGLES else name
