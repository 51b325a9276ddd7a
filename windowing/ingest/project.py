"""The files of a new pipeline's folder: their texts, from what was proposed."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windowing.ingest.columns import PinnedColumn
from windowing.ingest.disorder import Proposed
from windowing.ingest.proposal import Proposal
from windowing.spec.words import in_quotes

SCHEDULE = "*/15 * * * *"
_AT, _AT_S = "2026-03-02 10:05", 1_772_445_900
"""A time, and the same in seconds since 1970."""
_README = """# {name}

Windows over {events}, made by `tidemark init`.

| file | what it says |
|---|---|
| `tidemark.toml` | where the tables of each target lie: `dev` is this folder |
| `{name}.yaml` | the pipeline: events and windows; comments say why they were proposed |
{columns}| `expectations/{name}.yaml` | what has to hold of the windows before they are published |
{transcripts}| `dags/{name}_dags.py` | the DAGs, for a DAG folder of Airflow; it names this folder |
| `dags/{name}_broken_specs.py` | goes there with it, and tells Airflow why a spec has no DAGs |

```bash
{ingest}tidemark run {name} --validate
tidemark publish {name}
tidemark show {name} {window}
{play}```

All but {kept_out} belongs into version control.
"""
_COLUMNS = "| `columns/{name}.yaml` | columns of the files and their types |\n"
_TRANSCRIPTS = "| `transcripts/{name}.yaml` | rows in, rows out: a test of the pipeline |\n"
_PLAY = "tidemark test transcripts\n"
_INGEST = "tidemark ingest {name}\n"
_PROJECT = """# The project: commands in this folder take names of its pipelines, such as {name}.
pipelines = "."             # the folder of the specs
target = "dev"              # the one that is meant where a command has no --target

[targets.dev]
lake = "lake"               # where the tables of all pipelines lie

# [targets.prod]
# lake = "s3://bucket/lake"
# master = "spark://host:7077"
"""
_DAGS = '''"""The DAGs of this project, for a DAG folder of Airflow."""

from pathlib import Path

from tidemark.dags import make_dags

PROJECT = Path({project!r})
TIDEMARK = {command!r}
"""The command of the environment that has Spark; Airflow's own has not."""

make_dags(PROJECT, TIDEMARK)
'''
_BROKEN_SPECS = '''"""Tells Airflow which specs of this project make no DAG, and why."""

from pathlib import Path

from tidemark.dags import check_specs

PROJECT = Path({project!r})

