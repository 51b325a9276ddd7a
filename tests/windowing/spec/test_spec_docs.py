"""The spec reference is right.

Its YAML is read, and it names every field and every function there is.
"""

import re
from json import dumps
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic.fields import FieldInfo

from expectations.library import import_great_expectations
from tests.windowing.spec.specs import KINDS, RIGHT
from windowing.spec import aggregate_description, reserved
from windowing.spec.expressions.tree import FUNCTIONS
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline
from windowing.spec.yaml.document import PipelineDocument, model_at
from windowing.spec.yaml.file import document
from windowing.spec.yaml.window_document import KINDS as WINDOWS

ROOT = Path(__file__).parents[3]
REFERENCE = "docs/spec.md"
PAGE = (ROOT / REFERENCE).read_text()
SAID = " ".join(
    re.findall(
        r"`` .+? ``|`[^`\n]+(?:\n[^`\n]+)?`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
    )
)
BLOCKS = [
    (path.relative_to(ROOT).as_posix(), text)
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    for text in re.findall(r"```yaml\n(.*?)```", path.read_text(), flags=re.DOTALL)
]


def read(folder: Path, text: str) -> dict[str, Any]:
    """What a block says; one of windows alone is put under `windows`."""
    path = folder / "departures.yaml"
    path.write_text(text.replace("table: …", "table: ../lake/events"))
    given = document(str(path))
    return (
        {"windows": given}
        if all(isinstance(part, dict) and "kind" in part for part in given.values())
        else given
    )


def loaded(folder: Path, text: str) -> Pipeline | None:
    """The pipeline of a whole spec, or of parts of one put into a right one.

    None for what is no spec.
    """
    given = read(folder, text)
    if not {*given} <= {*PipelineDocument.model_fields}:
        return None
    shown = given.get("windows", {}).values()
    used = {
        name for w in shown for name in [*w.get("aggregates", []), *w.get("having", "").split()[:1]]
    }
    rest = (
        {}
        if "name" in given
        else RIGHT | ({"aggregates": dict.fromkeys(used, "count()")} if used else {})
    )
    path = folder / "departures.yaml"
    path.write_text(dumps(rest | given))
    return load_pipeline(path)


@pytest.mark.parametrize(
    ("page", "text"), BLOCKS, ids=[f"{i}-{page}" for i, (page, _) in enumerate(BLOCKS)]
)
def test_yaml_in_the_docs_is_read(tmp_path: Path, page: str, text: str) -> None:
    if loaded(tmp_path, text) is None and page == REFERENCE:
        import_great_expectations()
        from expectations.suite import load_suite

        whole = loaded(tmp_path, next(t for p, t in BLOCKS if p == page and "\nname:" in t))
        (tmp_path / "departures.yaml").write_text(text)
        assert whole is not None and load_suite(whole, tmp_path)


def test_the_reference_shows_every_kind(tmp_path: Path) -> None:
    shown = [
        w
        for page, text in BLOCKS
        if page == REFERENCE
        for w in read(tmp_path, text).get("windows", {}).values()
    ]
    assert {w["kind"] for w in shown} == {*KINDS}


MODELS = [
    PipelineDocument,
    *map(model_at, [("source",), ("watermark",), ("expectations",), ("retention",)]),
    *WINDOWS.values(),
]
MODELS += [
    model_at(("source", "event_time", ":mapping")),
    model_at(("aggregates", "a", ":mapping")),
]
FIELDS = [pair for model in MODELS if model for pair in model.model_fields.items()]


@pytest.mark.parametrize("name", sorted({name for name, _ in FIELDS}))
def test_every_field_is_named(name: str) -> None:
    assert re.search(rf"(?<!\w){name}(?!\w)", SAID)


def _choices(field: FieldInfo) -> list[str]:
    return [choice for choice in get_args(field.annotation) if isinstance(choice, str)]


CHOICES = {choice for name, field in FIELDS for choice in _choices(field) if name != "kind"}
CALLS = {f"{name}(" for name in aggregate_description.FUNCTIONS}
RESERVED = {*reserved.OUTPUT_COLUMNS, *reserved.STATE_COLUMNS, *reserved.FEED_COLUMNS}
RESERVED |= {*reserved.SOURCE_COLUMNS, *reserved.COUNTS, reserved.MISSED}


@pytest.mark.parametrize("word", sorted({*CHOICES, *CALLS, *RESERVED, *FUNCTIONS, "cast"}))
def test_every_choice_function_and_reserved_name_is_said(word: str) -> None:
    assert re.search(rf"(?<!\w){re.escape(word)}" + ("" if word.endswith("(") else r"(?!\w)"), SAID)
