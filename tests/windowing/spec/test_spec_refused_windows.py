"""Every wrong window is one sentence, kind by kind."""

from typing import Any

import pytest

from tests.windowing.spec.specs import GONE, KINDS, changed, refused, with_window
from windowing.spec.yaml.window_document import KINDS as DOCUMENTED

NAMES = "tumbling, sliding, cumulate, session, record_sliding, count, delta, punctuation, global"
FORM = "a duration such as '15 minutes', '1 hour 30 minutes' or '2 days'"
SHORT_UNITS = "units are microsecond, millisecond, second, minute, hour, day, week"
UNITS = f"{SHORT_UNITS}, month, quarter, year"
POSITIVE = f"is not longer than 0; it must be {FORM}"
FIXED = "has no fixed length; use weeks, days or shorter units"
STEP = "a number such as 10, or a duration such as '5 minutes' for timestamps"
LOST = "events between windows would be lost"
HAVING = (
    "is not an aggregate, one of = != < <= > >= and a number of up to 18 digits "
    "before and after the point, as in flights >= 3"
)

BELONGS = {
    "size": "tumbling and sliding",
    "slide": "sliding",
    "zone": "tumbling, sliding and cumulate",
    "offset": "tumbling, sliding and cumulate",
    "origin": "tumbling and cumulate",
    "empty": "tumbling and sliding",
    "empty_limit": "tumbling and sliding",
    "max_size": "cumulate",
    "step": "cumulate",
    "gap": "session",
    "max_duration": "session",
    "difference": "record_sliding",
    "tick": "record_sliding",
    "count": "count",
    "every": "count",
    "attribute": "delta",
    "delta": "delta",
    "marker": "punctuation",
}
FOREIGN = [
    (kind, field)
    for kind in KINDS
    for field, kinds in BELONGS.items()
    if kind not in kinds.replace(" and ", ", ").split(", ")
]


def test_every_kind_is_tried() -> None:
    assert [*KINDS] == [*DOCUMENTED] == NAMES.split(", ")


@pytest.mark.parametrize(("kind", "field"), FOREIGN)
def test_fields_of_other_kinds_say_so(kind: str, field: str) -> None:
    error = refused(with_window(kind, **{field: "1 hour"}))
    assert error.field == f"windows.w.{field}"
    assert error.message.startswith(
        f"is not a field here (given '1 hour'), it belongs to {BELONGS[field]} windows; "
        "allowed: aggregates, "
    )


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_fields_of_each_kind(kind: str) -> None:
    error = refused(with_window(kind, xyzzy="red"))
    allowed = error.message.removeprefix("is not a field here (given 'red'); allowed: ").split(", ")
    own = {
        field
        for field, kinds in BELONGS.items()
        if kind in kinds.replace(" and ", ", ").split(", ")
    }
    assert (error.field, {*allowed}) == (
        "windows.w.xyzzy",
        {"kind", "aggregates", "change_feed", "emit", "having", *own},
    )


@pytest.mark.parametrize(
    ("kind", "field", "said"),
    [
        ("cumulate", "max_size", "how long the period is, which is its longest window"),
        ("cumulate", "step", "how far apart windows end; at most max_size"),
        (
            "record_sliding",
            "difference",
            "how far apart the first and last event of a window can be",
        ),
        ("count", "count", "how many events a window holds"),
        ("delta", "attribute", "the column whose growth ends windows: a number or a timestamp"),
        ("delta", "delta", "the growth beyond which the next window begins"),
        ("punctuation", "marker", "the boolean column that marks the rows that end a window"),
    ],
)
def test_missing_fields_of_each_kind(kind: str, field: str, said: str) -> None:
    error = refused(with_window(kind, **{field: GONE}))
    assert (error.field, error.message) == (f"windows.w.{field}", f"is missing; write {said}")


