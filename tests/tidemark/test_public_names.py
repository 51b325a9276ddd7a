"""`import tidemark` has the names that are documented, and loads no Spark."""

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jobs.backfill
import jobs.close
import jobs.publish
import jobs.read
import jobs.run
import jobs.session
import jobs.validate
import tidemark

ROOT = Path(__file__).parents[2]
DOORS: dict[str, Callable[..., Any]] = {
    "backfill": jobs.backfill.backfill,
    "close_period": jobs.close.close_period,
    "publish": jobs.publish.publish,
    "read": jobs.read.read,
    "reopen_period": jobs.close.reopen_period,
    "run": jobs.run.run,
    "spark_session": jobs.session.spark_session,
    "validate": jobs.validate.validate,
}
LOADED = """\
import sys
import tidemark

tidemark.load_pipeline({
    "name": "orders",
    "lake": "/lake",
    "source": {"table": "/bronze", "event_time": "at", "key": ["shop"]},
    "watermark": {"delay": "0 seconds"},
    "aggregates": {"orders": "count()"},
    "windows": {"hourly": {"kind": "tumbling", "size": "1 hour"}},
})
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_the_page_of_versions_names_all_of_them() -> None:
    page = (ROOT / "docs" / "versioning.md").read_text()
    rows = re.findall(r"^\| (?:functions|values|errors) \| (.*) \|$", page, re.MULTILINE)
    documented = re.findall(r"`(\w+)`", " ".join(rows))
    assert sorted(documented) == sorted(tidemark.__all__)


def test_every_public_name_is_there_and_documented() -> None:
    for name in tidemark.__all__:
        assert inspect.getdoc(getattr(tidemark, name)), name


@pytest.mark.parametrize("name", sorted(DOORS))
def test_a_function_takes_what_its_door_takes(name: str) -> None:
    assert parameters(getattr(tidemark, name)) == parameters(DOORS[name])


def parameters(function: Callable[..., Any]) -> list[tuple[str, object, object]]:
    """Name, kind and default of each; a default that is a function by its name."""
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, getattr(p.default, "__name__", p.default)) for p in found]


def test_a_spec_is_loaded_without_spark_and_without_great_expectations() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert {"pydantic", "tidemark", "windowing"} <= loaded
    assert not loaded & {"deltalake", "great_expectations", "pandas", "pyarrow", "pyspark"}
