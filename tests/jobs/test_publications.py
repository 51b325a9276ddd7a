"""Publications by their numbers: listed, published again, and compared. No JVM."""

import errno
import json
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from shutil import copy, copytree, rmtree
from typing import Any

import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable

from jobs.cli.main import main
from jobs.diagnosis.pointer import POINTER, read_pointer
from jobs.publication.editions import drop_outdated_of_left
from jobs.publish import publish, rebuild_pointer, repoint_published, roll_back
from jobs.reset import holding, reset
from tests.support.long_lived_pipeline import Crasher, ends_at
from tests.support.met_expectations import record_met
from tests.support.published_lake import COLUMNS, IDENTITY, PublishedLake
from tests.support.published_readers import open_delta, read_feed, tell_difference
from windowing.doctor.rule import of_pointer
from windowing.errors import StateRefused, UsageError
from windowing.ledger.history import until_own_publication
from windowing.ledger.rule import (
    CLOSE,
    ERASE_DONE,
    ERASE_INTENT,
    EVOLVE_DONE,
    PUBLISH,
    LedgerEntry,
)
from windowing.ledger.table import read_history, record_entries
from windowing.location import Location
from windowing.merge.rule import published_name
from windowing.storage import control


@pytest.fixture
def lake(tmp_path: Path) -> PublishedLake:
    """Three runs, each of them published."""
    made = PublishedLake(tmp_path)
    made.run({("EWR", 1): 1, ("JFK", 1): 5})
    made.publish()
    made.run({("EWR", 1): 2, ("EWR", 2): 7})
    made.publish()
    made.run({("JFK", 1): None, ("EWR", 2): 8})
    made.publish()
    return made


def numbers(lake: PublishedLake) -> list[int]:
    """The numbers of all publications."""
    entries = read_history(lake.pipeline).entries
    return [entry.seq for entry in entries if entry.step == PUBLISH]


def tidemark(command: str, lake: PublishedLake, *words: str, code: int = 0) -> Result:
    """What `tidemark COMMAND SPEC WORDS` printed; it ended with `code`."""
    line = [command, str(lake.spec), *words]
    result = CliRunner().invoke(main, line, prog_name="tidemark")
    assert result.exit_code == code, result.output
    return result


def answer(command: str, lake: PublishedLake, *words: str) -> dict[str, Any]:
    """What it printed as JSON."""
    found: dict[str, Any] = json.loads(tidemark(command, lake, *words, "--json").stdout)
    return found


def test_the_table_shows_what_was_published_and_nothing_newer(lake: PublishedLake) -> None:
    shown = lake.newest
    assert lake.read() == shown
    lake.run({("EWR", 1): 9})
    assert lake.read() == shown
    lake.publish()
    assert lake.read() == lake.newest
    assert open_delta(lake.table).version() == 3


def test_the_pointer_has_time_and_watermark(lake: PublishedLake) -> None:
    pointer = json.loads(lake.pipeline.table(POINTER).local.read_text())
    entry = read_history(lake.pipeline).published
    assert entry is not None
    assert (pointer["seq"], pointer["publication"]) == (entry.seq, entry.seq)
    assert pointer["at"] == pointer["outputs"]["hourly"]["at"]
    hour = "1970-01-01T03:00:00+00:00"
    assert (pointer["watermark"], pointer["outputs"]["hourly"]["watermark"]) == (hour, hour)


def test_publications_are_listed(lake: PublishedLake) -> None:
    found = answer("publish", lake, "--list")["publications"]
    assert [each["publication"] for each in found] == numbers(lake)
    assert [each["run"] for each in found] == [1, 2, 3]
    assert [each["watermark"][11:13] for each in found] == ["01", "02", "03"]
    assert [each["outputs"] for each in found] == [{"hourly": n} for n in (1, 2, 3)]
    assert {each["cause"] for each in found} == {"accepted"}
    printed = tidemark("publish", lake, "--list").stdout
    assert "accepted: tests are no analysts" in printed


def test_before_the_first_publication_there_is_none(tmp_path: Path) -> None:
    made = PublishedLake(tmp_path)
    assert answer("publish", made, "--list") == {"publications": []}
    assert "nothing is published yet" in tidemark("publish", made, "--list").stdout
    made.run({("EWR", 1): 1})
    wrong = tidemark("publish", made, "--rollback", "--reason", "x", code=2).stderr
    assert "nothing is published yet" in wrong
    assert "nothing is published yet" in tidemark("diff", made, code=2).stderr
    assert not made.table.local.exists()