LENGTHS = [
    ("cumulate", "max_size"),
    ("cumulate", "step"),
    ("cumulate", "offset"),
    ("session", "max_duration"),
]
LENGTHS += [("record_sliding", "difference"), ("record_sliding", "tick")]
COLUMNS = [("delta", "attribute"), ("punctuation", "marker")]
CONDITIONS = [(kind, "having") for kind in KINDS]
WHOLE = [
    ("count", "count"),
    ("count", "every"),
    ("tumbling", "empty_limit"),
    ("sliding", "empty_limit"),
]
TRUTHS = [("tumbling", "empty"), ("sliding", "empty"), *[(kind, "change_feed") for kind in KINDS]]
FORMS = {
    "a condition such as 'flights >= 3'": CONDITIONS,
    FORM: LENGTHS,
    "the name of a column": COLUMNS,
}


@pytest.mark.parametrize(
    ("kind", "field", "form"),
    [(kind, field, form) for form, fields in FORMS.items() for kind, field in fields],
)
@pytest.mark.parametrize(
    ("value", "spelled"), [(15, "15"), (1.5, "1.5"), (True, "true"), (["a"], "['a']"), ("", "''")]
)
def test_texts_of_each_kind(kind: str, field: str, form: str, value: Any, spelled: str) -> None:
    error = refused(with_window(kind, **{field: value}))
    sentence = f"{spelled} is not {form}"
    if form == FORM and value == 15:
        sentence += "; write its unit, as in '15 minutes'"
    assert (error.field, error.message) == (f"windows.w.{field}", sentence)


@pytest.mark.parametrize(("kind", "field"), WHOLE)
@pytest.mark.parametrize(
    ("value", "spelled"), [("3", "'3'"), (1.5, "1.5"), (3.0, "3.0"), (True, "true"), ([3], "[3]")]
)
def test_whole_numbers_of_each_kind(kind: str, field: str, value: Any, spelled: str) -> None:
    error = refused(with_window(kind, **{field: value}))
    assert (error.field, error.message) == (
        f"windows.w.{field}",
        f"{spelled} is not a whole number",
    )


@pytest.mark.parametrize(("kind", "field"), TRUTHS)
@pytest.mark.parametrize(("value", "spelled"), [("yes", "'yes'"), (1, "1"), (None, "null")])
def test_yes_or_no_of_each_kind(kind: str, field: str, value: Any, spelled: str) -> None:
    error = refused(with_window(kind, **{field: value}))
    assert (error.field, error.message) == (f"windows.w.{field}", f"{spelled} is not true or false")


WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    # cumulate
    ("cumulate", {"max_size": "0 days"}, "max_size", f"'0 days' {POSITIVE}"),
    ("cumulate", {"step": "0 hours"}, "step", f"'0 hours' {POSITIVE}"),
    ("cumulate", {"step": "-1 hour"}, "step", f"'-1 hour' {POSITIVE}"),
    (
        "cumulate",
        {"step": "2 days"},
        "step",
        "'2 days' is longer than max_size '1 day'; it must be at most as long",
    ),
    (
        "cumulate",
        {"max_size": "1 month", "step": "32 days"},
        "step",
        "'32 days' is longer than max_size '1 month'; it must be at most as long",
    ),
    (
        "cumulate",
        {"max_size": "1 year", "step": "13 months"},
        "step",
        "'13 months' is longer than max_size '1 year'; it must be at most as long",
    ),
    (
        "cumulate",
        {"max_size": "90 days", "step": "1 month"},
        "step",
        "'1 month' has no fixed length, but max_size '90 days' has; use days",
    ),
    (
        "cumulate",
        {"max_size": "2 hours", "step": "25 minutes", "zone": "Asia/Kolkata"},
        "step",
        "'25 minutes' does not divide max_size '2 hours'; "
        "in a zone it must, unless max_size is a day or longer",
    ),
    (
        "cumulate",
        {"offset": "1 hour", "origin": "2024-01-01"},
        "offset",
        "'1 hour' and origin '2024-01-01' are both given; use one of them",
    ),
    (
        "cumulate",
        {"max_size": "1 year", "step": "1 month", "offset": "1 day"},
        "offset",
        "'1 day' can't shift months, whose lengths differ; use origin, as in origin: 2024-01-15",
    ),
    ("cumulate", {"offset": "1 month"}, "offset", f"'1 month' {FIXED}"),
    (
        "cumulate",
        {"origin": "noon"},
        "origin",
        "'noon' is not a local date or time such as '2024-01-01' or '2024-01-01 06:00', "
        "without a zone of its own",
    ),
    (
        "cumulate",
        {"zone": "+01:00"},
        "zone",
        "'+01:00' is not a zone such as 'America/New_York' or 'UTC'; an offset says nothing of "
        "daylight saving; write the zone of a city",
    ),
    # capped sessions
    (
        "session",
        {"max_duration": "29 minutes"},
        "max_duration",
        "'29 minutes' is shorter than gap '30 minutes'; make it at least as long",
    ),
    ("session", {"max_duration": "-1 hour"}, "max_duration", f"'-1 hour' {POSITIVE}"),
    ("session", {"max_duration": "1 month"}, "max_duration", f"'1 month' {FIXED}"),
    # record_sliding
    ("record_sliding", {"difference": "0 seconds"}, "difference", f"'0 seconds' {POSITIVE}"),
    ("record_sliding", {"difference": "-1 second"}, "difference", f"'-1 second' {POSITIVE}"),
    ("record_sliding", {"difference": "1 month"}, "difference", f"'1 month' {FIXED}"),
    ("record_sliding", {"tick": "0 seconds"}, "tick", f"'0 seconds' {POSITIVE}"),
    ("record_sliding", {"tick": "1 year"}, "tick", f"'1 year' {FIXED}"),
    ("record_sliding", {"tick": "ten"}, "tick", f"'ten' is not {FORM}; {SHORT_UNITS}"),
    ("record_sliding", {"tick": None}, "tick", f"null is not {FORM}"),
    (
        "record_sliding",
        {"tick": "3 seconds"},
        "difference",
        "'10 seconds' is not a multiple of tick '3 seconds'; change one of them",
    ),
    (
        "record_sliding",
        {"tick": "20 seconds"},
        "difference",
        "'10 seconds' is not a multiple of tick '20 seconds'; change one of them",
    ),
    (
        "record_sliding",
        {"difference": "500 microseconds"},
        "difference",
        "'500 microseconds' is not a multiple of tick '1 millisecond'; change one of them",
    ),
    # count
    (
        "count",
        {"count": 0},
        "count",
        "0 is not a number of events; it must be from 1 to 1,000,000,000",
    ),
    (
        "count",
        {"count": -5},
        "count",
        "-5 is not a number of events; it must be from 1 to 1,000,000,000",
    ),
    (
        "count",
        {"count": 1_000_000_001},
        "count",
        "1000000001 is not a number of events; it must be from 1 to 1,000,000,000",
    ),
    ("count", {"every": 0}, "every", "0 is not a number of events; it must be from 1 to count 100"),
    (
        "count",
        {"every": -1},
        "every",
        "-1 is not a number of events; it must be from 1 to count 100",
    ),
    ("count", {"every": 101}, "every", f"101 is more than count 100; {LOST}"),
    (
        "count",
        {"count": 3_000_003, "every": 3},
        "every",
        "3 puts each event into more than 1,000,000 windows of 3,000,003 events",
    ),
    # delta
    ("delta", {"delta": -1}, "delta", "-1 is negative; it must be 0 or more"),
    ("delta", {"delta": -0.5}, "delta", "-0.5 is negative; it must be 0 or more"),
    ("delta", {"delta": float("nan")}, "delta", f"nan is not {STEP}"),
    ("delta", {"delta": float("inf")}, "delta", f"inf is not {STEP}"),
    ("delta", {"delta": True}, "delta", f"true is not {STEP}"),
    ("delta", {"delta": None}, "delta", f"null is not {STEP}"),
    ("delta", {"delta": [10]}, "delta", f"[10] is not {STEP}"),
    (
        "delta",
        {"delta": "10"},
        "delta",
        "'10' is text; write a number without quotes, or a duration such as '5 minutes'",
    ),
    (
        "delta",
        {"delta": " -2.5"},
        "delta",
        "' -2.5' is text; write a number without quotes, or a duration such as '5 minutes'",
    ),
    ("delta", {"delta": "ten"}, "delta", f"'ten' is not {FORM}; {SHORT_UNITS}"),
    ("delta", {"delta": ""}, "delta", f"'' is not {FORM}; {SHORT_UNITS}"),
    ("delta", {"delta": "5 minuts"}, "delta", f"'5 minuts' has the unit 'minut'; {SHORT_UNITS}"),
    (
        "delta",
        {"delta": "-5 minutes"},
        "delta",
        "'-5 minutes' is negative; it must be '0 seconds' or longer",
    ),
    ("delta", {"delta": "1 month"}, "delta", f"'1 month' {FIXED}"),
    (
        "delta",
        {"delta": 10**18},
        "delta",
        "1000000000000000000 has too many digits; "
        "a number has up to 18 before and 9 after the point",
    ),
    (
        "delta",
        {"delta": 1e300},
        "delta",
        "1e+300 has too many digits; a number has up to 18 before and 9 after the point",
    ),
    (
        "delta",
        {"delta": 1e-10},
        "delta",
        "1e-10 has too many digits; a number has up to 18 before and 9 after the point",
    ),
    # emit
    (
        "tumbling",
        {"emit": "late"},
        "emit",
        "'late' is not allowed; it is 'on_change', 'on_close' or 'changes'",
    ),
    (
        "tumbling",
        {"emit": None},
        "emit",
        "null is not allowed; it is 'on_change', 'on_close' or 'changes'",
    ),
    *[
        (
            kind,
            {"emit": "changes"},
            "emit",
            "'changes' is for sliding and cumulate windows only; use on_change or on_close",
        )
        for kind in ("tumbling", "session", "record_sliding", "count", "delta", "punctuation")
    ],
    (
        "global",
        {"emit": "changes"},
        "emit",
        "'changes' is for sliding and cumulate windows only; use on_change",
    ),
    (
        "global",
        {"emit": "on_close"},
        "emit",
        "'on_close' is not for global windows, which never close; use on_change",
    ),
    # having
    *[
        (
            kind,
            {"emit": "changes", "having": "flights > 3"},
            "having",
            "'flights > 3' can't be given with emit: changes; leave one of them out",
        )
        for kind in ("sliding", "cumulate")
    ],
    (
        "session",
        {"having": "fligts >= 3"},
        "having",
        "'fligts >= 3' compares 'fligts', which is none of its aggregates, "
        "did you mean 'flights'; the window has flights, worst",
    ),
    (
        "session",
        {"having": "worst >= 3", "aggregates": ["flights"]},
        "having",
        "'worst >= 3' compares 'worst', which is none of its aggregates; the window has flights",
    ),
    *[
        ("session", {"having": text}, "having", f"{text!r} {HAVING}")
        for text in (
            "flights",
            "flights > worst",
            "3 < flights",
            "flights > 3 and worst > 2",
            "flights is null",
            "count() > 3",
            "flights > 1e3",
        )
    ],
    # empty
    (
        "tumbling",
        {"empty_limit": 5},
        "empty_limit",
        "5 is given without empty: true; leave it out or add that",
    ),
    (
        "sliding",
        {"empty": False, "empty_limit": 5},
        "empty_limit",
        "5 is given without empty: true; leave it out or add that",
    ),
    (
        "tumbling",
        {"empty": True, "empty_limit": 0},
        "empty_limit",
        "0 is not a number of windows; it must be 1 or more",
    ),
    (
        "tumbling",
        {"empty": True, "empty_limit": -1},
        "empty_limit",
        "-1 is not a number of windows; it must be 1 or more",
    ),
    (
        "sliding",
        {"empty": True, "emit": "changes"},
        "empty",
        "true can't be given with emit: changes; leave one of them out",
    ),
    # aggregates
    ("global", {"aggregates": [7]}, "aggregates[0]", "7 is not the name of an aggregate"),
    (
        "global",
        {"aggregates": ["fligts"]},
        "aggregates[0]",
        "'fligts' is not defined under aggregates, did you mean 'flights'; allowed: flights, worst",
    ),
    (
        "global",
        {"aggregates": ["worst", "worst"]},
        "aggregates",
        "'worst' is given twice; name each aggregate once",
    ),
]


