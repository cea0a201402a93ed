"""Documents and signatures for Django on PostgreSQL: index, constraint, functions, lookup, field, operations.

Importing this module adds the lookup ``near_dup`` to text fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.indexes import OpClass, PostgresIndex
from django.contrib.postgres.operations import CreateExtension
from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, NotSupportedError, models
from django.db.migrations.operations.base import Operation
from django.db.models.expressions import OrderBy
from django.db.models.functions import Cast, Collate
from django.db.models.indexes import IndexExpression
from django.db.models.sql import Query

from . import _sql
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
    "NearDupGuard",
    "NearDupIndex",
    "NearDupTracker",
    "Resemblance",
]


class NearDupExtension(CreateExtension):
    """The operation of a migration that creates the extension; ``options`` are those of Django's ``CreateExtension``."""

    def __init__(self, **options: Any) -> None:
        super().__init__("pg_neardup", **options)


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
    """A call of ``minhash`` on a text, which the server computes.

    The parameters are the same as for `neardup.signatures`.
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
    """``a <=> b``, the order of which an index supports."""

    function = ""
    arg_joiner = " <=> "
    arity = 2
    output_field = models.FloatField()


class NearDup(_OfTwo):
    """The condition ``near_dup(a, b, threshold)``, which an index supports.

    For documents, ``k``, ``unit`` and ``fold`` must be those of the index.
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


# No parentheses around an operator class; django.contrib.postgres does the same if it is installed.
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

    def check_supported(self, schema_editor: Any) -> None:
        _ensure_extension(schema_editor)

    def deconstruct(self) -> tuple[str, Any, dict[str, Any]]:
        path, args, kwargs = super().deconstruct()
        del kwargs["opclasses"]
        return path, args, {**kwargs, **self.own}


class _Label(models.Func):
    template = "label => %(expressions)s"


class _NearDupKey(models.Func):
    function = "near_dup_key"
    output_field = models.Field()

    def get_expression_for_validation(self) -> Any:
        """Return the key of a document that is given, without a label; the key of a column stays that of the index."""
        document, *parameters = self.get_source_expressions()
        if isinstance(document, models.F):
            return self
        if isinstance(document, models.Value):
            # Without its type, the server would take it for a text or for bits.
            document = Cast(document, document.output_field)
        return _NearDupKey(document, *(part for part in parameters if not isinstance(part, _Label)))


