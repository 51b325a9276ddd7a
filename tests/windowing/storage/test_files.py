"""What the log of a table shows without reading the table."""

from pathlib import Path

from windowing.location import Location
from windowing.storage.files import has_commit


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
