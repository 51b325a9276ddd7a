"""The JSON Schema of a pipeline file, for editors.

`python -m windowing.spec.yaml.json_schema > pipelines/pipeline.schema.json` writes it.
"""

import json
import sys
from typing import Any

from windowing.spec.yaml.document import PipelineDocument


def json_schema() -> dict[str, Any]:
    """The schema of a pipeline file as plain values, the same on every call."""
    schema = PipelineDocument.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_tidy(schema),
        "title": "Tidemark pipeline",
    }


def schema_text() -> str:
    """The schema file's content, ending in a newline."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _tidy(value: Any) -> Any:
    """Without the titles pydantic makes from field names."""
    if isinstance(value, dict):
        return {k: _tidy(v) for k, v in value.items() if not (k == "title" and isinstance(v, str))}
    return [_tidy(v) for v in value] if isinstance(value, list) else value


if __name__ == "__main__":
    sys.stdout.write(schema_text())
