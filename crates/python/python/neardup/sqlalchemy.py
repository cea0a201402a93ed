"""Conditions, indexes and exclusion constraints on documents for SQLAlchemy, and the type minhash_signature.

Importing this module lets SQLAlchemy find the type when it reflects tables, and Alembic when it
compares them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Boolean, ColumnElement, Float, Function, Index, column, func, literal, literal_column
from sqlalchemy.dialects.postgresql import ExcludeConstraint, dialect
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import UserDefinedType

from ._signature import Signature
from ._sql import SHINGLES, SIGNING, operator_class, unless

__all__ = ["MinhashSignature", "minhash", "near_dup", "near_dup_constraint", "near_dup_index", "resemblance"]


def near_dup(
    a: Any, b: Any, threshold: float = 0.8, k: int = 3, unit: str = "word", fold: str = "case"
) -> Function[bool]:
    """Return the condition ``near_dup(a, b, threshold)`` on two documents, which an index supports.

    ``k``, ``unit`` and ``fold`` must be those of the index.
    """
    return func.near_dup(a, b, threshold, *unless(SHINGLES, k, unit, fold), type_=Boolean)


def resemblance(a: Any, b: Any, k: int = 3, unit: str = "word", fold: str = "case") -> Function[float]:
    """Return ``resemblance(a, b)``, the Jaccard similarity of two documents."""
    return func.resemblance(a, b, *unless(SHINGLES, k, unit, fold), type_=Float)


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
            """Return the condition ``near_dup(column, other, threshold)``, which an index supports."""
            return func.near_dup(self.expr, _operand(other), threshold, type_=Boolean)

        def sim(self, other: Any) -> ColumnElement[float]:
            """Return ``minhash_sim(column, other)``."""
            return func.minhash_sim(self.expr, _operand(other), type_=Float)

        def distance(self, other: Any) -> ColumnElement[float]:
            """Return ``column <=> other``, the order of which an index supports."""
            return self.expr.op("<=>", return_type=Float())(_operand(other))

    comparator_factory = Comparator


def minhash(
    text: Any, k: int = 3, unit: str = "word", fold: str = "case", slots: int = 128, seed: int = 0
) -> Function[Signature]:
    """Return a call of ``minhash`` on a text or a text expression, which the server computes.

    The parameters are the same as for `neardup.signatures`.
    """
    return func.minhash(text, *unless(SIGNING, k, unit, fold, slots, seed), type_=MinhashSignature)


def near_dup_index(
    name: str | None,
    document: Any,
    threshold: float = 0.8,
    scope: Sequence[Any] = (),
    opclass: str = "text_ops",
    k: int = 3,
    unit: str = "word",
    fold: str = "case",
    **options: Any,
) -> Index:
    """Return an index USING neardup on a column of documents, for lookups at every threshold.

    With ``scope`` it serves lookups among rows that are equal in these columns, such as a tenant's. For a
    column of signatures ``opclass`` is ``"minhash_ops"``, and ``threshold`` the lowest similarity. ``document`` and ``scope`` are columns or their
    names; further arguments are those of `sqlalchemy.Index`.
    """
    opclasses = {**{_key(part): "scope_ops" for part in scope}, _key(document): operator_class(opclass, threshold, k, unit, fold)}
    columns = (*scope, document)
    return Index(name, *columns, postgresql_using="neardup", postgresql_ops=opclasses, **options)


def near_dup_constraint(
    name: str | None,
    document: Any,
    threshold: float = 0.8,
    scope: Sequence[Any] = (),
    label: str | None = None,
    k: int = 3,
    unit: str = "word",
    fold: str = "case",
    **options: Any,
) -> ExcludeConstraint:
    """Return the constraint that no two rows are near-duplicates, or none with an equal ``scope``.

    ``document``, which may also be a column of signatures, and ``scope`` are columns or their names;
    ``label``, such as ``"id::text"``, is the SQL of what a violation prints; further arguments are those of
    `sqlalchemy.dialects.postgresql.ExcludeConstraint`.
    """
    arguments = [threshold, *unless(SHINGLES, k, unit, fold)]
    if label is not None:
        arguments.append(literal_column(f"label => {label}"))
    key = func.near_dup_key(column(document) if isinstance(document, str) else document, *arguments)
    # Alembic writes the expression of an element, but not its operator class.
    quote = dialect().identifier_preparer.quote  # type: ignore[no-untyped-call]
    names = [part if isinstance(part, str) else part.name for part in scope]
    elements = [*((literal_column(f"{quote(name)} scope_ops"), "=") for name in names), (key, "%")]
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


def _key(part: Any) -> str:
    return part if isinstance(part, str) else part.key


def _operand(other: Any) -> Any:
    return literal(other, MinhashSignature()) if isinstance(other, (bytes, str)) else other


ischema_names["minhash_signature"] = MinhashSignature
