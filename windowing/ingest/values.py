"""Values as they came -> values of the pinned type, by one rule at any depth.

What has no parts fits as scalars.py says. A struct fits where it is an object, whatever fields it
has: each of them fits by itself, those that are not pinned are left over, those that it lacks are
NULL. A list or a map fits where all its values do. What came is a text, a JSON value (VARIANT), or
has a type of Parquet.
"""

from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.ingest.json_values import (
    EXACT_TIMES,
    JSON,
    LIST,
    OBJECT,
    as_json,
    compute_once,
    get_member,
    is_beyond_doubles,
    is_given,
    is_nested,
    map_of,
    no_json,
    object_of,
    read_document,
)
from windowing.ingest.scalars import FLOATING, WRITTEN, cast_exactly, read_text
from windowing.spec.pipeline import CsvForm


def describe_unfit(path: str, kind: str) -> str:
    """Why a record is quarantined whose value at a path is not of the type."""
    return f"{path} is no {kind}"


@dataclass(frozen=True)
class Fitted:
    """A value of the type, the reason why there is none, and what of it has no place, as JSON.

    `why` is NULL for a value that fits, and for none. `rest` is NULL where nothing is left.
    """

    value: Column
    why: Column
    rest: Column

    @classmethod
    def from_column(cls, fitted: Column) -> "Fitted":
        """What `as_column` has put into one column; of a list of these, a list of each."""
        return cls(*(fitted.getField(name) for name in ("value", "why", "rest")))

    def as_column(self) -> Column:
        """All of it in one column, as `from_column` takes it."""
        parts = {"value": self.value, "why": self.why, "rest": self.rest}
        return F.struct(*(part.alias(name) for name, part in parts.items()))


@dataclass(frozen=True)
class _Came:
    """A value as it came, and its type. `no` is why it is none of the pinned type at its path."""

    value: Column
    stored: T.DataType
    path: str
    no: str

    def is_there(self) -> Column:
        """Whether there is a value at all."""
        is_json = isinstance(self.stored, T.VariantType)
        return is_given(self.value) if is_json else self.value.isNotNull()

    def open(self, form: type[T.DataType], json_form: str) -> Column:
        """Its parts: a map of fields, a list, or what Parquet has of the form; NULL for others."""
        if isinstance(self.stored, T.VariantType):
            return F.try_variant_get(self.value, "$", json_form)
        return self.value if isinstance(self.stored, form) else F.lit(None).cast(json_form)


