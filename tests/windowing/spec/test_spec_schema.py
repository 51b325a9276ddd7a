"""The JSON Schema that editors use: committed as generated, and it takes the specs that ship."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from windowing.spec.document import KINDS, PipelineDocument, model_at
from windowing.spec.schema import json_schema, schema_text

PIPELINES = Path(__file__).parents[3] / "pipelines"


def _yaml(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text())


def test_the_committed_schema_is_the_generated_one() -> None:
    committed = (PIPELINES / "pipeline.schema.json").read_text()
    assert committed == schema_text(), "run: python -m windowing.spec.schema > pipelines/pipeline.schema.json"


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
    ],
)
def test_it_refuses_wrong_specs(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(_yaml(PIPELINES / "departures.yaml") | wrong, json_schema())


def test_every_field_is_described() -> None:
    sections = [
        PipelineDocument,
        *KINDS.values(),
        model_at(("source", "event_time", ":mapping")),
        model_at(("aggregates", "x", ":mapping")),
    ]
    sections += [model_at((name,)) for name in ("source", "watermark", "expectations", "retention")]
    undescribed = [(m, n) for m in sections if m for n, field in m.model_fields.items() if not field.description]
    assert undescribed == []
    assert json.loads(schema_text()) == json_schema()
