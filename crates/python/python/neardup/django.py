"""Documents and signatures for Django on PostgreSQL: index, constraint, functions, lookup, field.

Importing this module gives text fields the lookup ``near_dup``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.indexes import OpClass, PostgresIndex
from django.contrib.postgres.operations import CreateExtension
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.expressions import OrderBy
from django.db.models.functions import Cast, Collate
from django.db.models.indexes import IndexExpression

from ._signature import Signature
from ._sql import SHINGLES, SIGNING, operator_class, unless

__all__ = [
    "Minhash",
    "MinhashDistance",
    "MinhashSignatureField",
    "MinhashSim",
    "NearDup",
    "NearDupConstraint",
    "NearDupExtension",
    "NearDupIndex",
    "Resemblance",
]


class NearDupExtension(CreateExtension):
    """The operation of a migration that creates the extension."""

    def __init__(self) -> None:
        self.name = "pg_neardup"


class MinhashSignatureField(models.Field):
    """A column of type minhash_signature, whose values are of type `neardup.Signature`."""

    description = "MinHash signature"
    empty_strings_allowed = False

    def db_type(self, connection: Any) -> str:
        return "minhash_signature"

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Signature | None:
        return self.to_python(value)

    def to_python(self, value: Any) -> Signature | None:
        if value is None or isinstance(value, Signature):
            return value
        try:
            return Signature.parse(value) if isinstance(value, str) else Signature(value)
        except ValueError as error:
            raise ValidationError(str(error)) from error

    def get_prep_value(self, value: Any) -> str | None:
        value = super().get_prep_value(value)
        return None if value is None else str(self.to_python(value))

    def value_to_string(self, obj: Any) -> str:
        return self.get_prep_value(self.value_from_object(obj)) or ""


@models.CharField.register_lookup
@models.TextField.register_lookup
@MinhashSignatureField.register_lookup
class NearDupLookup(models.Lookup):
    """``body__near_dup=text`` or ``body__near_dup=(text, threshold)``; 0.8 by default.

    A field of signatures is compared with a signature.
    """

    lookup_name = "near_dup"

    def __init__(self, lhs: Any, rhs: Any) -> None:
        self.threshold = 0.8
        if isinstance(rhs, (tuple, list)):
            rhs, self.threshold = rhs
        super().__init__(lhs, rhs)

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        lhs, lhs_params = self.process_lhs(compiler, connection)
        rhs, rhs_params = self.process_rhs(compiler, connection)
        return f"near_dup({lhs}, {rhs}, %s)", [*lhs_params, *rhs_params, self.threshold]


class Minhash(models.Func):
    """The call of ``minhash`` on a text, for the server to compute.

    Parameters are those of `neardup.signatures`.
    """

    function = "minhash"

    def __init__(
        self,
        expression: Any,
        k: int = 3,
        unit: str = "word",
        fold: str = "case",
        slots: int = 128,
        seed: int = 0,
        **extra: Any,
    ) -> None:
        parameters = _values(unless(SIGNING, k, unit, fold, slots, seed))
        extra.setdefault("output_field", MinhashSignatureField())
        super().__init__(expression, *parameters, **extra)


class _OfTwo(models.Func):
    """A function of two documents or signatures, each the name of a field, an expression or a `Signature`."""

    def __init__(self, a: Any, b: Any, *others: Any, **extra: Any) -> None:
        super().__init__(_operand(a), _operand(b), *others, **extra)


class Resemblance(_OfTwo):
    """``resemblance(a, b)``, the Jaccard similarity of two documents."""

    function = "resemblance"
    output_field = models.FloatField()

    def __init__(
        self, a: Any, b: Any, k: int = 3, unit: str = "word", fold: str = "case", **extra: Any
    ) -> None:
        super().__init__(a, b, *_values(unless(SHINGLES, k, unit, fold)), **extra)


class MinhashSim(_OfTwo):
    """``minhash_sim(a, b)``."""

    function = "minhash_sim"
    arity = 2
    output_field = models.FloatField()


class MinhashDistance(_OfTwo):
    """``a <=> b``, by which an index orders."""

    function = ""
    arg_joiner = " <=> "
    arity = 2
    output_field = models.FloatField()


class NearDup(_OfTwo):
    """The condition ``near_dup(a, b, threshold)``, which an index serves.

    On documents ``k``, ``unit`` and ``fold`` are those of the index.
    """

    function = "near_dup"
    output_field = models.BooleanField()

    def __init__(
        self,
        a: Any,
        b: Any,
        threshold: Any = 0.8,
        k: int = 3,
        unit: str = "word",
        fold: str = "case",
        **extra: Any,
    ) -> None:
        super().__init__(a, b, threshold, *_values(unless(SHINGLES, k, unit, fold)), **extra)


# As django.contrib.postgres does if it is installed: no parentheses around an operator class.
IndexExpression.register_wrappers(OrderBy, OpClass, Collate)


class NearDupIndex(PostgresIndex):
    """An index USING neardup on a field of documents, for lookups at every threshold.

    Fields before it, as in ``fields=["tenant", "body"]``, are the scope: the index serves lookups among
    rows that are equal in them. For a field of signatures ``opclass`` is ``"minhash_ops"``, and ``threshold``
    the lowest similarity.
    """

    suffix = "neardup"

    def __init__(
        self,
        *,
        threshold: float = 0.8,
        opclass: str = "text_ops",
        k: int = 3,
        unit: str = "word",
        fold: str = "case",
        fields: Any,
        name: str,
        **options: Any,
    ) -> None:
        self.own = {"threshold": threshold, "opclass": opclass, "k": k, "unit": unit, "fold": fold}
        *scope, _ = fields
        opclasses = [*("scope_ops" for _ in scope), operator_class(opclass, threshold, k, unit, fold)]
        super().__init__(fields=fields, name=name, opclasses=opclasses, **options)

    def deconstruct(self) -> tuple[str, Any, dict[str, Any]]:
        path, args, kwargs = super().deconstruct()
        del kwargs["opclasses"]
        return path, args, {**kwargs, **self.own}


class _Label(models.Func):
    template = "label => %(expressions)s"


class _NearDupKey(models.Func):
    function = "near_dup_key"
    output_field = models.Field()


class NearDupConstraint(ExclusionConstraint):
    """The constraint that no two rows are near-duplicates, or none with an equal ``scope``.

    ``field`` is one of documents or of signatures; ``label``, such as ``"id"``, is the field that a violation
    prints.
    """

    def __init__(
        self,
        *,
        field: str,
        threshold: float = 0.8,
        scope: Sequence[str] = (),
        label: str | None = None,
        k: int = 3,
        unit: str = "word",
        fold: str = "case",
        **options: Any,
    ) -> None:
        self.own = {
            "field": field,
            "threshold": threshold,
            "scope": tuple(scope),
            "label": label,
            "k": k,
            "unit": unit,
            "fold": fold,
        }
        arguments = [threshold, *_values(unless(SHINGLES, k, unit, fold))]
        if label is not None:
            arguments.append(_Label(Cast(label, models.TextField())))
        # Doubled, since Django puts parameters into what it is part of.
        expressions = [*((OpClass(part, "scope_ops"), "=") for part in scope), (_NearDupKey(field, *arguments), "%%")]
        super().__init__(expressions=expressions, **options)
        self.index_type = "neardup"

    def deconstruct(self) -> tuple[str, Any, dict[str, Any]]:
        path, args, kwargs = super().deconstruct()
        del kwargs["expressions"], kwargs["index_type"]
        return path, args, {**kwargs, **self.own}


def _values(parameters: tuple[Any, ...]) -> list[models.Value]:
    return [models.Value(parameter) for parameter in parameters]


def _operand(value: Any) -> Any:
    if isinstance(value, bytes):
        return models.Value(Signature(value), output_field=MinhashSignatureField())
    return value
