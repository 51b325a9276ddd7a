"""Specs of the wrong shape: unknown and missing fields, and values of another type.

Each is refused with one sentence that names its field and says what was given.
"""

from typing import Any

import pytest

from tests.windowing.spec.specs import GONE, RIGHT, changed, refused

LEVELS = [
    "",
    "source/",
    "watermark/",
    "windows/hourly/",
    "windows/rolling/",
    "windows/busy/",
    "expectations/",
    "retention/",
]


@pytest.mark.parametrize("level", LEVELS)
def test_unknown_fields_at_each_level(level: str) -> None:
    error = refused(changed(**{f"{level}xyzzy": "red"}))
    assert error.field == f"{level}xyzzy".replace("/", ".")
    assert error.message.startswith("is not a field here (given 'red'); allowed: ")


@pytest.mark.parametrize(
    ("path", "value", "meant"),
    [
        ("shedule", "@daily", "schedule"),
        ("source/event_tme", "ts", "event_time"),
        ("watermark/lateness", "1 hour", "allowed_lateness"),
        ("windows/hourly/sise", "1 hour", "size"),
        ("windows/rolling/slides", "1 hour", "slide"),
        ("retention/States", "1 hour", "state"),
        # Others call them so.
        ("source/rowtime", "ts", "event_time"),
        ("source/primary_key", "id", "event_id"),
        ("watermark/max_out_of_orderness", "1 hour", "delay"),
        ("cron", "@daily", "schedule"),
    ],
)
def test_unknown_fields_suggest_the_nearest(path: str, value: str, meant: str) -> None:
    assert f"did you mean '{meant}'; allowed: " in refused(changed(**{path: value})).message


def test_a_typo_explains_the_missing_field() -> None:
    assert (
        refused(changed(**{"windows/hourly/size": GONE, "windows/hourly/sise": "1 hour"})).field
        == "windows.hourly.sise"
    )


def test_unknown_fields_of_an_event_time_and_an_aggregate() -> None:
    error = refused(changed(**{"source/event_time": {"column": "ts", "units": "ms"}}))
    assert (error.field, "did you mean 'unit'" in error.message) == (
        "source.event_time.units",
        True,
    )
    error = refused(changed(**{"aggregates/flights": {"call": "count()", "when": "x > 1"}}))
    assert (error.field, "did you mean 'where'" in error.message) == (
        "aggregates.flights.when",
        True,
    )


REQUIRED = [
    "name",
    "lake",
    "source",
    "aggregates",
    "windows",
    "source/table",
    "source/event_time",
    "source/key",
]
REQUIRED += [
    "windows/hourly/size",
    "windows/rolling/size",
    "windows/rolling/slide",
    "windows/busy/gap",
    "expectations/suite",
]


@pytest.mark.parametrize("path", REQUIRED)
def test_missing_fields(path: str) -> None:
    error = refused(changed(**{path: GONE}))
    assert error.field == path.replace("/", ".")
    assert error.message.startswith("is missing; write ")


TEXTS = [
    "name",
    "lake",
    "source/table",
    "source/event_time",
    "source/zone",
    "source/event_id",
    "watermark/delay",
    "watermark/max_future",
]
TEXTS += [
    "watermark/allowed_lateness",
    "watermark/dedupe_horizon",
    "aggregates/flights",
    "windows/hourly/size",
    "windows/hourly/offset",
]
TEXTS += [
    "windows/hourly/origin",
    "windows/hourly/zone",
    "windows/rolling/slide",
    "windows/busy/gap",
    "schedule",
    "expectations/suite",
]
TEXTS += [
    "retention/state",
    "retention/refused",
    "retention/output",
    "retention/revisions",
    "source/where",
    "windows/hourly/having",
    "watermark/idle_after",
]


@pytest.mark.parametrize("path", TEXTS)
@pytest.mark.parametrize(
    ("value", "spelled"),
    [(15, "15"), (1.5, "1.5"), (True, "true"), (["a"], "['a']"), ("  ", "'  '"), ("", "''")],
)
def test_texts_that_are_something_else(path: str, value: Any, spelled: str) -> None:
    error = refused(changed(**{path: value}))
    assert error.field == path.replace("/", ".")
    assert error.message.startswith(f"{spelled} is not ")


MAPPINGS = [
    "source",
    "watermark",
    "aggregates",
    "windows",
    "windows/hourly",
    "windows/busy",
    "expectations",
    "retention",
]


@pytest.mark.parametrize("path", MAPPINGS)
@pytest.mark.parametrize(("value", "spelled"), [("text", "'text'"), (5, "5"), ([], "[]")])
def test_mappings_that_are_something_else(path: str, value: Any, spelled: str) -> None:
    error = refused(changed(**{path: value}))
    assert error.field == path.replace("/", ".")
    assert error.message.startswith(f"{spelled} is not a mapping; write ")


def test_neither_a_path_nor_a_mapping() -> None:
    assert str(refused(5)) == "spec: 5 is neither a path nor a mapping"


def test_a_mapping_that_holds_itself() -> None:
    spec = changed()
    spec["watermark"]["delay"] = spec
    assert "nested too deeply" in refused(spec).message


def test_mappings_with_odd_keys() -> None:
    error = refused(changed() | {7: "x"})
    assert (error.field, error.message.startswith("is not a field here (given ")) == ("7", True)
    assert refused(changed(source=RIGHT["source"] | {7: "x"})).field == "source.7"
    assert refused({}).field == "name"
