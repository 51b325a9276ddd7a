"""Publications name exactly the days that they change, against plain loops. No JVM."""

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from shutil import rmtree
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from jobs.cli.main import main
from jobs.publish import list_publications, publish, repoint_published, roll_back
from tests.support.published_lake import PublishedLake, Window
from windowing.ledger.changed import parse_changed
from windowing.ledger.table import read_history, record_entries
from windowing.storage import row_changes, version_changes
from windowing.storage.kept_open import newest_version

Rows = Mapping[Window, tuple[int, int, int]]
EPOCH = date(1970, 1, 1)


def tell_days(before: Rows, after: Rows) -> list[date]:
    """The days on which windows begin that differ."""
    numbers = {
        hour // 24
        for place, hour in before.keys() | after.keys()
        if before.get((place, hour)) != after.get((place, hour))
    }
    return sorted(EPOCH + timedelta(days=number) for number in numbers)


def named(lake: PublishedLake) -> list[date] | None:
    """The days that the newest publication names; None where it names no output."""
    changed = list_publications(lake.pipeline).found[-1].changed_days
    assert changed is not None
    return list(changed["hourly"].days or ()) if "hourly" in changed else None


def on(day: int, hour: int = 0, place: str = "EWR") -> Window:
    return place, day * 24 + hour


@pytest.fixture
def lake(tmp_path: Path) -> PublishedLake:
    """Days 0 to 9 are published."""
    made = PublishedLake(tmp_path)
    made.run({on(day, hour): 1 for day in range(10) for hour in (0, 23)})
    made.publish()
    return made


def test_a_first_publication_changes_all_that_it_has(lake: PublishedLake) -> None:
    assert named(lake) == [EPOCH + timedelta(days=day) for day in range(10)]


def test_a_late_row_changes_its_day_and_nothing_else(lake: PublishedLake) -> None:
    lake.run({on(3, 7): 1, on(12): 1})
    lake.publish()
    assert named(lake) == [date(1970, 1, 4), date(1970, 1, 13)]
    lake.run({on(3, 23): None})
    lake.publish()
    assert named(lake) == [date(1970, 1, 4)]


def test_what_came_and_went_between_two_publications_is_not_named(lake: PublishedLake) -> None:
    lake.run({on(3, 7): 1, on(5, 7): 1})
    lake.run({on(3, 7): None})
    lake.publish()
    assert named(lake) == [date(1970, 1, 6)]
    lake.run({on(4, 7): 1})
    lake.run({on(4, 7): None})
    lake.publish()
    assert named(lake) is None


def test_the_same_versions_again_change_nothing(lake: PublishedLake) -> None:
    again = lake.publish()
    assert again.changed_days == {}
    assert len(again.changes["hourly"]) == 1


def test_files_that_were_only_compacted_change_nothing(lake: PublishedLake) -> None:
    lake.run({on(3, 7): 1})
    lake.publish()
    DeltaTable(lake.output.text).optimize.compact()
    lake.runs += 1
    lake.close(newest_version(lake.output))
    lake.publish()
    assert named(lake) is None


def test_a_rollback_names_what_it_takes_back(lake: PublishedLake) -> None:
    lake.run({on(3, 7): 1, on(8): 5})
    lake.publish()
    roll_back(lake.pipeline, None, "wrong")
    assert named(lake) == [date(1970, 1, 4), date(1970, 1, 9)]
    past = read_history(lake.pipeline)
    assert past.acceptance is not None and past.acceptance.reason == "tests are no analysts"
    lake.publish()
    assert named(lake) == [date(1970, 1, 4), date(1970, 1, 9)]


def test_what_the_ledger_does_not_name_is_compared_with_what_readers_see(
    lake: PublishedLake,
) -> None:
    past = read_history(lake.pipeline)
    assert past.published is not None
    record_entries(lake.pipeline, past, [replace(past.published, versions={})])
    lake.run({on(3): None, on(3, 23): None, on(5): 2})
    lake.publish()
    assert named(lake) == [date(1970, 1, 4), date(1970, 1, 6)]


