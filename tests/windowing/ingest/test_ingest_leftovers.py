"""What killed ingests were writing is deleted, and nothing else."""

from pathlib import Path

from windowing.ingest.table import drop_leftovers, home_of, read_record
from windowing.location import Location
from windowing.storage.store import name_draft


def test_files_without_a_name_of_their_own_are_deleted(tmp_path: Path) -> None:
    table = Location(str(tmp_path / "trips"))
    home = home_of(table).local
    for name in ("files", "quarantine"):
        (home / name / "_delta_log").mkdir(parents=True)
        (home / name / "staged-1" / "_temporary").mkdir(parents=True)
        (home / name / "part-0.parquet").touch()
        (home / name / name_draft()).touch()
        (home / name / "_delta_log" / name_draft()).touch()
    (tmp_path / "trips" / name_draft()).touch()
    drop_leftovers(table)
    left = sorted(file.relative_to(home).as_posix() for file in home.rglob("*") if file.is_file())
    assert left == ["files/part-0.parquet", "quarantine/part-0.parquet"]
    assert len([*(tmp_path / "trips").glob(".*")]) == 1, "the source table belongs to its user"
    assert not [*home.rglob("staged-1")]
    assert read_record(Location(str(tmp_path / "nowhere"))).batch == 0
    drop_leftovers(Location(str(tmp_path / "nowhere")))