@dataclass(frozen=True)
class Fitting:
    """How values are fitted: texts as those of CSV are, and what becomes of unfit ones."""

    csv: CsvForm
    on_unfit_value: str

    def open_column(
        self, value: Column, stored: T.DataType | None, kind: T.DataType
    ) -> tuple[Column, T.DataType | None]:
        """A whole value as it is fitted, and its type; `stored` is None for texts of CSV.

        A text is read as JSON where the type has parts, because CSV has no other way to have them.
        """
        if not is_nested(kind):
            return value, stored
        if stored is None:
            value, stored = self._clean(value, kind), T.StringType()
        if isinstance(stored, (T.StringType, T.VariantType)):
            return read_document(value, stored, kind), JSON
        return value, stored

    def fit_scalar(
        self,
        value: Column,
        stored: T.DataType | None,
        kind: T.DataType,
        no: str,
        pattern: str | None = None,
    ) -> Fitted:
        """A value of a type without parts; `no` is why it is none, `pattern` that of times."""
        if _is_json(stored, kind):
            text = self._clean(value.cast("string"), kind)
            read = self._read_json(value, text, kind, pattern)
        else:
            read = self._read(value, stored, kind, pattern)
        return self._judge(*read, stored, no)

    def fit_nested(
        self, value: Column, stored: T.DataType, kind: T.DataType, path: str, no: str
    ) -> Column:
        """A value of any type at a path, with all its parts, as `Fitted.from_column` takes it.

        Inside a lambda Spark computes an expression at each place that has it, so each part is
        computed once.
        """
        if stored.simpleString() == kind.simpleString():
            return Fitted(value, F.lit(None).cast("string"), no_json()).as_column()

        def fit(value: Column) -> Column:
            came = _Came(value, stored, path, no)
            match kind:
                case T.StructType():
                    return self._fit_struct(came, kind)
                case T.ArrayType():
                    return self._fit_list(came, kind)
                case T.MapType():
                    return self._fit_map(came, kind)
            return self._fit_part(came, kind)

        return compute_once(value, fit)

    def _fit_part(self, came: _Came, kind: T.DataType) -> Column:
        def judge(value: Column, typed: Column) -> Column:
            return compute_once(
                typed, lambda typed: self._judge(value, typed, came.stored, came.no).as_column()
            )

        if not _is_json(came.stored, kind):
            return judge(*self._read(came.value, came.stored, kind))
        return compute_once(
            self._clean(came.value.cast("string"), kind),
            lambda text: judge(*self._read_json(came.value, text, kind)),
        )

    def _judge(self, came: Column, typed: Column, stored: T.DataType | None, no: str) -> Fitted:
        """`came` is NULL where there is no value, and `typed` where it is none of the type."""
        is_wrong = came.isNotNull() & typed.isNull()
        rest = F.when(is_wrong, as_json(came, stored)) if self.rescues else no_json()
        return Fitted(typed, F.when(is_wrong, F.lit(no)), rest)

    @property
    def rescues(self) -> bool:
        """Whether a value that does not fit is kept, as what is left."""
        return self.on_unfit_value == "rescue"

    @property
    def _form_of_json(self) -> CsvForm:
        """JSON and Parquet have one form of numbers, also in a cell of CSV that has another."""
        return replace(self.csv, decimal=".", thousands=None)

    def _clean(self, text: Column, kind: T.DataType) -> Column:
        """The text, NULL where it stands for no value of the type."""
        if self.csv.nulls:
            text = F.when(~F.trim(text).isin(list(self.csv.nulls)), text)
        # Blanks are a value of text alone.
        return text if isinstance(kind, T.StringType) else F.nullif(F.trim(text), F.lit(""))

    def _read(
        self,
        value: Column,
        stored: T.DataType | None,
        kind: T.DataType,
        pattern: str | None = None,
    ) -> tuple[Column, Column]:
        """The value as it came, NULL for none, and as one of the type; NULL where it is none."""
        if stored is None or (isinstance(stored, T.StringType) and isinstance(kind, WRITTEN)):
            text = self._clean(value, kind)
            form = self.csv if stored is None else self._form_of_json
            return text, read_text(text, kind, pattern, form)
        if is_nested(stored):
            is_text = isinstance(kind, T.StringType)
            return value, F.to_json(value, EXACT_TIMES) if is_text else F.lit(None).cast(kind)
        return value, cast_exactly(value, stored, kind)

    def _read_json(
        self, value: Column, text: Column, kind: T.DataType, pattern: str | None = None
    ) -> tuple[Column, Column]:
        """The same of a JSON value, whose `text` is NULL where it stands for none."""
        typed = read_text(text, kind, pattern, self._form_of_json)
        if isinstance(kind, FLOATING):
            typed = F.when(~is_beyond_doubles(value, text), typed)
        return F.when(text.isNotNull(), value), typed

    def _fit_struct(self, came: _Came, kind: T.StructType) -> Column:
        def fit(field: T.StructField) -> Column:
            inside = f"{came.path}.{field.name}"
            no = describe_unfit(inside, field.dataType.simpleString())
            return self.fit_nested(*_get_field(came, field.name), field.dataType, inside, no)

        def join(given: Column, fitted: Column) -> Column:
            fields = [Fitted.from_column(fitted.getField(f"f{n}")) for n in range(len(kind.fields))]
            parts = dict(zip(kind.names, fields, strict=True))
            made = F.struct(*(part.value.alias(name) for name, part in parts.items()))
            is_one = given.isNotNull()
            is_wrong = came.is_there() & ~is_one
            why = F.coalesce(*(part.why for part in fields))
            rests = {
                field.name: parts[field.name].rest
                for field in kind.fields
                if self.rescues or is_nested(field.dataType)
            }
            unknown = _find_unknown(given, came.stored, kind.names)
            rest = F.map_concat(unknown, map_of(rests))
            return Fitted(
                F.when(is_one, made),
                F.when(is_wrong, F.lit(came.no)).otherwise(why),
                self._keep(is_wrong, came, object_of(rest)),
            ).as_column()

        each = F.struct(*(fit(field).alias(f"f{n}") for n, field in enumerate(kind.fields)))
        return compute_once(
            came.open(T.StructType, OBJECT),
            lambda given: compute_once(each, lambda fitted: join(given, fitted)),
        )

    def _fit_list(self, came: _Came, kind: T.ArrayType) -> Column:
        inner = came.stored.elementType if isinstance(came.stored, T.ArrayType) else JSON

        def fit(element: Column) -> Column:
            return self.fit_nested(element, inner, kind.elementType, came.path, came.no)

        def join(given: Column, fitted: Column) -> Column:
            each = Fitted.from_column(fitted)
            is_left = F.exists(each.rest, lambda rest: rest.isNotNull())
            rest = F.when(is_left, F.to_variant_object(each.rest))
            return self._whole(came, Fitted(each.value, _first_why(came, given, each), rest))

        return compute_once(
            came.open(T.ArrayType, LIST),
            lambda given: compute_once(F.transform(given, fit), lambda fitted: join(given, fitted)),
        )

    def _fit_map(self, came: _Came, kind: T.MapType) -> Column:
        inner: tuple[T.DataType, T.DataType] = (T.StringType(), JSON)
        if isinstance(came.stored, T.MapType):
            inner = (came.stored.keyType, came.stored.valueType)

        def fit(element: Column) -> Column:
            return self.fit_nested(element, inner[1], kind.valueType, came.path, came.no)

        def join(given: Column, keys: Column, fitted: Column) -> Column:
            each = Fitted.from_column(fitted)
            names = F.transform(F.map_keys(given), lambda name: name.cast("string"))
            rest = F.when(keys.isNotNull(), F.map_from_arrays(names, each.rest))
            is_unnamed = given.isNotNull() & keys.isNull()
            why = F.coalesce(_first_why(came, given, each), F.when(is_unnamed, F.lit(came.no)))
            made = F.map_from_arrays(keys, each.value)
            return self._whole(came, Fitted(made, why, object_of(rest)))

        def open_map(given: Column) -> Column:
            names = F.map_keys(given)
            read = F.transform(names, lambda name: self._read_key(name, inner[0], kind.keyType))
            values = F.transform(F.map_values(given), fit)
            return compute_once(
                compute_once(read, _keys_of),
                lambda keys: compute_once(values, lambda fitted: join(given, keys, fitted)),
            )

        return compute_once(came.open(T.MapType, OBJECT), open_map)

    def _read_key(self, name: Column, stored: T.DataType, kind: T.DataType) -> Column:
        if isinstance(stored, T.StringType):
            return read_text(name, kind, None, self._form_of_json)
        return cast_exactly(name, stored, kind)

    def _whole(self, came: _Came, fitted: Fitted) -> Column:
        """The value of a list or a map, which is none where one of its values is none."""
        if not self.rescues:
            return fitted.as_column()

        def keep(why: Column) -> Column:
            is_wrong = why.isNotNull()
            rest = self._keep(is_wrong, came, fitted.rest)
            return Fitted(F.when(~is_wrong, fitted.value), why, rest).as_column()

        return compute_once(fitted.why, keep)

    def _keep(self, is_wrong: Column, came: _Came, rest: Column) -> Column:
        """What is left, which is the value itself where it does not fit and is to be rescued."""
        if not self.rescues:
            return rest
        return F.when(is_wrong, as_json(came.value, came.stored)).otherwise(rest)


