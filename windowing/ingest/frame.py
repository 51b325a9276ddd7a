"""Records of files, as texts: split into the values of their columns.

lines -> [source_file, __record, __why, values]; no record is left out here but empty lines.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windowing.columns import FILE, RECORD, WHY
from windowing.ingest.header import BOM
from windowing.ingest.json_values import EXACT_TIMES, JSON, OBJECT, as_json, map_of
from windowing.ingest.quotes import NOT_CLOSED, open_quote_pattern
from windowing.rows import is_true
from windowing.spec.pipeline import CsvForm

_FIELDS = "__fields"
_BROKEN = "__broken"
_WINDOWS = "windows-1252"
_CODES = [code for code in range(0x80, 0xA0) if code not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)]
_CONTROLS = "".join(map(chr, _CODES))
_PRINTED = bytes(_CODES).decode(_WINDOWS)
"""Control characters of iso-8859-1, and what windows-1252 has in place of each."""
_IS_TEXT = "__is_text"
_TWICE_INSIDE = "has a name twice in an object inside"


@dataclass(frozen=True)
class Records:
    """Rows with [source_file, __record, __why], and their values by the names that files have.

    `__why` is the reason why a record can't be split; null where it was. `rest` are the values
    that belong to no pinned column, as a map of JSON. Where values have no `types`, they are texts.
    """

    rows: DataFrame
    values: Mapping[str, Column]
    rest: Column
    types: Mapping[str, T.DataType] | None = None


def csv_options(form: CsvForm, *, spans: bool) -> dict[str, str]:
    """How Spark reads records of such files, whose values are texts.

    Where records span lines, Spark passes over the header by itself.
    """
    options = {
        "sep": form.delimiter,
        "quote": form.quote,
        "escape": form.quote if form.escape is None else form.escape,
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _BROKEN,
    }
    if spans:
        options |= {"multiLine": "true", "encoding": _known_to_spark(form.encoding)}
        options["header"] = str(form.header).lower()
    return options


def split_csv(
    lines: DataFrame,
    names: Sequence[str],
    headers: Iterable[str],
    pinned: Iterable[str],
    form: CsvForm,
) -> Records:
    """The records of CSV files with the columns `names`, one on each line.

    Lines that are one of the `headers` are no records, and neither are empty ones.
    [source_file, __record] -> Records.
    """
    decoded = _decode(lines, form.encoding)
    known = sorted(set(headers))
    if known:
        is_header = F.regexp_replace(F.col(RECORD), f"^{BOM}", "").isin(known)
        decoded = decoded.where(~is_header)
    schema = ", ".join([*(f"c{n} string" for n in range(len(names))), f"{_BROKEN} string"])
    parsed = F.from_csv(F.col(RECORD), F.lit(schema), csv_options(form, spans=False))
    split = decoded.withColumn(_FIELDS, parsed)
    columns = [F.col(f"{_FIELDS}.c{n}") for n in range(len(names))]
    why = F.coalesce(
        _has_other_bytes(form.encoding),
        F.when(F.col(f"{_FIELDS}.{_BROKEN}").isNotNull(), f"has not {len(names)} values"),
        F.when(F.rlike(RECORD, F.lit(open_quote_pattern(form))), NOT_CLOSED),
    )
    return _records_of(split.withColumn(WHY, why), dict(zip(names, columns, strict=True)), pinned)


def split_spanning_csv(
    found: DataFrame, names: Sequence[str], pinned: Iterable[str], form: CsvForm
) -> Records:
    """The same of records that may span lines, which Spark has split into [c0, c1, ...]."""
    columns = [_translate(F.col(f"c{n}"), form.encoding) for n in range(len(names))]
    again = F.to_csv(F.struct(*columns), {"sep": form.delimiter, "quote": form.quote})
    record = F.coalesce(_translate(F.col(_BROKEN), form.encoding), again)
    replaced = F.contains(record, F.lit("\ufffd"))
    why = F.coalesce(
        F.when(F.col(_BROKEN).isNotNull(), f"has not {len(names)} values"),
        F.when(replaced, f"has bytes that are not {form.encoding}"),
    )
    split = found.withColumns({RECORD: record, WHY: why})
    return _records_of(split, dict(zip(names, columns, strict=True)), pinned)


def _decode(lines: DataFrame, encoding: str) -> DataFrame:
    """The texts of lines that are not empty, and whether all bytes are characters of the encoding.

    [source_file, __record] -> [source_file, __record, __is_text].
    """
    line = F.col(RECORD)
    text, is_text = F.make_valid_utf8(line), F.is_valid_utf8(line)
    if encoding != "utf-8":
        text = _translate(F.decode(line.cast("binary"), _known_to_spark(encoding)), encoding)
        is_text = F.lit(True)
    return lines.withColumns({RECORD: text, _IS_TEXT: is_text}).where(F.trim(RECORD) != "")


def _has_other_bytes(encoding: str) -> Column:
    """The reason why a line of `_decode` is no record; NULL where it may be one."""
    return F.when(~F.col(_IS_TEXT), f"has bytes that are not {encoding}")


def _known_to_spark(encoding: str) -> str:
    """The encoding by which Spark reads such texts, of which windows-1252 is not one."""
    return "iso-8859-1" if encoding == _WINDOWS else encoding


def _translate(text: Column, encoding: str) -> Column:
    """A text that was read in the other encoding, with the characters that this one has instead."""
    return F.translate(text, _CONTROLS, _PRINTED) if encoding == _WINDOWS else text


def _records_of(
    split: DataFrame,
    columns: Mapping[str, Column],
    pinned: Iterable[str],
    types: Mapping[str, T.DataType] | None = None,
) -> Records:
    known = set(pinned)
    values = {name: value for name, value in columns.items() if name in known}
    rest = {name: value for name, value in columns.items() if name not in known}
    stored = dict.fromkeys(rest) if types is None else types
    left = {name: as_json(value, stored[name]) for name, value in rest.items()}
    return Records(split, values, map_of(left), types)


def split_json(lines: DataFrame, pinned: Iterable[str]) -> Records:
    """The records of files with an object of JSON on each line. [source_file, __record] -> ..."""
    split = _decode(lines, "utf-8").withColumn(_FIELDS, F.from_json(F.col(RECORD), OBJECT))
    # Spark reads an object and passes over what is behind it.
    as_list = F.concat(F.lit("["), F.col(RECORD), F.lit("]"))
    is_one = is_true(F.json_array_length(as_list) == 1)
    why = F.coalesce(
        _has_other_bytes("utf-8"),
        F.when(is_one & F.col(_FIELDS).isNull() & _is_object(), _TWICE_INSIDE),
        F.when(F.col(_FIELDS).isNull() | ~is_one, "is no JSON object"),
    )
    return _records_of_json(split.withColumn(WHY, why), pinned)


def _is_object() -> Column:
    """Whether a record is an object by itself, whatever its values are."""
    return F.from_json(F.col(RECORD), "map<string,string>").isNotNull()


def split_spanning_json(
    whole: DataFrame, pinned: Iterable[str], path: Sequence[str] = ()
) -> Records:
    """The same of files that are one object, or one list of objects, on any number of lines.

    With a `path` the records are the objects of the list that each of those has there. A file with
    an empty list has none.
    """
    text = F.trim(F.col(RECORD), F.lit(f"{BOM} \r\n\t"))
    as_list = _as_list(text)
    wrong = "is no JSON object and no list of them"
    if path:
        wrong = f"has no list of JSON objects in {'.'.join(path)}"
    is_twice = _find_objects(as_list, path, "map<string,string>").isNotNull()
    split = (
        whole.where(text != "")
        .withColumn("__objects", _find_objects(as_list, path, OBJECT))
        .where(F.coalesce(F.size("__objects") > 0, F.lit(True)))
        .withColumn("__wrong", F.when(F.col("__objects").isNull() & is_twice, _TWICE_INSIDE))
        .select(
            *(FILE, "__wrong", F.col(RECORD).alias("__whole")),
            F.explode_outer("__objects").alias(_FIELDS),
        )
    )
    record = F.coalesce(F.to_json(F.col(_FIELDS)), F.col("__whole"))
    why = F.when(F.col(_FIELDS).isNull(), F.coalesce(F.col("__wrong"), F.lit(wrong)))
    return _records_of_json(split.withColumns({RECORD: record, WHY: why}), pinned)


def _as_list(text: Column) -> Column:
    """An object, or a list, as a list; NULL where something stands behind it, or it is none."""
    as_list = F.when(F.startswith(text, F.lit("[")), text).otherwise(
        F.concat(F.lit("["), text, F.lit("]"))
    )
    # Spark reads a list and passes over what is behind it.
    is_one = F.json_array_length(F.concat(F.lit("["), as_list, F.lit("]"))) == 1
    return F.when(is_one, as_list)


def _find_objects(as_list: Column, path: Sequence[str], of: str) -> Column:
    """The objects of a list, or those of the lists that its objects have at `path`; else NULL.

    `of` is the type of an object.
    """
    kind = f"array<{of}>"
    if not path:
        return F.from_json(as_list, kind)
    for name in reversed(path):
        kind = f"struct<`{name}`: {kind}>"

    def find_list(document: Column) -> Column:
        for name in path:
            document = document.getField(name)
        return document

    return F.flatten(F.transform(F.from_json(as_list, f"array<{kind}>"), find_list))


def _records_of_json(split: DataFrame, pinned: Iterable[str]) -> Records:
    known = list(dict.fromkeys(pinned))
    fields = F.col(_FIELDS)
    keys = F.map_keys(fields)
    is_twice = F.size(F.array_distinct(keys)) < F.size(keys)
    checked = split.withColumn(WHY, F.coalesce(F.col(WHY), F.when(is_twice, "has a name twice")))
    values = {name: F.try_element_at(fields, F.lit(name)) for name in known}
    rest = F.map_filter(fields, lambda name, _: ~name.isin(known)) if known else fields
    return Records(checked, values, rest, dict.fromkeys(known, JSON))


def take_parquet(rows: DataFrame, pinned: Iterable[str]) -> Records:
    """The rows of Parquet files, whose values have types. [source_file, __fields] -> Records."""
    types = {field.name: field.dataType for field in rows.select(f"{_FIELDS}.*").schema}
    columns = {name: F.col(_FIELDS).getField(name) for name in types}
    record = F.to_json(F.col(_FIELDS), EXACT_TIMES)
    shown = rows.withColumns({RECORD: record, WHY: F.lit(None).cast("string")})
    return _records_of(shown, columns, pinned, types)
