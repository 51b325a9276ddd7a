"""Facts of a pipeline that has everything a report can show, made by hand: no table, no JVM."""

from datetime import UTC, datetime

from windowing.grid.zone import micros, moment
from windowing.report.ages import count_ages
from windowing.report.alarms import Alarm, Raised
from windowing.report.facts import (
    Backfilled,
    Check,
    Facts,
    FailingRows,
    Lateness,
    Lost,
    Output,
    Publishing,
    Ran,
    Refusal,
    Revised,
    Revisions,
    Samples,
    Shape,
    Validated,
    Was,
)
from windowing.report.publications import ACCEPTED, VALIDATED, PastPublication
from windowing.report.rows import Refused, Rows
from windowing.report.rule import Changed
from windowing.spec.duration import DAY, HOUR, MINUTE, SECOND
from windowing.spec.load import load_pipeline

MADE = datetime(2026, 1, 8, 6, tzinfo=UTC)
BEGUN_US = micros(datetime(2026, 1, 1, tzinfo=UTC))
HOSTILE = '</script><img src=x onerror="alert(1)">&amp;'
SECRET = "zz-key-4711"
PIPELINE = load_pipeline(
    {
        "name": "orders",
        "lake": "/lake",
        "source": {"table": "/lake/source", "event_time": "at", "key": ["shop"], "event_id": "id"},
        "watermark": {"delay": "30 minutes", "allowed_lateness": "2 hours"},
        "aggregates": {"n": "count()", "total": "sum(price)"},
        "windows": {
            "hourly": {"kind": "tumbling", "size": "1 hour"},
            "daily": {"kind": "tumbling", "size": "1 day"},
        },
    }
)


def make_run(number: int) -> Ran:
    """A run that arrives every six hours; each takes a second more than the one before."""
    arrival = BEGUN_US + number * 6 * HOUR
    began = arrival + MINUTE
    return Ran(
        run=number,
        arrival_us=arrival,
        watermark_us=arrival - 40 * MINUTE - number * MINUTE,
        read=1_000 + 13 * number,
        accepted=980 + 13 * number,
        late=number % 5,
        duplicate=12,
        quarantined=8 - number % 5,
        changed=Changed(100 + number, 7 * number, number % 3),
        batches=2,
        last_us=arrival - 10 * MINUTE,
        begun_us=began,
        updated_us=began + (10 + number) * SECOND,
        ended_us=began + (14 + number) * SECOND,
        shown_us=began + (70 + number) * SECOND,
    )


def make_validation(number: int, failing: str) -> Validated:
    """A validation of three expectations, of which `failing` fails."""
    names = ("expect_a(n)", "expect_b(total)", "rows_add_up")
    checks = [
        Check(number, 7 * number, "hourly", name, "critical", name != failing, "1", "min_value=2")
        for name in names
    ]
    checks.sort(key=lambda check: check.success)
    return Validated(number, 7 * number, BEGUN_US + number * 6 * HOUR + HOUR, tuple(checks))


def make_publication(
    run: int, at_us: int, cause: str, reason: str | None = None, to: int | None = None
) -> PastPublication:
    """The publication of a run, whose number is 7 for each run."""
    return PastPublication(7 * run, moment(at_us), run, None, {}, cause, reason, to)


def make_shape(rows: int) -> Shape:
    """Hours in which as many rows begin as shops were open."""
    starts = tuple(BEGUN_US + hour * HOUR for hour in range(48))
    newest = tuple(rows + hour % 7 for hour in range(48))
    return Shape(HOUR, starts, newest, (*newest[:40], *[0] * 8))


def make_revisions() -> Revisions:
    """Corrections of two days, and the windows that had most."""
    back = count_ages([20 * MINUTE, 50 * MINUTE, 5 * HOUR, 30 * HOUR, 41 * DAY])
    history = (Was(1, 0), Was(9, 1), Was(20, 2))
    most = Revised("[2026-01-02 05:00Z, 06:00Z)", {}, 2, 20, history)
    return Revisions(back, 12, 1, (most,), make_shape(20))


LATENESS = Lateness(count_ages([2 * MINUTE, 40 * MINUTE, 3 * HOUR, 26 * HOUR]), 1)
FACTS = Facts(
    pipeline=PIPELINE,
    watermark_us=make_run(28).watermark_us,
    unfinished=("the backfill of [2026-01-01 00:00Z, 01:00Z)",),
    runs=tuple(map(make_run, range(1, 29))),
    backfills=(Backfilled(3, BEGUN_US, "[2026-01-01 00:00Z, 01:00Z)", Changed(1, 2, 3)),),
    outputs=(
        Output(
            "hourly", "tumbling, 1 hour", 1_104, 31, 30, (("run 28", Changed(5, 3, 0)),),
            make_revisions(),
        ),
        Output(
            "daily", "tumbling, 1 day", 48, 31, None, (), Revisions(count_ages(()), unread="lost")
        ),
    ),
    refusals=(
        Refusal("late", "window closed", 41, 12),
        Refusal("duplicate", "event id accepted before", 336, 0),
        Refusal("quarantined", f"price is {HOSTILE}", 99, 0),
    ),
    lost=(Lost("run 3", "total", 4),),
    validations=(
        make_validation(1, "expect_a(n)"),
        make_validation(2, ""),
        make_validation(28, "rows_add_up"),
    ),
    publishings=(
        Publishing(
            make_publication(1, BEGUN_US + 7 * HOUR, ACCEPTED, "the till was broken"),
            "the till was broken",
        ),
        Publishing(make_publication(27, BEGUN_US + 20 * DAY, VALIDATED), held=("daily",)),
    ),
    alarms=(Raised(3, 9, Alarm("quarantined", "9 of 12 rows were quarantined", 9, holds=True)),),
    lateness=LATENESS,
)  # fmt: skip
SAMPLES = Samples(
    Refused(
        {"late": 1},
        ({"outcome": "late", "shop": SECRET, "id": "i", "event_time": MADE, "run": 3,
          "reason": "window closed"},),
    ),
    (
        FailingRows(
            "hourly", "expect_a(n)",
            Rows(
                ("shop", "window_start", "window_end", "n"),
                ({"shop": SECRET, "window_start": MADE, "window_end": MADE, "n": 0},),
                3,
            ),
        ),
        FailingRows("hourly", "rows_add_up", None),
    ),
)  # fmt: skip
"""What `--samples` adds."""