@pytest.mark.parametrize(
    ("kind", "fields", "field", "sentence"),
    WRONG,
    ids=[f"{i}-{w[0]}-{w[2]}" for i, w in enumerate(WRONG)],
)
def test_wrong_windows(kind: str, fields: dict[str, Any], field: str, sentence: str) -> None:
    error = refused(with_window(kind, **fields))
    assert (error.field, error.message) == (f"windows.w.{field}", sentence)


@pytest.mark.parametrize("value", [10**400, -(10**400)])
@pytest.mark.parametrize(
    ("kind", "field"), [("count", "count"), ("count", "every"), ("delta", "delta")]
)
def test_endless_numbers_are_cut_to_a_line(kind: str, field: str, value: int) -> None:
    error = refused(with_window(kind, **{field: value}))
    assert error.field == f"windows.w.{field}"
    assert "000...000" in error.message and len(error.message) < 200


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (GONE, f"is missing; write one of {NAMES}"),
        (
            "tumblin",
            f"'tumblin' is not a kind of window, did you mean 'tumbling'; allowed: {NAMES}",
        ),
        (
            "cumulative",
            f"'cumulative' is not a kind of window, did you mean 'cumulate'; allowed: {NAMES}",
        ),
        (5, f"5 is not a kind of window; allowed: {NAMES}"),
        ([5], f"[5] is not a kind of window; allowed: {NAMES}"),
    ],
)
def test_kinds_that_are_none(window: Any, sentence: str) -> None:
    error = refused(changed(**{"windows/hourly/kind": window}))
    assert (error.field, error.message) == ("windows.hourly.kind", sentence)