def test_a_second_publication_says_that_nothing_was_new(lake: PublishedLake) -> None:
    before = answer("publish", lake, "--list")
    printed = tidemark("publish", lake).stdout
    name = lake.pipeline.name
    assert printed == f"{name}: nothing was new to publish, because readers see run 3 already\n"
    again = answer("publish", lake)
    assert (again["changed"], again["publication"]) == (False, numbers(lake)[-1])
    assert set(again["outputs"]) == {"hourly"}
    assert answer("publish", lake, "--list") == before
    assert answer("publish", lake, "--accept", "an odd day")["changed"] is True


def test_an_earlier_publication_is_published_again(lake: PublishedLake) -> None:
    first, second, third = numbers(lake)
    before, since = lake.read(), open_delta(lake.table).version()
    done = answer("publish", lake, "--rollback", str(first), "--reason", "wrong fares")
    assert (done["rolled_back_to"], done["changed"], done["run"]) == (first, True, 1)
    assert [(row["place"], row["n"]) for row in lake.read()] == [("EWR", 1), ("JFK", 5)]
    feed = sorted(map(sorted_items, read_feed(lake.table, since)))
    due = tell_difference(before, lake.read(), IDENTITY)
    assert feed == sorted(map(sorted_items, due))
    (*_, last) = answer("publish", lake, "--list")["publications"]
    assert (last["cause"], last["reason"]) == ("rollback", "wrong fares")
    assert (last["rolled_back_to"], last["run"]) == (first, 1)
    assert last["publication"] > third > second
    assert lake.publish().run == 3
    assert lake.read() == lake.newest


def sorted_items(row: Any) -> str:
    return repr(sorted(row.items()))


def test_without_a_number_it_is_the_last_one_that_differs(lake: PublishedLake) -> None:
    lake.publish()
    done = answer("publish", lake, "--rollback", "--reason", "wrong fares")
    assert done["rolled_back_to"] == numbers(lake)[1]
    assert done["outputs"]["hourly"]["rows"] == 3


def test_versions_of_other_tables_do_not_count(lake: PublishedLake) -> None:
    past = read_history(lake.pipeline)
    now = past.published
    assert now is not None
    again = replace(now, run=4, versions={**now.versions, "_seen": 7, "left": 2})
    record_entries(lake.pipeline, past, [again])
    *_, second, third, fourth = numbers(lake)
    same = roll_back(lake.pipeline, third, "wrong fares")
    assert (same.is_new, same.publication.run) == (False, 4)
    assert numbers(lake)[-1] == fourth
    assert roll_back(lake.pipeline, None, "wrong fares").to == second


def test_a_rollback_to_what_readers_see_records_nothing(lake: PublishedLake) -> None:
    newest = numbers(lake)[-1]
    done = answer("publish", lake, "--rollback", str(newest), "--reason", "sure")
    assert not done["changed"]
    assert numbers(lake)[-1] == newest
    words = ("--rollback", str(newest), "--reason", "sure")
    assert "nothing was recorded" in tidemark("publish", lake, *words).stdout


@pytest.mark.parametrize("place", ["publish.noted", "publish.shared", "publish.shown"])
def test_a_rollback_that_ends_anywhere_is_finished_when_it_is_repeated(
    lake: PublishedLake, place: str
) -> None:
    first = numbers(lake)[0]
    ends_at(Crasher(place), lambda: roll_back(lake.pipeline, first, "wrong fares"))
    assert roll_back(lake.pipeline, first, "wrong fares").is_new, "readers saw others"
    assert not roll_back(lake.pipeline, first, "wrong fares").is_new
    assert len(numbers(lake)) == 4
    assert [(row["place"], row["n"]) for row in lake.read()] == [("EWR", 1), ("JFK", 5)]
    assert open_delta(lake.table).version() == 3


@pytest.mark.parametrize("place", ["publish.noted", "publish.shared", "publish.shown"])
def test_one_without_a_number_goes_on_to_where_it_was_going(
    lake: PublishedLake, place: str
) -> None:
    ends_at(Crasher(place), lambda: roll_back(lake.pipeline, None, "wrong fares"))
    done = roll_back(lake.pipeline, None, "wrong fares")
    assert (done.to, done.is_new) == (numbers(lake)[1], True)
    assert len(numbers(lake)) == 4
    assert {(row["place"], row["n"]) for row in lake.read()} == {("EWR", 2), ("EWR", 7), ("JFK", 5)}
    assert roll_back(lake.pipeline, None, "wrong again").to == numbers(lake)[2]


