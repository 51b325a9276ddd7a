"""The reasons of a proposal agree with its values, and with the figures of the sample."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from windowing.ingest.proposal import Proposal, Refused, propose
from windowing.spec.pipeline import CsvForm

AT = datetime(2026, 3, 27, 22, tzinfo=UTC)


def proposed(found: list[dict[str, Any]], refused: Refused | None = None) -> Proposal:
    """What is proposed from rows."""
    proposal = propose(found) if refused is None else propose(found, refused)
    assert proposal is not None
    return proposal


def at(*minutes: float, **more: Any) -> list[dict[str, Any]]:
    """Rows of two shops at these minutes; `more` has the values of further columns."""
    return [
        {"ordered_at": AT + timedelta(minutes=minute), "shop": "ab"[n % 2]}
        | {name: values[n] for name, values in more.items()}
        for n, minute in enumerate(minutes)
    ]


@pytest.mark.parametrize(
    ("minutes", "told"),
    [
        ((0, 59 * 60 + 51), "the first and the last event of the sample are 2 days 11 hours apart"),
        ((90, 0), "the first and the last event of the sample are 1 hour 30 minutes apart"),
        ((0, 1.5), "the first and the last event of the sample are 1 minute 30 seconds apart"),
        ((0, 0.0005), "the first and the last event of the sample are 30 milliseconds apart"),
        ((7, 7), "all events of the sample have the same time"),
    ],
)
def test_the_time_from_the_first_event_to_the_last_is_told(
    minutes: tuple[float, ...], told: str
) -> None:
    (window,) = proposed(at(*minutes)).windows.values()
    assert window.why == told


ORDERED = tuple(range(300))


@pytest.mark.parametrize(
    ("minutes", "delay", "why", "behind"),
    [
        (ORDERED, "0 seconds", "all 300 events come in order of time", None),
        (
            (*ORDERED, 299 - 12 * 60 - 8),
            "0 seconds",
            "300 of 301 events come in order of time",
            "12 hours 8 minutes",
        ),
        (
            (0, 9, 2, 3, 10),
            "10 minutes",
            "all 5 events come no further behind the latest one before them",
            "7 minutes",
        ),
        (
            (*ORDERED, *(299 - 7 for _ in range(9)), 200),
            "10 minutes",
            "309 of 310 events come no further behind the latest one before them",
            "1 hour 39 minutes",
        ),
        ((0,), "0 seconds", "there is no event before the only one", None),
    ],
)
def test_delay_and_lateness_say_what_the_sample_shows(
    minutes: tuple[float, ...], delay: str, why: str, behind: str | None
) -> None:
    proposal = proposed(at(*minutes))
    assert (proposal.delay.value, proposal.delay.why) == (delay, why)
    late = f"the event that came latest was {behind} behind"
    told = "no event came behind a later one" if behind is None else late
    assert proposal.allowed_lateness.why == f"{told}; forever is allowed, too"


def test_times_that_are_none_are_counted() -> None:
    found = at(*range(20))
    assert proposed(found).event_time.why == "a time in all 20 records"
    refused = Refused({"ordered_at": 1})
    assert proposed(found, refused).event_time.why == "a time in 20 of 21 records"
    found[3]["ordered_at"] = None
    assert proposed(found, refused).event_time.why == "a time in 19 of 21 records"
    assert proposed(at(0)).event_time.why == "a time in 1 of 1 record"


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ("abcdefghij", "no two records have the same; records with one id are one event"),
        ("abcdefghia", "1 record has one that came before; records with one id are one event"),
        ("abcdefghaa", "2 records have one that came before; records with one id are one event"),
    ],
)
def test_ids_that_come_again_are_counted(ids: str, told: str) -> None:
    event_id = proposed(at(*range(10), order_id=ids)).event_id
    assert event_id is not None
    assert event_id.why == told


def test_a_key_of_one_value_is_told() -> None:
    assert proposed(at(0, 1, 2, 3)).key.why == "2 different values; windows are made for each"
    one = [row | {"shop": "a"} for row in at(0, 1, 2, 3)]
    assert proposed(one).key.why == "the sample has one value of it"


MONEY = [Decimal("1.50"), Decimal("2.25")]
AMOUNT = "its name is that of an amount, which adds up"
MEAN = "a number, whose mean is of use"


@pytest.mark.parametrize(
    ("name", "values", "calls"),
    [
        ("Betrag", MONEY, {"sum_betrag": AMOUNT}),
        ("Betrag", [1.5, 2.25], {"sum_betrag": AMOUNT}),
        ("precio", MONEY, {"sum_precio": AMOUNT}),
        (
            "Honorar",
            MONEY,
            {
                "sum_honorar": "exact decimals are mostly amounts, which add up; remove it if "
                "these do not",
                "avg_honorar": "the mean of the same numbers",
            },
        ),
        ("temperature", MONEY, {"avg_temperature": MEAN}),
        ("mag", [1.5, 2.25], {"avg_mag": MEAN}),
        ("paid", MONEY, {"sum_paid": AMOUNT}),
        ("humid", [1.5, 2.25], {"avg_humid": MEAN}),
        ("customer_id", [1, 1], {}),
        ("customerId", [1, 1], {}),
        ("CUSTOMER_ID", [1, 1], {}),
    ],
)
def test_amounts_are_summed_and_measures_averaged(
    name: str, values: list[Any], calls: dict[str, str]
) -> None:
    aggregates = proposed(at(0, 1, **{name: values})).aggregates
    assert {made: part.why for made, part in aggregates.items() if part.value != "count()"} == calls


def test_numbers_that_an_ingest_refused_are_counted() -> None:
    found = proposed(at(0, 1, Betrag=MONEY), Refused({"Betrag": 1}))
    told = "its name is that of an amount, which adds up; in 2 of 3 records it is a number"
    assert found.aggregates["sum_betrag"].why == told


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (["7"] * 9 + ["abc"], "1 of 10 values is no number"),
        (["7,50"] * 8 + ["1.50", "abc"], "2 of 10 values are no numbers"),
        (["7"] * 7 + ["abc"] * 3, None),
        (["7"] * 10, None),
    ],
)
def test_a_column_of_numbers_that_is_text_is_told(values: list[str], told: str | None) -> None:
    found = proposed(at(*range(10), Betrag=values), Refused(csv=CsvForm(decimal=",")))
    remark = f"Betrag is text, because {told}; no aggregate of it is proposed"
    assert list(found.remarks) == ([] if told is None else [remark])
