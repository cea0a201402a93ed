"""The type minhash_signature for SQLAlchemy, with its functions, index and exclusion constraint.

Importing this module lets SQLAlchemy find the type when it reflects tables, and Alembic when it
compares them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Boolean, ColumnElement, Float, Function, Index, column, func, literal
from sqlalchemy.dialects.postgresql import ExcludeConstraint
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import UserDefinedType

from ._signature import Signature

__all__ = ["MinhashSignature", "minhash", "near_dup_constraint", "near_dup_index"]


class MinhashSignature(UserDefinedType[Signature]):
    """A column of type minhash_signature, whose values are of type `neardup.Signature`."""

    cache_ok = True

    def get_col_spec(self, **kwargs: Any) -> str:
        return "minhash_signature"

    def bind_processor(self, dialect: Any) -> Any:
        # The text form needs no registration with the driver.
        return lambda value: None if value is None else str(_signature(value))

    def literal_processor(self, dialect: Any) -> Any:
        return lambda value: f"'{_signature(value)}'::minhash_signature"

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return lambda value: None if value is None else _signature(value)

    class Comparator(UserDefinedType.Comparator[Signature]):
        """Comparisons of a column of signatures with a signature or an expression of one."""

        def near_dup(self, other: Any, threshold: float = 0.8) -> ColumnElement[bool]:
            """Return the condition ``near_dup(column, other, threshold)``, which an index serves."""
            return func.near_dup(self.expr, _operand(other), threshold, type_=Boolean)

        def sim(self, other: Any) -> ColumnElement[float]:
            """Return ``minhash_sim(column, other)``."""
            return func.minhash_sim(self.expr, _operand(other), type_=Float)

        def distance(self, other: Any) -> ColumnElement[float]:
            """Return ``column <=> other``, by which an index orders."""
            return self.expr.op("<=>", return_type=Float())(_operand(other))

    comparator_factory = Comparator


def minhash(
    text: Any, k: int = 3, unit: str = "word", fold: str = "case", slots: int = 128, seed: int = 0
) -> Function[Signature]:
    """Return the call of ``minhash`` on a text or an expression of one, for the server to compute.

    Parameters are those of `neardup.signatures`.
    """
    given = (k, unit, fold, slots, seed)
    return func.minhash(text, *(given if given != DEFAULTS else ()), type_=MinhashSignature)


DEFAULTS = (3, "word", "case", 128, 0)


def near_dup_index(
    name: str | None, sig: Any, threshold: float = 0.8, scope: Sequence[Any] = (), **options: Any
) -> Index:
    """Return an index USING neardup on a column of signatures, exact from ``threshold`` on.

    With ``scope`` it serves lookups among rows that are equal in these columns, such as a tenant's.
    ``sig`` and ``scope`` are columns or their names; further arguments are those of `sqlalchemy.Index`.
    """
    key = sig if isinstance(sig, str) else sig.key
    operator_class = {key: f"minhash_ops (threshold = {threshold})"}
    columns = (*scope, sig)
    return Index(name, *columns, postgresql_using="neardup", postgresql_ops=operator_class, **options)


def near_dup_constraint(
    name: str | None, sig: Any, threshold: float = 0.8, scope: Sequence[Any] = (), **options: Any
) -> ExcludeConstraint:
    """Return the constraint that no two rows are near-duplicates, or none with an equal ``scope``.

    ``sig`` and ``scope`` are columns or their names; further arguments are those of
    `sqlalchemy.dialects.postgresql.ExcludeConstraint`.
    """
    key = func.near_dup_key(column(sig) if isinstance(sig, str) else sig, threshold)
    elements = [*((part, "=") for part in scope), (key, "%")]
    return ExcludeConstraint(*elements, name=name, using="neardup", **options)


@compiles(ExcludeConstraint, "postgresql")
def _double_percents(constraint: ExcludeConstraint, compiler: Any, **options: Any) -> str:
    """Write the operator ``%`` as drivers want it that look for parameters in DDL, too."""
    sql: str = compiler.visit_exclude_constraint(constraint, **options)
    if getattr(compiler.preparer, "_double_percents", False):
        return re.sub("(?<!%)%(?!%)", "%%", sql)
    return sql


def _signature(value: Any) -> Signature:
    if isinstance(value, Signature):
        return value
    return Signature.parse(value) if isinstance(value, str) else Signature(value)


def _operand(other: Any) -> Any:
    return literal(other, MinhashSignature()) if isinstance(other, (bytes, str)) else other


ischema_names["minhash_signature"] = MinhashSignature
