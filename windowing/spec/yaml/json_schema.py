"""The JSON Schemas of a pipeline's file and of a project's, for editors.

`python -m windowing.spec.yaml.json_schema pipeline > pipelines/pipeline.schema.json` writes the
first, and `project` in its place the other one.
"""

import json
import sys
from typing import Any

from windowing.spec.project.document import ProjectDocument
from windowing.spec.yaml.document import PipelineDocument
from windowing.spec.yaml.fields import Document

MODELS: dict[str, type[Document]] = {"pipeline": PipelineDocument, "project": ProjectDocument}


def json_schema(of: str = "pipeline") -> dict[str, Any]:
    """The schema of the file of a pipeline or a project as plain values, the same on every call."""
    schema = _remove_titles(MODELS[of].model_json_schema())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": f"Tidemark {of}",
    }


def schema_text(of: str) -> str:
    """The schema file's content, ending in a newline."""
    return json.dumps(json_schema(of), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _remove_titles(value: Any) -> Any:
    """Without the titles pydantic makes from field names."""
    if isinstance(value, list):
        return [_remove_titles(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for key, inner in value.items():
        # A field of that name would have a schema there, which is no text.
        is_title = key == "title" and isinstance(inner, str)
        if not is_title:
            kept[key] = _remove_titles(inner)
    return kept


if __name__ == "__main__":
    sys.stdout.write(schema_text(sys.argv[1]))
