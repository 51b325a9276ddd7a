"""How much of the rules tests without a JVM reach, against the floors in pyproject.toml.

python -m tests.support.coverage_floors      after `pytest --cov`, in the same directory
"""

import io
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from math import floor
from pathlib import Path

from coverage import Coverage


@dataclass(frozen=True)
class Reached:
    """What tests reach of some files: whole percent of lines and branches, rounded down."""

    files: str
    percent: int
    least: int

    @property
    def is_too_little(self) -> bool:
        """Whether it is below the floor."""
        return self.percent < self.least

    @property
    def verdict(self) -> str:
        """What is to be done; nothing where the floor is what is reached."""
        if self.is_too_little:
            return "below its floor: tests without a JVM have to reach more of it"
        if self.percent > self.least:
            return f"its floor can rise to {self.percent}"
        return ""


def read_floors(settings: Path) -> Mapping[str, int]:
    """Pattern of files -> their floor in percent."""
    floors: Mapping[str, int]
    floors = tomllib.loads(settings.read_text())["tool"]["coverage-floors"]
    return floors


def measure_groups(measured: Coverage, floors: Mapping[str, int]) -> list[Reached]:
    """What was reached of the files of each floor; NoDataError where there are none."""
    groups = []
    for files, least in floors.items():
        percent = measured.report(include=[files], file=io.StringIO())
        groups.append(Reached(files, floor(percent), least))
    return groups


def main() -> int:
    """Prints a line for each floor; 1 if one of them is not reached, else 0."""
    measured = Coverage()
    measured.load()
    groups = measure_groups(measured, read_floors(Path("pyproject.toml")))
    print(f"{'reached without a JVM, % of lines and branches':<48}{'floor':>6}")
    for group in groups:
        print(f"{group.files:<43}{group.percent:>5}{group.least:>6}  {group.verdict}".rstrip())
    return int(any(group.is_too_little for group in groups))


if __name__ == "__main__":
    sys.exit(main())