def _is_json(stored: T.DataType | None, kind: T.DataType) -> bool:
    """Whether a value is one of JSON that is to have another type."""
    return isinstance(stored, T.VariantType) and not isinstance(kind, T.VariantType)


def _keys_of(keys: Column) -> Column:
    """The keys of a map; NULL where they can't be such."""
    is_unique = F.size(F.array_distinct(keys)) == F.size(keys)
    return F.when(is_unique & ~F.exists(keys, lambda key: key.isNull()), keys)


def _first_why(came: _Came, given: Column, each: Fitted) -> Column:
    """Why a list or a map is none: it is no such thing, or one of its values is none."""
    first = F.try_element_at(F.filter(each.why, lambda why: why.isNotNull()), F.lit(1))
    return F.when(came.is_there() & given.isNull(), F.lit(came.no)).otherwise(first)


def _get_field(came: _Came, name: str) -> tuple[Column, T.DataType]:
    """The field of an object, NULL where there is none, and its type."""
    if isinstance(came.stored, T.VariantType):
        return get_member(came.value, name), JSON
    if isinstance(came.stored, T.StructType) and name in came.stored.names:
        return came.value.getField(name), came.stored[name].dataType
    return no_json(), JSON


def _find_unknown(given: Column, stored: T.DataType, known: list[str]) -> Column:
    """What an object has besides the known fields, as a map of JSON values."""
    if isinstance(stored, T.VariantType):
        return F.map_filter(given, lambda name, _: ~name.isin(known))
    fields = stored.fields if isinstance(stored, T.StructType) else []
    return map_of(
        {
            field.name: as_json(given.getField(field.name), field.dataType)
            for field in fields
            if field.name not in known
        }
    )
