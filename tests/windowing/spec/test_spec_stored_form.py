"""Digests that live pipelines keep.

They stay what they are whatever happens to the Python around them.
"""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.windowing.spec.kept_specs import kept
from windowing.grid.rule import Grid
from windowing.spec import kinds, pipeline
from windowing.spec.description import describe_window
from windowing.spec.fingerprint import parts, parts_like
from windowing.spec.stored_form import STORED, default_of, describe_stored_form, stored_name

PROJECT = Path(__file__).parents[3]
DATA = PROJECT / "tests" / "data"
OF_0_1 = json.loads((DATA / "digests-0.1.json").read_text())
OF_TODAY = json.loads((DATA / "digests-2.json").read_text())
KEPT_FIELDS = json.loads((DATA / "stored-fields.json").read_text())
PIPELINES = kept()
WINDOWS = [window for found in PIPELINES.values() for window in found.windows]


@pytest.mark.parametrize("name", PIPELINES)
def test_digests_are_those_that_live_pipelines_have_stored(name: str) -> None:
    assert parts(PIPELINES[name]) == OF_TODAY[name]


@pytest.mark.parametrize("name", PIPELINES)
def test_digests_of_release_0_1_are_still_understood(name: str) -> None:
    assert parts_like(OF_0_1[name], PIPELINES[name]) == OF_0_1[name]


def test_the_kept_specs_hold_every_kind_every_aggregate_and_every_field() -> None:
    windows = [w for p in PIPELINES.values() for w in p.windows]
    assert {type(w) for w in windows} == set(get_args(kinds.Window))
    sources, marks = (
        [p.source for p in PIPELINES.values()],
        [p.watermark for p in PIPELINES.values()],
    )
    aggregates = [a for w in windows for a in w.aggregates]
    for some in (sources, marks, aggregates, [w.shown for w in windows]):
        for each in fields(some[0]):
            assert (
                len({repr(getattr(value, each.name)) for value in some}) > 1 or each.name == "table"
            ), each.name


CLASSES: dict[str, type] = {
    **{describe_window(window).kind: type(window) for window in WINDOWS},
    "grid": Grid,
    "aggregate": kinds.Aggregate,
    "expression": kinds.Expression,
    "having": kinds.Having,
    "shown": kinds.OutputPolicy,
    "event_time": pipeline.EventTime,
    "source": pipeline.Source,
    "watermark": pipeline.Watermark,
}
REQUIRED = "required"


def stored_fields() -> dict[str, dict[str, str]]:
    """By class the stored names of its fields, each with its default."""
    return {
        name: {stored_name(f): _default(f) for f in fields(cls)} for name, cls in CLASSES.items()
    }


def _default(one: "Field[Any]") -> str:
    return REQUIRED if default_of(one) is MISSING else repr(describe_stored_form(default_of(one)))


@pytest.mark.parametrize("name", CLASSES)
def test_stored_names_and_defaults_are_what_they_always_were(name: str) -> None:
    """A field that is renamed keeps its old name as metadata, one that is added has a default."""
    now, always = stored_fields()[name], KEPT_FIELDS[name]
    assert {field_name: now.get(field_name) for field_name in always} == always
    assert REQUIRED not in [
        default for field_name, default in now.items() if field_name not in always
    ]


@dataclass(frozen=True)
class Renamed:
    """A field under another name than it had."""

    delay: int = field(metadata={STORED: "delay_us"})


def test_a_renamed_field_is_stored_under_its_old_name() -> None:
    assert describe_stored_form(Renamed(7)) == {"delay_us": 7}


ADDED = {
    "windowing/spec/pipeline.py": (
        r"(idle_after_us: int \| None = None\n)",
        r"\1    extra: str | None = None\n",
    ),
    "windowing/spec/kinds.py": (
        r"(where: Expression \| None = None\n)",
        r"\1    extra: str | None = None\n",
    ),
}
PROGRAM = """
import json
from tests.windowing.spec.kept_specs import kept
from windowing.spec.fingerprint import parts, parts_like
found = kept()
old = json.load(open("tests/data/digests-0.1.json"))
assert hasattr(found["right"].watermark, "extra") and hasattr(found["right"].aggregates[0], "extra")
print(json.dumps([{n: parts(p) for n, p in found.items()}, {n: parts_like(old[n], p) for n, p in found.items()}]))
"""  # noqa: E501


@pytest.mark.slow
def test_an_optional_field_more_changes_no_digest(tmp_path: Path) -> None:
    """In a copy of the project, watermark and aggregate get a field.

    The kind of window gets another class name.
    """
    for folder in ("windowing", "tests/windowing/spec", "tests/data", "pipelines"):
        shutil.copytree(PROJECT / folder, tmp_path / folder)
    for package in ("tests", "tests/windowing"):
        (tmp_path / package / "__init__.py").touch()
    for name, (where, what) in ADDED.items():
        text = (tmp_path / name).read_text()
        assert re.search(where, text)
        (tmp_path / name).write_text(re.sub(where, what, text))
    for file in tmp_path.glob("windowing/**/*.py"):
        file.write_text(re.sub(r"\bTumbling\b(?!\")", "Fixed", file.read_text()))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [OF_TODAY, OF_0_1]


def other(value: Any) -> Any:
    return replace(
        value, **{f.name: "else" for f in fields(value) if f.name in ("idle_after_us", "by")}
    )


@pytest.mark.parametrize("place", ["watermark", "aggregate"])
def test_a_field_that_is_set_changes_the_digest_in_both_forms(place: str) -> None:
    before = PIPELINES["right"]
    if place == "watermark":
        after = replace(before, watermark=other(before.watermark))
    else:
        window = before.windows[0]
        after = replace(
            before, windows=(replace(window, aggregates=(other(window.aggregates[0]),)),)
        )
    name = (
        "watermark"
        if place == "watermark"
        else f"windows.hourly aggregate {before.windows[0].aggregates[0].name}"
    )
    assert parts(after)[name] != OF_TODAY["right"][name]
    assert parts_like(OF_0_1["right"], after)[name] != OF_0_1["right"][name]