def test_an_output_that_the_earlier_publication_did_not_have_stays(lake: PublishedLake) -> None:
    text = lake.spec.read_text()
    lake.spec.write_text(
        text.replace("windows:", "windows:\n  daily: {kind: tumbling, size: 1 day}")
    )
    copytree(lake.output.local, lake.pipeline.table("daily").local)
    record_entries(
        lake.pipeline,
        read_history(lake.pipeline),
        [LedgerEntry(CLOSE, run=4, at=1, watermark_out=1, versions={"hourly": 2, "daily": 3})],
    )
    record_met(lake.pipeline)
    lake.publish()
    first = numbers(lake)[0]
    words = ("--rollback", str(first), "--reason", "wrong fares")
    printed = tidemark("publish", lake, *words).stdout
    assert f"daily stays as it is, because publication {first} did not have it" in printed
    seen = read_history(lake.pipeline)
    published = seen.published
    assert published is not None
    assert published.versions == {"hourly": 1, "daily": 3}
    assert (seen.run_shown("hourly"), seen.run_shown("daily")) == (1, 4)
    again = answer("publish", lake, *words)
    assert (again["changed"], again["kept"]) == (False, ["daily"])
    assert roll_back(lake.pipeline, None, "wrong fares").kept == ()


def test_a_publication_behind_an_interrupted_erasure_is_its_own(lake: PublishedLake) -> None:
    past = read_history(lake.pipeline)
    now = past.published
    assert now is not None
    begun = LedgerEntry(ERASE_INTENT, run=3, at=1)
    done = LedgerEntry(ERASE_DONE, run=3, at=2, versions=now.versions)
    record_entries(lake.pipeline, past, [begun, now, begun, now, done, now])
    found = answer("publish", lake, "--list")["publications"]
    causes = [each["cause"] for each in found[2:]]
    assert causes == ["accepted", "accepted", "erasure", "accepted"]
    assert found[4]["reason"] is None


def test_an_interrupted_erasure_is_the_cause_of_its_publication(lake: PublishedLake) -> None:
    past = read_history(lake.pipeline)
    assert past.published is not None
    past = record_entries(lake.pipeline, past, [LedgerEntry(ERASE_INTENT, run=3, at=1)])
    past = repoint_published(lake.pipeline, past, past.published.versions)
    assert until_own_publication(past).next_seq == past.next_seq - 2
    last = answer("publish", lake, "--list")["publications"][-1]
    assert (last["cause"], last["reason"]) == ("erasure", None)
    assert past.acceptance is not None, "readers still see what was accepted"


def test_a_publication_that_ends_anywhere_is_finished_by_the_next(lake: PublishedLake) -> None:
    for n, place in enumerate(("publish.noted", "publish.shared", "publish.shown")):
        lake.run({("EWR", 1): 10 + n})
        ends_at(Crasher(place), lake.publish)
        publish(lake.pipeline)
        assert lake.read() == lake.newest, place
        assert open_delta(lake.table).version() == 3 + n, place


@pytest.mark.parametrize("step", [ERASE_DONE, ERASE_INTENT, EVOLVE_DONE])
def test_what_was_erased_or_respecified_is_not_undone(lake: PublishedLake, step: str) -> None:
    past = read_history(lake.pipeline)
    after = LedgerEntry(step, run=3, at=1, versions={"hourly": 3})
    record_entries(lake.pipeline, past, [after])
    refused = "can't be published again, because .*; none of before can"
    with pytest.raises(UsageError, match=f"{refused}, so repair the rows in the source"):
        roll_back(lake.pipeline, numbers(lake)[0], "wrong fares")


def test_what_can_be_published_again_is_named_where_another_can_not(lake: PublishedLake) -> None:
    first = numbers(lake)[0]
    after = LedgerEntry(EVOLVE_DONE, run=3, at=1, versions={"hourly": 3})
    record_entries(lake.pipeline, read_history(lake.pipeline), [after])
    lake.run({("EWR", 1): 11})
    lake.publish()
    lake.run({("EWR", 1): 12})
    lake.publish()
    since = numbers(lake)[3]
    with pytest.raises(UsageError, match=rf"; {since} can be: `tidemark publish \S+ --rollback "):
        roll_back(lake.pipeline, first, "wrong fares")


