"""Floors of what tests reach without a JVM: what is measured, what fails, and what has a floor."""

from fnmatch import fnmatch
from pathlib import Path

import pytest
from coverage import Coverage, CoverageData
from coverage.exceptions import NoDataError

from tests.support.coverage_floors import Reached, main, measure_groups, read_floors

ROOT = Path(__file__).parents[1]
SAMPLE = """\
def absolute(n):
    if n < 0:
        return -n
    return n
"""
POSITIVE = [(-1, 1), (1, -1), (-1, 2), (2, 4), (4, -1)]
"""The jumps from line to line of a call with a number that is not below zero."""
SETTINGS = """\
[tool.coverage.run]
branch = true
[tool.coverage-floors]
"sample.py" = {floor}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which one call of SAMPLE was measured."""
    monkeypatch.chdir(tmp_path)
    sample = tmp_path / "sample.py"
    sample.write_text(SAMPLE)
    data = CoverageData()
    data.add_arcs({str(sample): POSITIVE})
    data.write()
    return tmp_path


@pytest.mark.parametrize(
    ("floor", "code", "verdict"),
    [
        (65, 0, "its floor can rise to 66"),
        (66, 0, "66    66"),
        (67, 1, "below its floor: tests without a JVM have to reach more of it"),
    ],
)
def test_three_of_four_lines_and_one_of_two_branches_are_66_percent(
    floor: int, code: int, verdict: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "pyproject.toml").write_text(SETTINGS.format(floor=floor))
    assert main() == code
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("sample.py ")
    assert line.endswith(verdict)


def test_each_group_is_measured_by_itself(home: Path) -> None:
    (home / "other.py").write_text("x = 1\n")
    (home / "pyproject.toml").write_text(SETTINGS.format(floor=0))
    data = CoverageData()
    data.read()
    data.add_arcs({str(home / "other.py"): [(-1, 1), (1, -1)]})
    data.write()
    measured = Coverage()
    measured.load()
    assert measure_groups(measured, {"sample.py": 0, "other.py": 100}) == [
        Reached("sample.py", 66, 0),
        Reached("other.py", 100, 100),
    ]
    with pytest.raises(NoDataError):
        measure_groups(measured, {"moved.py": 0})


def test_the_spec_the_diagnosis_and_every_rule_have_a_floor() -> None:
    floors = read_floors(ROOT / "pyproject.toml")
    rules = [path.relative_to(ROOT) for path in (ROOT / "windowing").rglob("rule.py")]
    spec = [path.relative_to(ROOT) for path in (ROOT / "windowing/spec").rglob("*.py")]
    for path in (*rules, *spec):
        assert any(fnmatch(path.as_posix(), files) for files in floors), path
