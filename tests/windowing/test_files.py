"""Paths that are chosen beside what is there."""

from pathlib import Path

from windowing.files import free_path_beside


def test_the_first_free_number_is_taken(tmp_path: Path) -> None:
    for name in ("lake.old-1", "lake.old-2"):
        (tmp_path / name).mkdir()
    assert free_path_beside(tmp_path / "lake", "lake.old-{n}").name == "lake.old-3"


def test_braces_in_the_name_of_a_directory_stay_as_they_are(tmp_path: Path) -> None:
    found = free_path_beside(tmp_path / "a{b}{}c", ".a{b}{}c.reset-{n}")
    assert found.name == ".a{b}{}c.reset-1"