def test_what_an_erasure_has_left_is_published_again(lake: PublishedLake) -> None:
    past = read_history(lake.pipeline)
    now = past.published
    assert now is not None
    begun = LedgerEntry(ERASE_INTENT, run=3, at=1)
    erased = [begun, begun, now, now, LedgerEntry(ERASE_DONE, run=3, at=2, versions=now.versions)]
    record_entries(lake.pipeline, past, erased)
    *_, before, resumed, clean = numbers(lake)
    lake.run({("EWR", 1): 666})
    lake.publish()
    for number in (before, resumed):
        with pytest.raises(UsageError, match="because rows were erased since then"):
            roll_back(lake.pipeline, number, "wrong fares")
    assert roll_back(lake.pipeline, clean, "wrong fares").is_new
    record_entries(lake.pipeline, read_history(lake.pipeline), [begun])
    with pytest.raises(UsageError, match="because rows were erased since then"):
        roll_back(lake.pipeline, clean, "wrong fares")


def test_a_version_whose_files_are_gone_is_not_published_again(lake: PublishedLake) -> None:
    for file in lake.output.local.glob("*.parquet"):
        file.unlink()
    with pytest.raises(UsageError, match=r"files of hourly, version 1, were deleted"):
        roll_back(lake.pipeline, numbers(lake)[0], "wrong fares")
    assert lake.read() == lake.newest, "what readers see lies elsewhere"


def test_a_version_that_maintenance_may_delete_is_not_published_again(lake: PublishedLake) -> None:
    first, second, _ = numbers(lake)
    age_commit(lake, 2, timedelta(days=8))
    with pytest.raises(UsageError, match=r"maintenance may delete files of hourly, version 1"):
        roll_back(lake.pipeline, first, "wrong fares")
    assert roll_back(lake.pipeline, second, "wrong fares").is_new
    longer = {"delta.deletedFileRetentionDuration": "interval 2 weeks"}
    DeltaTable(lake.output.text).alter.set_table_properties(longer)
    assert roll_back(lake.pipeline, first, "wrong fares").is_new
    age_commit(lake, 2, timedelta(days=8))
    assert not roll_back(lake.pipeline, first, "wrong fares").is_new, "maintenance keeps it"


def test_a_version_of_which_the_newest_has_all_files_stays(tmp_path: Path) -> None:
    made = PublishedLake(tmp_path)
    for hour in range(2):
        made.run({("EWR", hour): 1})
        made.publish()
    age_commit(made, 2, timedelta(days=800))
    assert roll_back(made.pipeline, numbers(made)[0], "wrong fares").is_new


def age_commit(lake: PublishedLake, version: int, age: timedelta) -> None:
    """A version of the output seems to have been written that long ago."""
    commit = lake.output.local / "_delta_log" / f"{version:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["timestamp"] -= int(age.total_seconds() * 1000)
    commit.write_text("\n".join(map(json.dumps, lines)))


def test_a_file_that_an_output_has_lost_is_no_fault_of_its_published_table(
    lake: PublishedLake,
) -> None:
    seen = lake.read()
    before = {file.name for file in lake.output.local.glob("*.parquet")}
    lake.run({("EWR", 1): 9})
    for file in lake.output.local.glob("*.parquet"):
        if file.name not in before:
            file.unlink()
    with pytest.raises(StateRefused) as refused:
        lake.publish()
    assert f"{lake.output} is damaged or has lost files; restore it" in str(refused.value)
    assert "published" not in str(refused.value).split(";")[0]
    assert lake.read() == seen


def test_a_damaged_published_table_is_moved_out_and_made_again(lake: PublishedLake) -> None:
    (lake.table.local / "_delta_log" / f"{0:020}.json").write_text("{")
    with pytest.raises(StateRefused) as refused:
        publish(lake.pipeline)
    assert f"move it out of {lake.pipeline.root}, and" in str(refused.value)
    lake.table.local.rename(lake.home / "hourly.bad")
    publish(lake.pipeline)
    assert lake.read() == lake.newest


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("--rollback", "1"), "--rollback needs --reason"),
        (("--rollback", "1", "--reason", " "), "--rollback needs --reason"),
        (("--reason", "x"), "--reason belongs to --rollback"),
        (("--list", "--accept", "x"), "give one of"),
        (("--rollback", "--list", "--reason", "x"), "give one of"),
        (("--rollback", "77", "--reason", "x"), "no publication 77; the last ones are 2, 5, 8"),
    ],
)
def test_wrong_options_are_told(lake: PublishedLake, words: tuple[str, ...], wrong: str) -> None:
    assert wrong in tidemark("publish", lake, *words, code=2).stderr