def test_an_erasure_names_what_it_took_away(lake: PublishedLake) -> None:
    lake.run({on(2, 23): None})
    past = read_history(lake.pipeline)
    repoint_published(lake.pipeline, past, {"hourly": newest_version(lake.output)})
    assert named(lake) == [date(1970, 1, 3)]


def test_a_publication_of_an_earlier_release_is_followed(lake: PublishedLake) -> None:
    past = read_history(lake.pipeline)
    with patch("jobs.publish.add_to_note", lambda note, _: note):
        lake.run({on(4, 7): 1})
        lake.publish()
    assert list_publications(lake.pipeline).found[-1].changed_days is None
    lake.run({on(5, 7): 1})
    published = lake.publish()
    assert named(lake) == [date(1970, 1, 6)]
    (first, unknown, last) = published.changes["hourly"]
    assert (first.number, unknown.days, len(last.days or ())) == (past.entries[-1].seq, None, 1)


@pytest.mark.parametrize(("left", "days"), [("the published table", 1), ("nothing", 10)])
def test_where_the_version_that_readers_see_is_gone_the_published_table_tells(
    lake: PublishedLake, left: str, days: int
) -> None:
    lake.run({on(0, 0): 7})
    past = read_history(lake.pipeline)
    assert past.published is not None
    lost = {"hourly": 10_000}
    record_entries(lake.pipeline, past, [type(past.published)("publish", run=1, versions=lost)])
    if left == "nothing":
        rmtree(lake.table.local)
    lake.publish()
    assert len(named(lake) or ()) == days


def test_too_many_rows_are_not_compared_but_their_days_are_named(lake: PublishedLake) -> None:
    lake.run({on(3, 23): 2})
    with (
        patch.object(row_changes, "MOST_ROWS", 0),
        patch("windowing.storage.changed_values.find_told_changes", lambda *_: None),
    ):
        lake.publish()
    assert date(1970, 1, 4) in (named(lake) or ())


def test_what_commits_do_not_tell_is_asked_once(
    lake: PublishedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(version_changes, "read_feeds", lambda *words: asked.append(words))
    lake.run({on(3, 23): 2})
    with patch("jobs.publish.show_editions"):
        lake.publish()
    assert (named(lake), len(asked)) == ([date(1970, 1, 4)], 1)


def test_the_command_says_it(lake: PublishedLake) -> None:
    lake.run({on(3, 7): 1, on(4): 3, on(7): 2})
    line = ["publish", str(lake.spec), "--accept", "tests are no analysts"]
    printed = CliRunner().invoke(main, line, prog_name="tidemark")
    assert "changed days: 1970-01-04 to 1970-01-05, 1970-01-08" in printed.output


def test_the_pointer_has_no_history(lake: PublishedLake) -> None:
    text = (lake.pipeline.table("_published.json")).local.read_text()
    assert "changed_days" not in text and "changes" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.deep) for n in range(1, 9))]
)
def test_random_schedules(seed: int, tmp_path: Path) -> None:
    """Runs of few or many changes, some of them published, some rolled back."""
    drawn, lake = random.Random(seed), PublishedLake(tmp_path)
    shown: dict[Window, tuple[int, int, int]] = {}
    before: dict[Window, tuple[int, int, int]] = {}
    for _ in range(25):
        counts: dict[Window, int | None] = {}
        for _ in range(drawn.choice((1, 2, 5, 30))):
            window = on(drawn.randrange(40), drawn.randrange(24), drawn.choice("AB"))
            is_gone = window in lake.rows and drawn.random() < 0.4
            counts[window] = None if is_gone else drawn.randrange(9)
        lake.run(counts)
        if drawn.random() < 0.15:
            DeltaTable(lake.output.text).optimize.compact()
            lake.close(newest_version(lake.output))
        if drawn.random() < 0.7:
            lake.publish()
            assert (named(lake) or []) == tell_days(shown, lake.rows)
            before, shown = shown, dict(lake.rows)
            if before and drawn.random() < 0.2 and before != shown:
                roll_back(lake.pipeline, None, "drawn")
                assert (named(lake) or []) == tell_days(shown, before)
                before, shown = shown, before
    changed = parse_changed(read_history(lake.pipeline).publications[0].note)
    assert changed is not None
    assert publish(lake.pipeline, "the end").number is not None
