"""What Airflow stores of a task that has succeeded, from the JSON that its command printed."""

import json
from collections.abc import Callable, Mapping
from typing import Any

OUTCOMES = ("read", "late", "duplicate", "quarantined", "erased")
"""What a run counts, without the rows that have the usual outcome."""
DAYS = "changed_days"
"""What Airflow does not store. `announce` tells days, by the `changes` of outputs."""


def summarize(command: str, result: str) -> str | None:
    """What the command has done, in figures; None where its last line has none."""
    describe = _DESCRIBED.get(command)
    if describe is None:
        return None
    try:
        return describe(json.loads(result))
    # The environment of the command may have another release. Its task has succeeded all the same.
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def leave_out_days(result: str) -> str:
    """The JSON that a command printed without `changed_days`, which may be long; else the same."""
    try:
        report = json.loads(result)
    except ValueError:
        return result
    if not isinstance(report, dict) or report.pop(DAYS, None) is None:
        return result
    return json.dumps(report)


def _describe_run(report: Mapping[str, Any]) -> str | None:
    if report.get("run", 0) is None:
        return "nothing new"
    counts = [f"{report[name]:,} {name}" for name in OUTCOMES if name == "read" or report[name]]
    changed = [
        f"{window} {_describe_change(change)}"
        for window, change in report["windows"].items()
        if any(change.values())
    ]
    return "; ".join([", ".join(counts), *changed])


def _describe_change(change: Mapping[str, int]) -> str:
    return ", ".join(f"{rows:,} {what}" for what, rows in change.items() if rows)


def _describe_ingest(report: Mapping[str, Any]) -> str:
    if not report["files"]:
        return "nothing new"
    text = f"{report['files']:,} files, {report['read']:,} read, {report['appended']:,} appended"
    broken = report["quarantined"]
    return f"{text}, {broken:,} quarantined" if broken else text


def _describe_validation(report: Mapping[str, Any]) -> str:
    failed = report["failed"]
    accepted = sum(each["accepted"] is not None for each in failed)
    some = f" ({accepted:,} accepted)" if accepted else ""
    return f"{report['checked']:,} checked, {len(failed):,} failed{some}"


def _describe_publication(report: Mapping[str, Any]) -> str:
    if not report["outputs"]:
        return "nothing is published"
    shown = [
        f"{window} v{output['version']}, {output['rows']:,} rows"
        for window, output in report["outputs"].items()
    ]
    held = [f"{window} held back" for window in report["held"]]
    return "; ".join([*shown, *held])


def _describe_maintenance(report: Mapping[str, Any]) -> str:
    tables = report["tables"].values()
    merged, expired = (sum(table[name] for table in tables) for name in ("merged", "expired"))
    before, after = (sum(table["files"][place] for table in tables) for place in (0, 1))
    return f"{merged:,} rows merged, {expired:,} expired, {before:,} files became {after:,}"


_DESCRIBED: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = {
    "ingest": _describe_ingest,
    "run": _describe_run,
    "backfill": _describe_run,
    "validate": _describe_validation,
    "publish": _describe_publication,
    "maintain": _describe_maintenance,
}
"""By command how its JSON is told."""