def test_a_diff_tells_what_differs(lake: PublishedLake) -> None:
    first, _, third = map(str, numbers(lake))
    found = answer("diff", lake, "--from", first, "--to", third)
    assert (found["from"]["publication"], found["to"]["publication"]) == (int(first), int(third))
    hourly = found["windows"]["hourly"]
    assert (hourly["inserted"], hourly["updated"], hourly["deleted"]) == (1, 1, 1)
    seen = [
        (
            row["change"],
            (row["after"] or row["before"])["place"],
            n_of(row["before"]),
            n_of(row["after"]),
        )
        for row in hourly["rows"]
    ]
    assert seen == [
        ("updated", "EWR", 1, 2),
        ("deleted", "JFK", 5, None),
        ("inserted", "EWR", None, 8),
    ]
    assert set(hourly["rows"][0]["after"]) == {*COLUMNS.names} - {"revision", "run"}
    backwards = answer("diff", lake, "--from", third, "--to", first)["windows"]["hourly"]
    changes = [row["change"] for row in backwards["rows"]]
    assert changes == ["updated", "inserted", "deleted"]
    printed = tidemark("diff", lake, "--from", first, "--to", third, "--limit", "1").stdout
    assert "1 → 2" in printed
    assert "1 of 3 rows; --limit shows more" in printed


def n_of(row: dict[str, Any] | None) -> int | None:
    return None if row is None else int(row["n"])


def test_a_diff_is_that_since_the_last_publication(lake: PublishedLake) -> None:
    assert "hourly: no row differs" in tidemark("diff", lake).stdout
    lake.run({("EWR", 1): 3})
    lake.run({("EWR", 1): 2, ("LGA", 5): 1})
    found = answer("diff", lake)
    assert found["to"] == {
        "publication": None,
        "run": 5,
        "at": "1970-01-01T05:00:00+00:00",
        "watermark": "1970-01-01T05:00:00+00:00",
    }
    hourly = found["windows"]["hourly"]
    assert (hourly["inserted"], hourly["updated"], hourly["deleted"]) == (1, 0, 0)


def test_a_diff_reads_files_where_commits_are_gone(lake: PublishedLake) -> None:
    first, _, third = map(str, numbers(lake))
    told = answer("diff", lake, "--from", first, "--to", third)
    for file in (lake.output.local / "_change_data").iterdir():
        file.unlink()
    assert answer("diff", lake, "--from", first, "--to", third) == told
    for file in lake.output.local.glob("*.parquet"):
        file.unlink()
    wrong = tidemark("diff", lake, "--from", first, code=2).stderr
    assert "name later publications" in wrong


def test_a_reset_deletes_published_tables_with_the_others(lake: PublishedLake) -> None:
    assert "published/hourly" in holding(lake.pipeline).tables
    assert not holding(lake.pipeline).others
    assert "published/hourly" in reset(lake.pipeline).tables
    assert not lake.pipeline.root.local.exists()


def test_an_edited_pointer_is_found(lake: PublishedLake) -> None:
    pointer = lake.pipeline.table(POINTER).local
    said = json.loads(pointer.read_text())
    said["outputs"]["hourly"]["version"] = 1
    pointer.write_text(json.dumps(said))
    pointed, past = read_pointer(lake.pipeline), read_history(lake.pipeline)
    (found,) = of_pointer(pointed.step, pointed.versions, past)
    assert found.code == "POINTER_CHANGED"
    rebuild_pointer(lake.pipeline, past)
    pointed = read_pointer(lake.pipeline)
    assert not [*of_pointer(pointed.step, pointed.versions, past)]


@dataclass(frozen=True)
class Left:
    """A window that the spec has no more, with the rows, versions and publications of `hourly`."""

    lake: PublishedLake

    def __post_init__(self) -> None:
        for source, target in ((self.lake.output, self.output), (self.lake.table, self.table)):
            copytree(source.local, target.local)

    @property
    def output(self) -> Location:
        """What was its output."""
        return self.lake.pipeline.table("left")

    @property
    def table(self) -> Location:
        """Its published table."""
        return self.lake.pipeline.table(published_name("left"))

    def forget(self) -> None:
        """What an erasure of EWR does to the output and readers."""
        DeltaTable(self.output.text).delete("place = 'EWR'")
        past = read_history(self.lake.pipeline)
        repoint_published(self.lake.pipeline, past, {"hourly": 3})