def test_a_window_that_is_no_mapping() -> None:
    error = refused(changed(**{"windows/hourly": None}))
    assert (error.field, error.message) == (
        "windows.hourly",
        f"null is not a mapping; write kind ({NAMES}) and its fields",
    )


def kept(state: str, window: dict[str, Any]) -> dict[str, Any]:
    """RIGHT with one window, an allowed lateness of an hour and a finite retention of state."""
    return with_window(**window) | {
        "watermark": {"allowed_lateness": "1 hour"},
        "retention": {"state": state},
    }


@pytest.mark.parametrize("kind", ["count", "delta", "punctuation", "global"])
def test_state_of_windows_without_an_end_lives_forever(kind: str) -> None:
    error = refused(kept("9000 years", {"kind": kind}))
    assert (error.field, error.message) == (
        "retention.state",
        "'9000 years' is given, but windows.w can last forever; write forever",
    )


@pytest.mark.parametrize(
    ("window", "state", "span", "least"),
    [
        ({"kind": "tumbling"}, "119 minutes", "1 hour", "2 hours"),
        ({"kind": "tumbling", "size": "1 month"}, "31 days", "31 days", "31 days 1 hour"),
        (
            {"kind": "tumbling", "size": "1 day", "zone": "America/New_York"},
            "1 day 1 hour",
            "1 day 1 hour",
            "1 day 2 hours",
        ),
        ({"kind": "sliding"}, "3 hours 59 minutes", "3 hours", "4 hours"),
        (
            {"kind": "sliding", "emit": "changes"},
            "4 hours",
            "3 hours 15 minutes",
            "4 hours 15 minutes",
        ),
        ({"kind": "cumulate"}, "1 day 59 minutes", "1 day", "1 day 1 hour"),
        (
            {"kind": "cumulate", "max_size": "1 quarter", "step": "1 month"},
            "93 days",
            "93 days",
            "93 days 1 hour",
        ),
        ({"kind": "session"}, "119 minutes", "1 hour", "2 hours"),
        (
            {"kind": "session", "max_duration": "2 hours"},
            "3 hours 59 minutes",
            "3 hours",
            "4 hours",
        ),
        (
            {"kind": "record_sliding"},
            "1 hour 20 seconds",
            "20 seconds 2 milliseconds",
            "1 hour 20 seconds 2 milliseconds",
        ),
    ],
)
def test_state_that_is_too_short(window: dict[str, Any], state: str, span: str, least: str) -> None:
    error = refused(kept(state, window))
    said = (
        f"'{state}' is shorter than allowed_lateness + the '{span}' that windows.w needs; "
        f"write at least '{least}' or forever"
    )
    assert (error.field, error.message) == ("retention.state", said)


def test_the_window_that_needs_most_is_named() -> None:
    error = refused(
        changed(**{"watermark/allowed_lateness": "1 hour", "retention/state": "2 hours"})
    )
    assert (
        "the '3 hours' that windows.rolling needs; write at least '4 hours' or forever"
        in error.message
    )
