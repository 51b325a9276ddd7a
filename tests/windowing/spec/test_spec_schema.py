"""The JSON Schema that editors use: committed as generated, and it takes the specs that ship."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from tests.windowing.spec.specs import KINDS as SPECS
from tests.windowing.spec.specs import RIGHT, with_window
from windowing.spec.load import load_pipeline
from windowing.spec.yaml.document import PipelineDocument, model_at
from windowing.spec.yaml.json_schema import MODELS, json_schema, schema_text
from windowing.spec.yaml.window_document import KINDS

PIPELINES = Path(__file__).parents[3] / "pipelines"


def _yaml(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text())


@pytest.mark.parametrize("of", MODELS)
def test_the_committed_schema_is_the_generated_one(of: str) -> None:
    committed = (PIPELINES / f"{of}.schema.json").read_text()
    assert committed == schema_text(of), "run: make schema"


@pytest.mark.parametrize("path", sorted(PIPELINES.glob("*.yaml")), ids=lambda p: p.name)
def test_the_specs_that_ship_fit_it(path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    jsonschema.validate(_yaml(path), json_schema())
    assert path.read_text().startswith("# yaml-language-server: $schema=pipeline.schema.json\n")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Departures"},
        {"colour": "red"},
        {"windows": {"w": {"kind": "tumbling"}}},
        {"windows": {"_w": {"kind": "session", "gap": "1 hour"}}},
        {"windows": {}},
        {"aggregates": {"a": 5}},
        {"aggregates": {"a": {"where": "b > 1"}}},
        {"windows": {"w": {"kind": "tumblin", "size": "1 hour"}}},
        {"windows": {"w": {"kind": "tumbling", "size": "1 hour", "emit": "never"}}},
        {"windows": {"w": {"kind": "tumbling", "size": "1 hour", "empty": "yes"}}},
        {"windows": {"w": {"kind": "tumbling", "size": "1 hour", "aggregates": []}}},
        {"windows": {"w": {"kind": "session", "gap": "1 hour", "empty": True}}},
        {"windows": {"w": {"kind": "count", "count": "3"}}},
        {"windows": {"w": {"kind": "delta", "attribute": "miles"}}},
        {"windows": {"w": {"kind": "delta", "attribute": "miles", "delta": True}}},
        {"windows": {"w": {"kind": "global", "zone": "UTC"}}},
    ],
)
def test_it_refuses_wrong_specs(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(_yaml(PIPELINES / "departures.yaml") | wrong, json_schema())


FULL: dict[str, dict[str, Any]] = {
    "tumbling": {"offset": "1 minute", "zone": "UTC", "empty": True, "empty_limit": 5},
    "sliding": {"offset": "1 minute", "zone": "UTC", "empty": True, "empty_limit": 5},
    "cumulate": {"origin": "2024-01-01", "zone": "UTC", "emit": "changes"},
    "session": {"max_duration": "12 hours", "emit": "on_close"},
    "record_sliding": {"tick": "1 second"},
    "count": {"every": 10},
    "delta": {"delta": "5 minutes"},
}


@pytest.mark.parametrize("kind", SPECS)
def test_it_takes_every_kind(kind: str) -> None:
    every = {"aggregates": ["flights"], "change_feed": False}
    for spec in (
        with_window(kind),
        with_window(kind, **every),
        with_window(kind, **every, **FULL.get(kind, {})),
    ):
        jsonschema.validate(spec, json_schema())
        assert load_pipeline(spec).windows[0].name == "w"


def test_it_takes_expressions() -> None:
    source = RIGHT["source"] | {
        "event_time": "arrival",
        "columns": {"late": "delay > 60"},
        "where": "distance > 0",
    }
    bad = {"bad": {"call": "count()", "where": "late"}}
    spec = RIGHT | {
        "source": source,
        "watermark": {"idle_after": "15 minutes"},
        "aggregates": RIGHT["aggregates"] | bad,
    }
    jsonschema.validate(spec, json_schema())
    assert load_pipeline(spec).watermark.idle_after_us == 900_000_000


def test_every_field_is_described() -> None:
    sections = [
        PipelineDocument,
        *KINDS.values(),
        model_at(("source", "event_time", ":mapping")),
        model_at(("aggregates", "x", ":mapping")),
    ]
    sections += [model_at((name,)) for name in ("source", "watermark", "expectations", "retention")]
    undescribed = [
        (m, n)
        for m in sections
        if m
        for n, field in m.model_fields.items()
        if not field.description
    ]
    assert undescribed == []
    assert json.loads(schema_text("pipeline")) == json_schema()
