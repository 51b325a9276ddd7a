"""JSON values (VARIANT): made of others, opened, and what their types do not have."""

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

JSON = T.VariantType()
OBJECT = "map<string,variant>"
"""An object of JSON. As texts its numbers would be those of doubles."""
LIST = "array<variant>"
_ANY_OBJECT = "struct<>"
"""The form of each object, which costs less to try than a map of its values."""
_NESTED = (T.StructType, T.ArrayType, T.MapType)
_LOCAL_TIME = "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]"
EXACT_TIMES = {"timestampFormat": f"{_LOCAL_TIME}xxx", "timestampNTZFormat": _LOCAL_TIME}
"""How Spark writes times of values with parts; by itself it leaves out microseconds."""


def is_nested(kind: T.DataType | None) -> bool:
    """Whether values of the type have parts."""
    return isinstance(kind, _NESTED)


def compute_once(value: Column, use: Callable[[Column], Column]) -> Column:
    """What `use` makes of a value, which is computed once, however often `use` has it.

    Inside a lambda Spark computes an expression at each place that has it.
    """
    return F.get(F.transform(F.array(value), use), 0)


def no_json() -> Column:
    """NULL as a JSON value."""
    return F.lit(None).cast("variant")


def as_json(value: Column, stored: T.DataType | None) -> Column:
    """A value as one of JSON: numbers and booleans as such, times as text."""
    if isinstance(stored, T.VariantType):
        return value
    if is_nested(stored):
        return F.try_parse_json(F.to_json(value, EXACT_TIMES))
    is_told = isinstance(stored, (T.NumericType, T.BooleanType))
    return (value if is_told else value.cast("string")).cast("variant")


def is_given(value: Column) -> Column:
    """Whether a JSON value is there, and not null."""
    return value.isNotNull() & ~F.is_variant_null(value)


def given_in(values: Column) -> Column:
    """A map of JSON values without those that are NULL or null."""
    return F.map_filter(values, lambda _, value: is_given(value))


def map_of(values: Mapping[str, Column]) -> Column:
    """A map of these JSON values by their names."""
    pairs = [each for name, value in values.items() for each in (F.lit(name), value)]
    return F.create_map(*pairs).cast(OBJECT)


def object_of(values: Column) -> Column:
    """A map as one object without what is NULL; NULL where nothing is left."""
    return compute_once(
        given_in(values), lambda left: F.when(F.size(left) > 0, F.to_variant_object(left))
    )


def get_member(value: Column, name: str) -> Column:
    """The member of an object; NULL where there is none. A path costs less than a map of all."""
    for quote in "'\"":
        if name and not {quote, "?"} & {*name}:
            return F.try_variant_get(value, f"$[{quote}{name}{quote}]", "variant")
    return F.try_element_at(F.try_variant_get(value, "$", OBJECT), F.lit(name))


def read_document(value: Column, stored: T.DataType, kind: T.DataType) -> Column:
    """The JSON that a text is where it has the form of the type; all others stay as they are."""
    form = LIST if isinstance(kind, T.ArrayType) else _ANY_OBJECT
    text = value
    if isinstance(stored, T.VariantType):
        text = F.when(F.try_variant_get(value, "$", form).isNull(), value.cast("string"))

    def check(found: Column) -> Column:
        return F.when(F.try_variant_get(found, "$", form).isNotNull(), found)

    return F.coalesce(compute_once(F.try_parse_json(text), check), as_json(value, stored))


def is_beyond_doubles(value: Column, text: Column) -> Column:
    """Whether a JSON value is a number that its parser made infinite."""
    return text.isin("Infinity", "-Infinity") & (F.schema_of_variant(value) == "DOUBLE")


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
                found += find_unknown(get_member(value, field.name), field.dataType, inside)
            return found
        case T.ArrayType():
            return _find_in_each(F.try_variant_get(value, "$", LIST), kind.elementType, path)
        case T.MapType():
            values = F.map_values(F.try_variant_get(value, "$", OBJECT))
            return _find_in_each(values, kind.valueType, path)
    return []


def _find_in_each(values: Column, kind: T.DataType, path: Column) -> list[Column]:
    if not find_unknown(no_json(), kind, path):
        return []
    each = F.transform(values, lambda value: join_lists(find_unknown(value, kind, path)))
    return [F.flatten(each)]


def join_lists(lists: Sequence[Column]) -> Column:
    """The texts of all lists; one that is NULL has none."""
    none = F.array().cast("array<string>")
    return F.concat(none, *(F.coalesce(each, none) for each in lists))
