"""Paths that are chosen beside what is there."""

from pathlib import Path

from windowing.location import Location
from windowing.storage.files import free_path_beside, has_commit


def test_the_first_free_number_is_taken(tmp_path: Path) -> None:
    for name in ("lake.old-1", "lake.old-2"):
        (tmp_path / name).mkdir()
    assert free_path_beside(tmp_path / "lake", "lake.old-{n}").name == "lake.old-3"


def test_braces_in_the_name_of_a_directory_stay_as_they_are(tmp_path: Path) -> None:
    found = free_path_beside(tmp_path / "a{b}{}c", ".a{b}{}c.reset-{n}")
    assert found.name == ".a{b}{}c.reset-1"


def test_a_log_without_a_commit_is_no_table(tmp_path: Path) -> None:
    table = Location(str(tmp_path / "table"))
    assert not has_commit(table)
    log = table.local / "_delta_log"
    log.mkdir(parents=True)
    (log / "_last_checkpoint").touch()
    assert not has_commit(table)
    (log / f"{7:020}.json").touch()
    assert has_commit(table)
    assert not has_commit(Location(str(log / "_last_checkpoint")))
