"""Names that columns of the source can't have beside those of tables and helpers, and no others."""

from dataclasses import replace

import pytest

from windowing.location import Location
from windowing.panes.frame import _name_input
from windowing.source.names import clash_of_columns, clash_of_parts
from windowing.spec.aggregates import parse_aggregate
from windowing.spec.expressions.parse import parse_expression
from windowing.spec.pipeline import EventTime, Source

SOURCE = Source(Location("/t"), EventTime("at"), ("place",))
FED = replace(SOURCE, changes="feed")
COMPUTING = replace(SOURCE, columns=(("outcome", parse_expression("", "a")),))
LONG = parse_expression("where", "delay > 60")
TOTAL = parse_aggregate("aggregates.total", "total", "sum(delay)")


@pytest.mark.parametrize(
    ("source", "names", "field", "sentence"),
    [
        (
            SOURCE,
            ["at", "__n"],
            "source.table",
            "its column '__n' begins with '__', which is reserved for helpers",
        ),
        (
            SOURCE,
            ["Judged_By"],
            "source.table",
            "its column 'Judged_By' has the name of one that state keeps; rename",
        ),
        (
            SOURCE,
            ["_change_type"],
            "source.table",
            "'_change_type' has the name of one that the change feed adds; rename",
        ),
        (
            FED,
            ["_Commit_Version"],
            "source.table",
            "'_Commit_Version' has the name of one that the change feed adds",
        ),
        (
            SOURCE,
            ["run", "source_run"],
            "source.table",
            "its columns 'run' and 'source_run' would both be 'source_run'",
        ),
        (
            COMPUTING,
            ["Source_Outcome", "outcome"],
            "source.columns.outcome",
            "'outcome' and 'Source_Outcome' would both be 'source_outcome' among refused rows",
        ),
    ],
)
def test_a_column_that_is_called_as_one_of_ours_is_named(
    source: Source, names: list[str], field: str, sentence: str
) -> None:
    found = clash_of_columns(source, names)
    assert found is not None
    assert found[0] == field
    assert sentence in found[1]


@pytest.mark.parametrize(
    "name",
    [
        "delay__n",
        "_n",
        "run",
        "rows",
        "window_start",
        "pane_start",
        "digest",
        "_commit_version",
        "at",
    ],
)
def test_any_other_name_is_fine(name: str) -> None:
    assert clash_of_columns(SOURCE, ["place", name]) is None


@pytest.mark.parametrize("key", ["delay__n", "Delay__N"])
def test_a_key_that_is_called_as_a_part_of_an_aggregate_is_named(key: str) -> None:
    found = clash_of_parts(("place", key), [(TOTAL, "delay__sum"), (TOTAL, "delay__n")])
    assert found == (
        "aggregates.total",
        "state keeps 'sum(delay)' in a column 'delay__n', which is the name of a key "
        "(source.key[1]); give 'delay' another name in source.columns, "
        "as in columns: {delay_value: delay}, and use that",
    )


def test_a_key_that_is_called_as_a_part_of_a_count_gets_the_other_name_itself() -> None:
    bad = parse_aggregate("aggregates.bad", "bad", "count()", LONG)
    found = clash_of_parts((f"{_name_input(bad)}__n",), [(bad, f"{_name_input(bad)}__n")])
    assert found is not None
    assert found[1].endswith("(source.key[0]); give that another name in source.columns")


def test_a_key_that_only_looks_like_a_part_is_fine() -> None:
    assert (
        clash_of_parts(("delay__total", "delay", "n"), [(TOTAL, "delay__sum"), (TOTAL, "delay__n")])
        is None
    )


def test_aggregates_of_one_column_share_parts() -> None:
    mean = parse_aggregate("aggregates.mean", "mean", "avg(delay)")
    assert clash_of_parts(("place",), [(TOTAL, "delay__n"), (mean, "delay__n")]) is None


def test_a_column_that_is_called_as_a_part_with_a_condition_is_named() -> None:
    late = parse_aggregate("aggregates.late", "late", "sum(delay)", LONG)
    other = parse_aggregate("aggregates.other", "other", f"sum({_name_input(late)})")
    found = clash_of_parts(
        ("place",), [(late, f"{_name_input(late)}__n"), (other, f"{_name_input(other)}__n")]
    )
    assert found is not None
    assert found[0] == "aggregates.other"
    assert "which is the name of a part of aggregates.late; give" in found[1]