check_specs(PROJECT)
'''


@dataclass(frozen=True)
class Origin:
    """Where events come from: the source table as the spec names it, and its `source.files`.

    `files` is None for a table that others write to.
    """

    table: str
    files: Mapping[str, object] | None = None


def render_project(
    name: str,
    origin: Origin,
    proposal: Proposal,
    columns: Sequence[PinnedColumn],
    seen: str,
) -> dict[str, str]:
    """The texts of the files by their paths in the folder, without DAGs and what lands.

    `columns` are those of the source table, and `seen` says what the proposal was made from.
    """
    window = next(iter(proposal.windows))
    # Transcripts have no structs.
    parts = (proposal.event_time, proposal.key, proposal.event_id, *proposal.aggregates.values())
    transcripts = {}
    if not proposal.columns and not any("." in part.value for part in parts if part is not None):
        transcripts[f"transcripts/{name}.yaml"] = _render_transcript(name, proposal, columns)
    ignored = ["lake"] if origin.files is None else ["lake", "drop"]
    return {
        "tidemark.toml": _PROJECT.format(name=name),
        f"{name}.yaml": render_spec(name, origin, proposal, seen),
        f"expectations/{name}.yaml": _render_suite(window, next(iter(proposal.aggregates))),
        **transcripts,
        "README.md": _render_readme(name, origin, window, ignored, has_play=bool(transcripts)),
        ".gitignore": "".join(f"/{folder}/\n" for folder in ignored),
    }


def render_dags(name: str, project: str, command: str) -> dict[str, str]:
    """The texts of the files for Airflow, by their paths in the folder.

    `project` is the absolute path of the folder, and `command` what tasks run.
    """
    return {
        f"dags/{name}_dags.py": _DAGS.format(project=project, command=command),
        f"dags/{name}_broken_specs.py": _BROKEN_SPECS.format(project=project),
    }


def _render_readme(
    name: str, origin: Origin, window: str, ignored: Sequence[str], *, has_play: bool
) -> str:
    has_files = origin.files is not None
    return _README.format(
        name=name,
        window=window,
        events="the files that land in `drop/`" if has_files else f"events of {origin.table}",
        columns=_COLUMNS.format(name=name) if has_files else "",
        ingest=_INGEST.format(name=name) if has_files else "",
        transcripts=_TRANSCRIPTS.format(name=name) if has_play else "",
        play=_PLAY if has_play else "",
        kept_out=" and ".join(f"`{folder}/`" for folder in ignored),
    )


def render_spec(name: str, origin: Origin, proposal: Proposal, seen: str) -> str:
    """The spec, with the reason for each part in a comment behind it."""
    source = {
        "event_time": proposal.event_time,
        "zone": proposal.zone,
        "key": proposal.key,
        "event_id": proposal.event_id,
    }
    lines = [
        f"# Proposed from {seen}. Comments say why; correct what is wrong before the first run.",
        f"name: {name}",
        "source:",
        f"  table: {_render_place(origin.table)}",
        *_render_parts({part: each for part, each in source.items() if each is not None}),
        *_render_named(proposal.columns),
        *_render_files(origin.files),
        "watermark:",
        *_render_parts({"delay": proposal.delay, "allowed_lateness": proposal.allowed_lateness}),
        "aggregates:",
        *_render_parts(proposal.aggregates),
        *(f"  # {remark}" for remark in proposal.remarks),
        "windows:",
        *_render_parts(proposal.windows),
        f'schedule: "{SCHEDULE}"',
        f"expectations: {{suite: {name}}}",
    ]
    return "\n".join(lines) + "\n"


def _render_named(columns: Mapping[str, Proposed]) -> list[str]:
    if not columns:
        return []
    return ["  columns:", *(f"  {line}" for line in _render_parts(columns))]


def _render_files(files: Mapping[str, object] | None) -> list[str]:
    if files is None:
        return []
    return ["  files:", *(f"    {field}: {_render_value(value)}" for field, value in files.items())]


def _render_parts(parts: Mapping[str, Proposed]) -> list[str]:
    written = {name: f"  {name}: {part.value}" for name, part in parts.items()}
    width = max(map(len, written.values()), default=0)
    return [f"{written[name]:<{width}}  # {part.why}" for name, part in parts.items()]


def _render_value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    if text == "\t":
        return '"\\t"'
    return text if text.replace("-", "").isalnum() else in_quotes(text)


def _render_place(text: str) -> str:
    is_plain = not re.search(r"[^\w/.:-]|:$", text)
    return text if is_plain else in_quotes(text)


def _render_suite(window: str, counted: str) -> str:
    return (
        f"{window}:\n"
        "  - type: expect_column_values_to_be_between\n"
        f"    kwargs: {{column: {counted}, min_value: 1}}\n"
        "    severity: critical\n"
        "    description: A window has at least one event\n"
    )


def _render_transcript(name: str, proposal: Proposal, columns: Sequence[PinnedColumn]) -> str:
    """One event, and the window that counts it."""
    (key,) = [part.strip() for part in proposal.key.value.strip("[]").split(",")]
    types = {column.name: column.type for column in columns}
    numbers = [call.value.split("(")[1].rstrip(")") for call in proposal.aggregates.values()]
    typed = [f"{n}: {in_quotes(types[n])}" for n in numbers if n in types]
    head = f"columns: {{{', '.join(typed)}}}\n" if typed else ""
    window = next(iter(proposal.windows))
    time = proposal.event_time.value
    column, _, unit = time.strip("{}").removeprefix("column: ").partition(", unit: ")
    at = str(_AT_S) + {"s": "", "ms": "000", "us": "000000"}[unit] if unit else _AT
    # Texts are in quotes, so that YAML takes none for anything else.
    example = {n: json.dumps(value, ensure_ascii=False) for n, value in proposal.example.items()}
    others = "".join(f", {name}: {value}" for name, value in example.items() if name != key)
    return (
        f"# One event, and the window that counts it; write what has to stay true of {name} here.\n"
        f"spec: ../{name}.yaml\n"
        "name: an event is counted in its window\n"
        f"{head}"
        "steps:\n"
        "  - input:\n"
        f"      - {{{key}: {example[key]}, {column}: {at}{others}}}\n"
        "    expect:\n"
        f"      {window}:\n"
        f"        - {{{key}: {example[key]}, {next(iter(proposal.aggregates))}: 1}}\n"
    )
