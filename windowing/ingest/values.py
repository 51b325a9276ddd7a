"""Values as they came -> values of the pinned type, by one rule at any depth.

What has no parts fits as scalars.py says. A struct fits where it is an object, whatever fields it
has: each of them fits by itself, those that are not pinned are left over, those that it lacks are
NULL. A list or a map fits where all its values do. What came is a text, a JSON value (VARIANT), or
has a type of Parquet.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.ingest.scalars import FLOATING, cast_exactly, read_text
from windowing.spec.pipeline import CsvForm

JSON = T.VariantType()
_NESTED = (T.StructType, T.ArrayType, T.MapType)
_NOT_BLANK = {T.BooleanType, T.LongType, T.IntegerType, T.DoubleType, T.DecimalType}
"""Types of which a blank text is no value."""
OBJECT = "map<string,variant>"
"""An object of JSON. As texts its numbers would be those of doubles."""
_LIST = "array<variant>"
_EXACT_TIMES = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]xxx"}


def describe_unfit(path: str, kind: str) -> str:
    """Why a record is quarantined whose value at a path is not of the type."""
    return f"{path} is no {kind}"


def is_nested(kind: T.DataType | None) -> bool:
    """Whether values of the type have parts."""
    return isinstance(kind, _NESTED)


@dataclass(frozen=True)
class Fitted:
    """A value of the type, the reason why there is none, and what of it has no place, as JSON.

    `why` is NULL for a value that fits, and for none. `rest` is NULL where nothing is left, and
    None where nothing can be.
    """

    value: Column
    why: Column
    rest: Column | None = None


@dataclass(frozen=True)
class _Parts:
    """A value that may have parts. `given` is NULL where it has none of the form that it should.

    `came` is whether there is a value at all.
    """

    came: Column
    given: Column
    stored: T.DataType


@dataclass(frozen=True)
class Fitting:
    """How values are fitted: texts as those of CSV are, and what becomes of unfit ones."""

    csv: CsvForm
    on_unfit_value: str

    def open_column(
        self, value: Column, stored: T.DataType | None, kind: T.DataType
    ) -> tuple[Column, T.DataType | None]:
        """A whole value as `fit_column` takes it, and its type; `stored` is None for texts of CSV.

        A text is read as JSON where the type has parts, because CSV has no other way to have them.
        """
        if not is_nested(kind):
            return value, stored
        if stored is None:
            value, stored = self._clean(value, kind), T.StringType()
        if isinstance(stored, (T.StringType, T.VariantType)):
            return _read_document(value, stored, kind), JSON
        return value, stored

    def fit_column(
        self,
        value: Column,
        stored: T.DataType | None,
        kind: T.DataType,
        path: str,
        *,
        written: str,
        pattern: str | None,
    ) -> Fitted:
        """A whole value; `written` is what reasons call its type, `pattern` that of times."""
        no = describe_unfit(path, written)
        if stored is None or not is_nested(kind):
            return self._fit_scalar(value, stored, kind, no, pattern)
        return self._fit(value, stored, kind, path, no)

    def _fit_scalar(
        self,
        value: Column,
        stored: T.DataType | None,
        kind: T.DataType,
        no: str,
        pattern: str | None = None,
    ) -> Fitted:
        came, typed = self._read(value, stored, kind, pattern)
        is_wrong = came.isNotNull() & typed.isNull()
        rest = F.when(is_wrong, as_json(came, stored)) if self._rescues else None
        return Fitted(typed, F.when(is_wrong, F.lit(no)), rest)

    @property
    def _rescues(self) -> bool:
        return self.on_unfit_value == "rescue"

    def _clean(self, text: Column, kind: T.DataType) -> Column:
        """The text, NULL where it stands for no value of the type."""
        if self.csv.nulls:
            text = F.when(~F.trim(text).isin(list(self.csv.nulls)), text)
        # Blanks are a value of text alone.
        return text if isinstance(kind, T.StringType) else F.nullif(F.trim(text), F.lit(""))

    def _read(
        self, value: Column, stored: T.DataType | None, kind: T.DataType, pattern: str | None
    ) -> tuple[Column, Column]:
        """The value as it came, NULL for none, and as one of the type; NULL where it is none."""
        if stored is None:
            text = self._clean(value, kind)
            return text, read_text(text, kind, pattern, self.csv)
        if isinstance(stored, T.VariantType) and not isinstance(kind, T.VariantType):
            text = value.cast("string")
            cleaned = self._clean(text, kind)
            # Blanks are none of the other types, and inside a struct Spark would clean them often.
            typed = read_text(
                F.trim(text) if type(kind) in _NOT_BLANK else cleaned, kind, pattern, self.csv
            )
            if isinstance(kind, FLOATING):
                typed = F.when(~_is_beyond_doubles(value, text), typed)
            return F.when(cleaned.isNotNull(), value), typed
        if is_nested(stored):
            is_text = isinstance(kind, T.StringType)
            return value, F.to_json(value) if is_text else F.lit(None).cast(kind)
        return value, cast_exactly(value, stored, kind)

    def _fit(
        self, value: Column, stored: T.DataType, kind: T.DataType, path: str, no: str
    ) -> Fitted:
        if stored.simpleString() == kind.simpleString():
            return Fitted(value, F.lit(None).cast("string"))
        match kind:
            case T.StructType():
                return self._fit_struct(value, stored, kind, path, no)
            case T.ArrayType():
                return self._fit_list(value, stored, kind, path, no)
            case T.MapType():
                return self._fit_map(value, stored, kind, path, no)
        return self._fit_scalar(value, stored, kind, no)

    def _fit_struct(
        self, value: Column, stored: T.DataType, kind: T.StructType, path: str, no: str
    ) -> Fitted:
        parts = _open(value, stored, T.StructType, OBJECT)
        fields = {}
        for field in kind.fields:
            inside = f"{path}.{field.name}"
            part, its_kind = _get_field(value, stored, field.name)
            no_part = describe_unfit(inside, field.dataType.simpleString())
            fields[field.name] = self._fit(part, its_kind, field.dataType, inside, no_part)
        is_one = parts.given.isNotNull()
        made = F.struct(*(part.value.alias(name) for name, part in fields.items()))
        whys = [part.why for part in fields.values()]
        is_wrong = parts.came & ~is_one
        rest = F.map_concat(
            _find_unknown(parts.given, stored, kind.names),
            map_of({n: part.rest for n, part in fields.items() if part.rest is not None}),
        )
        return Fitted(
            F.when(is_one, made),
            F.when(is_wrong, F.lit(no)).otherwise(F.coalesce(*whys)),
            self._keep(is_wrong, value, stored, object_of(rest)),
        )

    def _fit_list(
        self, value: Column, stored: T.DataType, kind: T.ArrayType, path: str, no: str
    ) -> Fitted:
        parts = _open(value, stored, T.ArrayType, _LIST)
        inner = stored.elementType if isinstance(stored, T.ArrayType) else JSON

        def fit(element: Column) -> Fitted:
            return self._fit(element, inner, kind.elementType, path, no)

        def each(part: Callable[[Fitted], Column]) -> Column:
            return F.transform(parts.given, lambda element: part(fit(element)))

        why = self._join_whys(parts, no, each(lambda fitted: fitted.why))
        rest = None
        if fit(F.lit(None).cast(inner)).rest is not None:
            rests = each(lambda fitted: _given(fitted.rest))
            rest = F.when(
                F.exists(rests, lambda rest: rest.isNotNull()), F.to_variant_object(rests)
            )
        made = each(lambda fitted: fitted.value)
        return self._whole(value, stored, Fitted(made, why, rest))

    def _fit_map(
        self, value: Column, stored: T.DataType, kind: T.MapType, path: str, no: str
    ) -> Fitted:
        parts = _open(value, stored, T.MapType, OBJECT)
        inner = (
            (stored.keyType, stored.valueType)
            if isinstance(stored, T.MapType)
            else (T.StringType(), JSON)
        )

        def fit(element: Column) -> Fitted:
            return self._fit(element, inner[1], kind.valueType, path, no)

        def each(part: Callable[[Fitted], Column]) -> Column:
            return F.transform(F.map_values(parts.given), lambda element: part(fit(element)))

        names = F.map_keys(parts.given)
        keys = F.transform(names, lambda name: self._read_key(name, inner[0], kind.keyType))
        is_unique = F.size(F.array_distinct(keys)) == F.size(keys)
        is_named = is_unique & ~F.exists(keys, lambda key: key.isNull())
        why = F.coalesce(
            self._join_whys(parts, no, each(lambda fitted: fitted.why)),
            F.when(~is_named, F.lit(no)),
        )
        rest = None
        if fit(F.lit(None).cast(inner[1])).rest is not None:
            texts = F.transform(names, lambda name: name.cast("string"))
            rest = object_of(F.map_from_arrays(texts, each(lambda fitted: _given(fitted.rest))))
        made = F.when(is_named, F.map_from_arrays(keys, each(lambda fitted: fitted.value)))
        return self._whole(value, stored, Fitted(made, why, rest))

    def _read_key(self, name: Column, stored: T.DataType, kind: T.DataType) -> Column:
        if isinstance(stored, T.StringType):
            return read_text(name, kind, None, self.csv)
        return cast_exactly(name, stored, kind)

    def _join_whys(self, parts: _Parts, no: str, whys: Column) -> Column:
        first = F.try_element_at(F.filter(whys, lambda why: why.isNotNull()), F.lit(1))
        return F.when(parts.came & parts.given.isNull(), F.lit(no)).otherwise(first)

    def _whole(self, value: Column, stored: T.DataType, fitted: Fitted) -> Fitted:
        """The value of a list or a map, which is none where one of its values is none."""
        if not self._rescues:
            return fitted
        is_wrong = fitted.why.isNotNull()
        rest = self._keep(is_wrong, value, stored, fitted.rest)
        return Fitted(F.when(~is_wrong, fitted.value), fitted.why, rest)

    def _keep(
        self, is_wrong: Column, value: Column, stored: T.DataType, rest: Column | None
    ) -> Column | None:
        """What is left, which is the value itself where it does not fit and is to be rescued."""
        if not self._rescues:
            return rest
        return F.when(is_wrong, as_json(value, stored)).otherwise(_given(rest))


def _read_document(value: Column, stored: T.DataType, kind: T.DataType) -> Column:
    """The JSON that a text is where it has the form of the type; all others stay as they are."""
    form = _LIST if isinstance(kind, T.ArrayType) else OBJECT
    text = value
    if isinstance(stored, T.VariantType):
        text = F.when(F.try_variant_get(value, "$", form).isNull(), value.cast("string"))
    found = F.try_parse_json(text)
    has_form = F.try_variant_get(found, "$", form).isNotNull()
    return F.coalesce(F.when(has_form, found), as_json(value, stored))


def _is_beyond_doubles(value: Column, text: Column) -> Column:
    """Whether a JSON value is a number that its parser made infinite."""
    return text.isin("Infinity", "-Infinity") & (F.schema_of_variant(value) == "DOUBLE")


def as_json(value: Column, stored: T.DataType | None) -> Column:
    """A value as one of JSON: numbers and booleans as such, times as text."""
    if isinstance(stored, T.VariantType):
        return value
    if is_nested(stored):
        return F.try_parse_json(F.to_json(value, _EXACT_TIMES))
    is_told = isinstance(stored, (T.NumericType, T.BooleanType))
    return (value if is_told else value.cast("string")).cast("variant")


def object_of(values: Column) -> Column:
    """A map as one object without what is NULL; NULL where nothing is left."""
    left = given_in(values)
    return F.when(F.size(left) > 0, F.to_variant_object(left))


def given_in(values: Column) -> Column:
    """A map of JSON values without those that are NULL or null."""
    return F.map_filter(values, lambda _, value: is_given(value))


def is_given(value: Column) -> Column:
    """Whether a JSON value is there, and not null."""
    return value.isNotNull() & ~F.is_variant_null(value)


def _given(rest: Column | None) -> Column:
    return F.lit(None).cast("variant") if rest is None else rest


def _open(value: Column, stored: T.DataType, form: type[T.DataType], text: str) -> _Parts:
    """The parts of a value: a map of fields, a list, or what Parquet has of the form."""
    if isinstance(stored, T.VariantType):
        return _Parts(is_given(value), F.try_variant_get(value, "$", text), stored)
    given = value if isinstance(stored, form) else F.lit(None).cast(text)
    return _Parts(value.isNotNull(), given, stored)


def _get_field(value: Column, stored: T.DataType, name: str) -> tuple[Column, T.DataType]:
    if isinstance(stored, T.VariantType):
        return _get_member(value, name), JSON
    if isinstance(stored, T.StructType) and name in stored.names:
        return value.getField(name), stored[name].dataType
    return F.lit(None).cast("variant"), JSON


def _get_member(value: Column, name: str) -> Column:
    """The member of an object; NULL where there is none. A path costs less than a map of all."""
    for quote in "'\"":
        if name and not {quote, "?"} & {*name}:
            return F.try_variant_get(value, f"$[{quote}{name}{quote}]", "variant")
    return F.try_element_at(F.try_variant_get(value, "$", OBJECT), F.lit(name))


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


def map_of(values: Mapping[str, Column]) -> Column:
    """A map of these JSON values by their names."""
    pairs = [each for name, value in values.items() for each in (F.lit(name), value)]
    return F.create_map(*pairs).cast(OBJECT)


def find_unknown(value: Column, kind: T.DataType, path: Column) -> list[Column]:
    """Lists of the dotted paths of what a JSON value has inside, and its type has not.

    There is none where the type has no struct inside. A list may be NULL.
    """
    match kind:
        case T.StructType():
            given = F.try_variant_get(value, "$", OBJECT)
            names = F.filter(F.map_keys(given), lambda name: ~name.isin(kind.names))
            found = [F.transform(names, lambda name: F.concat(path, F.lit("."), name))]
            for field in kind.fields:
                inside = F.concat(path, F.lit(f".{field.name}"))
                found += find_unknown(_get_member(value, field.name), field.dataType, inside)
            return found
        case T.ArrayType():
            return _find_in_each(F.try_variant_get(value, "$", _LIST), kind.elementType, path)
        case T.MapType():
            values = F.map_values(F.try_variant_get(value, "$", OBJECT))
            return _find_in_each(values, kind.valueType, path)
    return []


def _find_in_each(values: Column, kind: T.DataType, path: Column) -> list[Column]:
    if not find_unknown(F.lit(None).cast("variant"), kind, path):
        return []
    each = F.transform(values, lambda value: join_lists(find_unknown(value, kind, path)))
    return [F.flatten(each)]


def join_lists(lists: Sequence[Column]) -> Column:
    """The texts of all lists; one that is NULL has none."""
    none = F.array().cast("array<string>")
    return F.concat(none, *(F.coalesce(each, none) for each in lists))
