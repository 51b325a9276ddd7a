"""The steps of a pipeline's DAGs as plain values, and the command line that each one becomes."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from airflow.sdk import Param, TriggerRule
from airflow.sdk.exceptions import AirflowFailException

from windowing.spec.pipeline import EACH


@dataclass(frozen=True)
class Step:
    """One task: `tidemark {command} SPEC --{param} VALUE... {options}`.

    `params` are the DAG run's parameters that become options. `after` is the step before this one.
    A step that `needs_news` is skipped where the writer before it found nothing new and readers use
    what there is.
    """

    command: str
    after: str | None = None
    needs_news: bool = True
    params: tuple[str, ...] = ()
    options: tuple[str, ...] = ("--json",)
    timeout: timedelta = timedelta(hours=2)
    trigger_rule: TriggerRule = TriggerRule.ALL_SUCCESS


def _steps_after(writer: str) -> tuple[Step, ...]:
    """The steps after a writer.

    Only validated versions are published. Where there is nothing new, `publish` tells what readers
    use, because somebody may have published by hand since it was announced. The report is written
    even if a step failed, because that is when it is read.
    """
    publish = Step(
        "publish", after="validate", needs_news=False, trigger_rule=TriggerRule.NONE_FAILED
    )
    return (
        Step("validate", after=writer),
        publish,
        Step("report", after="publish", options=(), trigger_rule=TriggerRule.ALL_DONE),
    )


VALIDATE = "--validate"
VALIDATING = (VALIDATE, "--json")
"""Options of a writer that also validates, because its session is warm; `validate` reports that."""
LIVE = (Step("run", options=VALIDATING, timeout=timedelta(hours=12)), *_steps_after("run"))
BACKFILL = (
    Step(
        "backfill",
        params=("from", "to", "source", "check", "dry_run"),
        options=VALIDATING,
        timeout=timedelta(days=3),
    ),
    *_steps_after("backfill"),
)


INGEST = Step("ingest", timeout=timedelta(hours=12))
"""Takes files that have landed, before the run that reads their rows."""


def take_files_first(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps of a DAG whose pipeline has a folder in which files land."""
    writer, *rest = steps
    return (INGEST, replace(writer, after=INGEST.command), *rest)


def writer_of(steps: Sequence[Step]) -> Step:
    """The step whose result says whether those after it have anything to do."""
    return next(step for step in steps if step is not INGEST)


def publish_as(steps: tuple[Step, ...], policy: str) -> tuple[Step, ...]:
    """The steps of a DAG for `publish: together` or `publish: each`.

    With `each`, outputs that pass are published although `validate` fails for others.
    """
    if policy != EACH:
        return steps
    return tuple(
        replace(step, trigger_rule=TriggerRule.ALL_DONE) if step.command == "publish" else step
        for step in steps
    )


MAINTAIN = (Step("maintain", timeout=timedelta(hours=12)),)
PARAMS = {
    "from": Param(
        None,
        type=["null", "string"],
        format="date-time",
        title="From",
        description="Start of event time; the instant itself is inside",
    ),
    "to": Param(
        None,
        type=["null", "string"],
        format="date-time",
        title="To",
        description="End of event time; the instant itself is outside",
    ),
    "source": Param(
        "read",
        type="string",
        enum=["read", "newest"],
        title="Version of the source",
        description=(
            "`read` is the one that the last run left. `newest` follows rows that were updated or "
            "deleted since; it needs no range"
        ),
    ),
    "check": Param(
        False,
        type="boolean",
        title="Check",
        description="Reprocess a copy, and fail if it differs; nothing is written",
    ),
    "dry_run": Param(
        False,
        type="boolean",
        title="Dry run",
        description="Print the plan; nothing is written",
    ),
}
"""The parameters of the backfill DAG."""
WRITES_NOTHING = ("check", "dry_run")


def command_line(
    cli: str, spec: str, step: Step, params: Mapping[str, Any], target: str | None = None
) -> str:
    """The shell line of a step, with every word quoted; `target` is one of the spec's project.

    AirflowFailException for a wrong value, and for a parameter that a step with parameters does not
    have, because a retry can't change that.
    """
    words: list[str] = []
    _refuse_unknown(step, params)
    for name in step.params:
        words += _WORDS[name](name, params.get(name))
    options = step.options
    if writes_nothing(step, params):
        # There is nothing to validate.
        options = tuple(option for option in options if option != VALIDATE)
    named = () if target is None else ("--target", target)
    # exec replaces the shell, so that Airflow's signals reach the command itself. The input of a
    # task's process is its connection with Airflow, which a command that is lost would keep open.
    return f"exec {shlex.join([cli, step.command, spec, *named, *words, *options])} </dev/null"


def _refuse_unknown(step: Step, params: Mapping[str, Any]) -> None:
    """AirflowFailException for a parameter that the step does not have.

    Of a step without parameters, these are the ones that a backfill has.
    """
    if step.after not in (None, INGEST.command):
        return
    unknown = sorted(params.keys() & PARAMS.keys())
    known = "no parameters"
    if step.params:
        unknown = sorted(params.keys() - {*step.params})
        known = ", ".join(step.params)
    if unknown:
        message = (
            f"{', '.join(unknown)}: no such parameter; {step.command} has {known}, and nothing was "
            "done"
        )
        raise AirflowFailException(message)


def writes_nothing(writer: Step, params: Mapping[str, Any]) -> bool:
    """Whether a writer with these parameters only looks."""
    return any(params.get(name) is True for name in WRITES_NOTHING if name in writer.params)


def _name_time(name: str, value: object) -> list[str]:
    if value is None:
        # Whether a range is needed is the command's to say.
        return []
    try:
        return [f"--{name}", datetime.fromisoformat(str(value)).isoformat()]
    except ValueError:
        message = (
            f"{name}: {value!r} is not a date-time; write one such as 2013-03-10T00:00:00-05:00"
        )
        raise AirflowFailException(message) from None


def _name_choice(name: str, value: object) -> list[str]:
    allowed = PARAMS[name].schema["enum"]
    if value is None or value == allowed[0]:
        return []
    if value in allowed:
        return [f"--{name}", str(value)]
    message = f"{name}: {value!r} is none of {', '.join(allowed)}"
    raise AirflowFailException(message)


def _name_flag(name: str, value: object) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [f"--{name.replace('_', '-')}"]
    message = f"{name}: {value!r} is neither true nor false"
    raise AirflowFailException(message)


_WORDS: Mapping[str, Callable[[str, object], list[str]]] = {
    "from": _name_time,
    "to": _name_time,
    "source": _name_choice,
    "check": _name_flag,
    "dry_run": _name_flag,
}
"""By parameter the words of the command line that say it."""


def find_reason_to_skip(
    step: Step, writer: Step, params: Mapping[str, Any], written: str | None
) -> str | None:
    """Why a step after `writer` has nothing to do; None where it has.

    `written` is the last line that the writer printed; None where it failed.
    """
    if writes_nothing(writer, params):
        return f"{writer.command} has written nothing, as it was told"
    if step.trigger_rule is TriggerRule.ALL_DONE and step.command == "publish" and written is None:
        # Other steps are not even asked where the writer has failed.
        return f"{writer.command} has failed"
    if step.needs_news and nothing_follows(written):
        return f"{writer.command} found nothing new, and readers use the newest versions"
    return None


def nothing_follows(result: str | None) -> bool:
    """Whether the last line of a writer reports that nothing is left to validate or publish.

    None and any other line are those of a command that failed.
    """
    try:
        report = json.loads(result or "{}")
    except ValueError:
        return False
    return isinstance(report, dict) and report.get("published") is True