class NearDupConstraint(ExclusionConstraint):
    """The constraint that no two rows are near-duplicates, or none with an equal ``scope``.

    ``field`` contains documents or signatures; ``label``, such as ``"id"``, is the field that a violation
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
        self.own: dict[str, Any] = {
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
        # Doubled, because Django puts parameters into the surrounding statement.
        expressions = [*((OpClass(part, "scope_ops"), "=") for part in scope), (_NearDupKey(field, *arguments), "%%")]
        super().__init__(expressions=expressions, **options)
        self.index_type = "neardup"

    def validate(self, model: Any, instance: Any, exclude: Any = None, using: str = DEFAULT_DB_ALIAS) -> None:
        # Forms exclude a primary key, with which a violation is only labeled.
        labels = {self.own["label"]} - {self.own["field"], *self.own["scope"]}
        super().validate(model, instance, set(exclude or ()) - labels, using)

    def constraint_sql(self, model: Any, schema_editor: Any) -> Any:
        _ensure_extension(schema_editor)
        return super().constraint_sql(model, schema_editor)

    def deconstruct(self) -> tuple[str, Any, dict[str, Any]]:
        path, args, kwargs = super().deconstruct()
        del kwargs["expressions"], kwargs["index_type"]
        return path, args, {**kwargs, **self.own}


class _Made(Operation):
    """An object that a function of the extension creates on the table of a model, and that is dropped completely."""

    reduces_to_sql = True
    statements: Any

    def __init__(self, model_name: str, field: str, threshold: float, **options: Any) -> None:
        self.model_name, self.field, self.threshold = model_name, field, threshold
        self.options = options

    def state_forwards(self, app_label: str, state: Any) -> None:
        pass

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        self._run(0, app_label, schema_editor, to_state)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        self._run(1, app_label, schema_editor, from_state)

    def _run(self, direction: int, app_label: str, schema_editor: Any, state: Any) -> None:
        model = state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        _ensure_extension(schema_editor)

        def column(field: str) -> str:
            return str(model._meta.get_field(field).column)

        options = _sql.chosen(self.options)
        for name in "within", "key":
            if name in options:
                options[name] = column(options[name])
        if "scope" in options:
            options["scope"] = [column(field) for field in options["scope"]]
        if "exceptions" in options:
            exceptions = state.apps.get_model(app_label, options["exceptions"])._meta.db_table
            options["exceptions"] = _sql.identifier(None, exceptions)
        if "condition" in options:
            options["condition"] = _condition(model, options["condition"], schema_editor)
        place = (None, model._meta.db_table, column(self.field), self.threshold)
        for statement in self.statements(*place, options)[direction]:
            schema_editor.execute(statement, params=None)

    @property
    def migration_name_fragment(self) -> str:
        return f"{self.model_name.lower()}_{self.field}_{type(self).__name__.lower()}"


class NearDupGuard(_Made):
    """The operation of a migration that guards a model's field; its reverse drops the guard with its notes.

    Fields in ``scope``, ``within`` and ``key`` have their names in the model, ``condition`` is a `Q`, and ``exceptions`` a model
    with the fields ``a`` and ``b``. Everything else is as in ``near_dup_protect``.
    """

    statements = staticmethod(_sql.guard)

    def __init__(
        self,
        model_name: str,
        field: str,
        threshold: float = 0.8,
        *,
        scope: Sequence[str] = (),
        condition: models.Q | None = None,
        exceptions: str | None = None,
        within: str | None = None,
        by: Any = None,
        action: str | None = None,
        notes: str | None = None,
        most: int | None = None,
        key: str | None = None,
        trigger_name: str | None = None,
        k: int | None = None,
        unit: str | None = None,
        fold: str | None = None,
    ) -> None:
        super().__init__(
            model_name,
            field,
            threshold,
            scope=tuple(scope),
            condition=condition,
            exceptions=exceptions,
            within=within,
            by=by,
            action=action,
            notes=notes,
            most=most,
            key=key,
            trigger_name=trigger_name,
            k=k,
            unit=unit,
            fold=fold,
        )

    def describe(self) -> str:
        return f"Guard {self.model_name}.{self.field} against near-duplicates"


class NearDupTracker(_Made):
    """The operation of a migration that maintains clusters of a model's rows; its reverse drops them.

    The arguments are the same as for `NearDupGuard`, or as in ``near_dup_track``.
    """

    statements = staticmethod(_sql.tracker)

    def __init__(
        self,
        model_name: str,
        field: str,
        threshold: float = 0.8,
        *,
        keep: str | None = None,
        clusters: str | None = None,
        scope: Sequence[str] = (),
        key: str | None = None,
        condition: models.Q | None = None,
        exceptions: str | None = None,
        k: int | None = None,
        unit: str | None = None,
        fold: str | None = None,
    ) -> None:
        super().__init__(
            model_name,
            field,
            threshold,
            keep=keep,
            clusters=clusters,
            scope=tuple(scope),
            key=key,
            condition=condition,
            exceptions=exceptions,
            k=k,
            unit=unit,
            fold=fold,
        )

    def describe(self) -> str:
        return f"Keep clusters of {self.model_name}.{self.field}"


def _condition(model: Any, condition: models.Q, schema_editor: Any) -> str:
    """Return a condition as SQL, in the form of a partial index."""
    where = Query(model=model, alias_cols=False).build_where(condition)
    compiler = Query(model=model, alias_cols=False).get_compiler(connection=schema_editor.connection)
    sql, params = where.as_sql(compiler, schema_editor.connection)
    return str(sql % tuple(schema_editor.quote_value(param) for param in params))


def _ensure_extension(schema_editor: Any) -> None:
    if schema_editor.collect_sql:
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_extension WHERE extname = 'pg_neardup'")
        if cursor.fetchone() == (0,):
            raise NotSupportedError(
                f"Database {schema_editor.connection.alias!r} lacks the extension pg_neardup: put the operation"
                " neardup.django.NearDupExtension() before those that need it, into this migration or an earlier one."
            )


def _values(parameters: tuple[Any, ...]) -> list[models.Value]:
    return [models.Value(parameter) for parameter in parameters]


def _operand(value: Any) -> Any:
    if isinstance(value, bytes):
        return models.Value(Signature(value), output_field=MinhashSignatureField())
    return value
