"""From specs to DAGs: spec file -> Pipeline -> steps (plain values) -> operators.

A DAG folder of your own imports `read_specs` and `dags_of` from here (docs/airflow.md).

Each pipeline has three DAGs:

- `{name}` runs on the spec's schedule and reads all new rows, whatever its logical date.
- `{name}_backfill` is started by hand with a range of event time.
- `{name}_maintain` runs once a day, so that there are few files and few rows of state.

All of them run the command line of the Spark environment, so nothing here imports Spark. The
command's own lock admits one writer to a pipeline (exit code 75), also concurrently with commands
started by hand. Airflow's `max_active_runs` only avoids most of the waiting. No pool is needed.
"""

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import DAG, Asset, Context, Param, RetryDecision, RetryPolicy, TriggerRule, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import Pipeline

BUSY = 75
RETRIES = 30
UNEXPECTED_TRIES = 3
RETRY_DELAY = timedelta(minutes=2)
TENDED = "@daily"
"""When maintenance runs; like every task, it is retried while another writer holds the lock."""
FINAL = {
    2: "the spec, its arguments or the source table are wrong; the last lines of the log say which",
    3: (
        "expectations failed, so nothing was published; "
        "`tidemark publish SPEC --accept REASON` publishes all the same"
    ),
    4: "source, spec and state are not consistent; the last lines of the log name the difference",
}
"""Exit codes that a retry can't change, and what to do about each."""


@dataclass(frozen=True)
class Step:
    """One task: `tidemark {command} SPEC --{param} VALUE... {options}`.

    `params` are the DAG run's parameters that become options. `after` is the step before this one.
    """

    command: str
    after: str | None = None
    params: tuple[str, ...] = ()
    options: tuple[str, ...] = ("--json",)
    timeout: timedelta = timedelta(hours=2)
    trigger_rule: TriggerRule = TriggerRule.ALL_SUCCESS


def _checked(writer: str) -> tuple[Step, ...]:
    """The steps after a writer.

    Only validated versions are published. The report is written even if a step failed, because
    that is when it is read.
    """
    return (
        Step("validate", after=writer),
        Step("publish", after="validate"),
        Step("report", after="publish", options=(), trigger_rule=TriggerRule.ALL_DONE),
    )


LIVE = (Step("run", timeout=timedelta(hours=12)), *_checked("run"))
BACKFILL = (
    Step("backfill", params=("from", "to"), timeout=timedelta(days=3)),
    *_checked("backfill"),
)
MAINTAIN = (Step("maintain", timeout=timedelta(hours=12)),)
RANGE = {
    "from": Param(
        type="string",
        format="date-time",
        title="From",
        description="Start of event time; the instant itself is inside",
    ),
    "to": Param(
        type="string",
        format="date-time",
        title="To",
        description="End of event time; the instant itself is outside",
    ),
}


class ByExitCode(RetryPolicy):
    """Retries exit code 75 until the lock is free, 2, 3 and 4 never, others up to three tries."""

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,
        max_tries: int,
        context: Context | None = None,
    ) -> RetryDecision:
        """The decision for the command that `context`'s task has just run."""
        ran: Any = context["task"] if context else None
        process = ran.subprocess_hook.sub_process if ran else None
        return verdict(process.returncode if process else None, try_number)


def verdict(exit_code: int | None, try_number: int) -> RetryDecision:
    """Whether a command's task is retried after its try `try_number`, counted from 1.

    The exit code is None if the command didn't end by itself.
    """
    if exit_code == BUSY:
        return RetryDecision.retry(RETRY_DELAY, "another writer holds the pipeline")
    if exit_code in FINAL:
        return RetryDecision.fail(FINAL[exit_code])
    if try_number < UNEXPECTED_TRIES:
        return RetryDecision.retry(RETRY_DELAY, f"exit code {exit_code}")
    return RetryDecision.fail(f"exit code {exit_code} on try {try_number}")


def command_line(cli: str, spec: str, step: Step, params: Mapping[str, Any]) -> str:
    """The shell line of a step, with every word quoted.

    AirflowFailException if a parameter isn't an ISO date-time, because a retry can't change that.
    """
    words: list[str] = []
    for name in step.params:
        words += [f"--{name}", _date_time(name, params[name])]
    # exec replaces the shell, so that Airflow's signals reach the command itself.
    return "exec " + shlex.join([cli, step.command, spec, *words, *step.options])


def _date_time(name: str, value: object) -> str:
    try:
        return datetime.fromisoformat(str(value)).isoformat()
    except ValueError:
        message = (
            f"{name}: {value!r} is not a date-time; write one such as 2013-03-10T00:00:00-05:00"
        )
        raise AirflowFailException(message) from None