def test_a_left_window_is_erased_from_with_its_output(lake: PublishedLake) -> None:
    left = Left(lake)
    assert not drop_outdated_of_left(lake.pipeline)
    left.forget()
    assert not open_delta(left.table).to_pyarrow_table().num_rows
    assert lake.read() == lake.newest


def test_rows_of_a_left_window_that_were_never_published_are_not_shown(lake: PublishedLake) -> None:
    left = Left(lake)
    DeltaTable(left.output.text).update(predicate="place = 'EWR'", new_values={"n": 666})
    assert drop_outdated_of_left(lake.pipeline) == ("left",)
    left.forget()
    assert not left.table.local.exists()
    assert left.output.local.exists()


def test_a_left_window_whose_files_were_compacted_is_shown_on(lake: PublishedLake) -> None:
    lake.run({("LGA", 5): 1})
    lake.publish()
    left = Left(lake)
    opened = DeltaTable(left.output.text)
    assert opened.optimize.compact()["numFilesRemoved"] == 2
    opened = DeltaTable(left.output.text)
    opened.create_checkpoint()
    for commit in (left.output.local / "_delta_log").glob("*.json"):
        if int(commit.stem) < opened.version():
            commit.unlink()
    assert not drop_outdated_of_left(lake.pipeline)
    left.forget()
    assert {row["place"] for row in open_delta(left.table).to_pyarrow_table().to_pylist()} == {
        "LGA"
    }


def test_a_damaged_table_of_a_left_window_is_deleted(lake: PublishedLake) -> None:
    left = Left(lake)
    (left.table.local / "_delta_log" / f"{0:020}.json").write_text("{")
    assert drop_outdated_of_left(lake.pipeline) == ("left",)
    assert not left.table.local.exists()


def test_what_a_storage_does_not_answer_is_no_damage(
    lake: PublishedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = Left(lake)
    opens = control.open_delta

    def answers_elsewhere(path: Location, version: int | None = None) -> DeltaTable:
        if path in (left.table, lake.table):
            raise OSError(errno.EIO, "no answer")
        return opens(path, version)

    lake.run({("EWR", 3): 1})
    monkeypatch.setattr(control, "open_delta", answers_elsewhere)
    with pytest.raises(OSError, match="Input/output error"):
        drop_outdated_of_left(lake.pipeline)
    with pytest.raises(OSError, match="Input/output error"):
        lake.publish()
    monkeypatch.undo()
    assert left.table.local.exists()
    lake.publish()
    assert lake.read() == lake.newest


def test_no_publication_has_the_number_0(lake: PublishedLake) -> None:
    words = ("--rollback", "0", "--reason", "wrong fares")
    assert "has no publication 0" in tidemark("publish", lake, *words, code=2).output
    assert len(numbers(lake)) == 3


@pytest.mark.parametrize("lost", ["_delta_log", "."])
def test_nothing_is_left_of_a_window_without_an_output(lake: PublishedLake, lost: str) -> None:
    left = Left(lake)
    rmtree(left.output.local)
    half = left.table.parent / "half" / "part-0.parquet"
    half.local.parent.mkdir()
    copy(next(left.table.local.glob("*.parquet")), half.local)
    (left.table.parent / "notes.txt").local.touch()
    if lost != ".":
        rmtree(left.table.local / lost)
    assert drop_outdated_of_left(lake.pipeline) == ("half", "left")
    assert sorted(left.table.parent.local.iterdir()) == [
        lake.table.local,
        left.table.parent.local / "notes.txt",
    ]
    assert lake.read() == lake.newest


def test_outputs_that_one_side_lacks_are_named(lake: PublishedLake) -> None:
    text = lake.spec.read_text()
    lake.spec.write_text(
        text.replace("windows:", "windows:\n  daily: {kind: tumbling, size: 1 day}")
    )
    closed = LedgerEntry(CLOSE, run=4, at=1, watermark_out=1, versions={"hourly": 3, "daily": 3})
    record_entries(lake.pipeline, read_history(lake.pipeline), [closed])
    said = tidemark("diff", lake).stdout
    assert "daily: every row is new, because this output is not in publication" in said
    found = answer("diff", lake)
    assert (found["added"], found["removed"], [*found["windows"]]) == (["daily"], [], ["hourly"])