def dags_of(pipeline: Pipeline, cli: str) -> tuple[DAG, DAG, DAG]:
    """The scheduled, the backfill and the maintenance DAG of a pipeline.

    Their tasks run the command `cli`.
    """
    live, late, tended = ids(pipeline)
    made = (
        DAG(
            dag_id=live,
            schedule=pipeline.schedule,
            description="Everything that is new",
            **_common(pipeline),
        ),
        DAG(
            dag_id=late,
            schedule=None,
            params=RANGE,
            description="A range of event time",
            **_common(pipeline),
        ),
        DAG(
            dag_id=tended,
            schedule=TENDED,
            description="Fewer files, fewer rows of state",
            **_common(pipeline),
        ),
    )
    for dag, steps in zip(made, (LIVE, BACKFILL, MAINTAIN), strict=True):
        with dag:
            _wire(steps, pipeline, cli)
    return made


def ids(pipeline: Pipeline) -> tuple[str, str, str]:
    """The ids of a pipeline's DAGs."""
    return pipeline.name, f"{pipeline.name}_backfill", f"{pipeline.name}_maintain"


def assets_of(pipeline: Pipeline) -> dict[str, Asset]:
    """Window name -> the asset `{pipeline}.{window}` of its output, at the table's URI."""
    return {
        w.name: Asset(name=f"{pipeline.name}.{w.name}", uri=_uri(pipeline.table(w.name)))
        for w in pipeline.windows
    }


def _uri(table: str) -> str:
    return table if "://" in table else Path(table.removeprefix("file:")).absolute().as_uri()


def _common(pipeline: Pipeline) -> dict[str, Any]:
    windows = "\n".join(f"- `{w.name}`: {type(w).__name__.lower()}" for w in pipeline.windows)
    return {
        "start_date": pendulum.datetime(2020, 1, 1, tz="UTC"),
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["tidemark"],
        "doc_md": f"`{pipeline.file}`: `{pipeline.source.table}` to\n\n{windows}",
    }


def _wire(steps: Iterable[Step], pipeline: Pipeline, cli: str) -> None:
    made: dict[str, Any] = {}
    for step in steps:
        made[step.command] = _operator(step, str(pipeline.file), cli)
        if step.after:
            made[step.after] >> made[step.command]
    if "publish" in made:
        _announce(assets_of(pipeline), made["publish"])


def _operator(step: Step, spec: str, cli: str) -> Any:
    """The task of a step. Its result is the command's last line."""

    def command(params: Mapping[str, Any]) -> str:
        return command_line(cli, spec, step, params)

    operator: Any = task.bash(
        task_id=step.command,
        append_env=True,
        retries=RETRIES,
        retry_policy=ByExitCode(),
        execution_timeout=step.timeout,
        trigger_rule=step.trigger_rule,
    )
    return operator(command)()


def _announce(assets: dict[str, Asset], published: Any) -> Any:
    """The task that reports published versions and rows to Airflow; skipped if there are none."""

    @task(task_id="announce", outlets=list(assets.values()), retries=2)
    def announce(published: str, *, outlet_events: Any = None) -> None:
        outputs = json.loads(published)["outputs"]
        if not outputs:
            message = "publish named no output"
            raise AirflowSkipException(message)
        for window, asset in assets.items():
            outlet_events[asset].extra = outputs[window]

    return announce(published)


@dataclass(frozen=True)
class Specs:
    """The pipelines of a directory, and one sentence for each file that is not one."""

    pipelines: tuple[Pipeline, ...]
    broken: tuple[str, ...]


def read_specs(directory: Path) -> Specs:
    """Every *.yaml and *.yml in `directory`, by name.

    A file that can't be read, or whose DAG ids another one has, doesn't affect the others.
    """
    pipelines: list[Pipeline] = []
    broken = [] if directory.is_dir() else [_no_directory(directory)]
    candidates = directory.absolute().glob("*.y*ml")
    for file in sorted(file for file in candidates if file.suffix in {".yaml", ".yml"}):
        try:
            pipelines.append(_distinct(load_pipeline(file), pipelines))
        # Whatever error a spec provokes, Airflow has to keep the DAGs of the other specs.
        except Exception as error:  # noqa: BLE001
            broken.append(_sentence(file, error))
    return Specs(tuple(pipelines), tuple(broken))


def _no_directory(directory: Path) -> str:
    return (
        f"'{directory}' is not a directory; name the one that holds the specs "
        "(the DAGs of a checkout take it from TIDEMARK_PIPELINES)"
    )


def _distinct(pipeline: Pipeline, others: Iterable[Pipeline]) -> Pipeline:
    taken = {dag_id: other.file for other in others for dag_id in ids(other)}
    clash = [dag_id for dag_id in ids(pipeline) if dag_id in taken]
    if clash:
        message = (
            f"name: the DAG {clash[0]!r} already belongs to {taken[clash[0]]}; "
            "give one of the two pipelines another name"
        )
        raise ValueError(message)
    return pipeline


def _sentence(file: Path, error: Exception) -> str:
    return str(error) if str(file) in str(error) else f"{file}: {error or type(error).__name__}"
