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
from collections.abc import Iterable, Mapping, Sequence
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


def _steps_after(writer: str) -> tuple[Step, ...]:
    """The steps after a writer.

    Only validated versions are published. The report is written even if a step failed, because
    that is when it is read.
    """
    return (
        Step("validate", after=writer),
        Step("publish", after="validate"),
        Step("report", after="publish", options=(), trigger_rule=TriggerRule.ALL_DONE),
    )


VALIDATING = ("--validate", "--json")
"""Options of a writer that also validates, because its session is warm; `validate` reports that."""
LIVE = (Step("run", options=VALIDATING, timeout=timedelta(hours=12)), *_steps_after("run"))
BACKFILL = (
    Step("backfill", params=("from", "to"), options=VALIDATING, timeout=timedelta(days=3)),
    *_steps_after("backfill"),
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
        if not context:
            return decide_retry(None, try_number)
        # A task that runs a command keeps its process, so the exit code is read from there.
        ran: Any = context["task"]
        process = ran.subprocess_hook.sub_process
        return decide_retry(process.returncode if process else None, try_number)


def decide_retry(exit_code: int | None, try_number: int) -> RetryDecision:
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
        words.append(f"--{name}")
        words.append(_check_date_time(name, params[name]))
    # exec replaces the shell, so that Airflow's signals reach the command itself.
    return "exec " + shlex.join([cli, step.command, spec, *words, *step.options])


def _check_date_time(name: str, value: object) -> str:
    try:
        return datetime.fromisoformat(str(value)).isoformat()
    except ValueError:
        message = (
            f"{name}: {value!r} is not a date-time; write one such as 2013-03-10T00:00:00-05:00"
        )
        raise AirflowFailException(message) from None


def nothing_follows(result: str | None) -> bool:
    """Whether the last line of a writer reports that nothing is left to validate or publish.

    None and any other line are those of a command that failed.
    """
    try:
        report = json.loads(result or "{}")
    except ValueError:
        return False
    return isinstance(report, dict) and report.get("published") is True


def dags_of(pipeline: Pipeline, cli: str) -> tuple[DAG, DAG, DAG]:
    """The scheduled, the backfill and the maintenance DAG of a pipeline.

    Their tasks run the command `cli`.
    """
    live_id, backfill_id, maintain_id = dag_ids(pipeline)
    live = DAG(
        dag_id=live_id,
        schedule=pipeline.schedule,
        description="Everything that is new",
        **_common_settings(pipeline),
    )
    backfill = DAG(
        dag_id=backfill_id,
        schedule=None,
        params=RANGE,
        description="A range of event time",
        **_common_settings(pipeline),
    )
    maintain = DAG(
        dag_id=maintain_id,
        schedule=TENDED,
        description="Fewer files, fewer rows of state",
        **_common_settings(pipeline),
    )
    _add_tasks(live, LIVE, pipeline, cli)
    _add_tasks(backfill, BACKFILL, pipeline, cli)
    _add_tasks(maintain, MAINTAIN, pipeline, cli)
    return live, backfill, maintain


def dag_ids(pipeline: Pipeline) -> tuple[str, str, str]:
    """The ids of a pipeline's DAGs."""
    return pipeline.name, f"{pipeline.name}_backfill", f"{pipeline.name}_maintain"


def assets_of(pipeline: Pipeline) -> dict[str, Asset]:
    """Window name -> the asset `{pipeline}.{window}` of its output, at the table's URI."""
    assets = {}
    for window in pipeline.windows:
        uri = _to_uri(pipeline.table(window.name))
        assets[window.name] = Asset(name=f"{pipeline.name}.{window.name}", uri=uri)
    return assets


def _to_uri(table: str) -> str:
    if "://" in table:
        return table
    path = Path(table.removeprefix("file:"))
    return path.absolute().as_uri()


def _common_settings(pipeline: Pipeline) -> dict[str, Any]:
    """What the three DAGs of a pipeline have in common."""
    kinds = [f"- `{w.name}`: {type(w).__name__.lower()}" for w in pipeline.windows]
    windows = "\n".join(kinds)
    return {
        "start_date": pendulum.datetime(2020, 1, 1, tz="UTC"),
        "catchup": False,
        "max_active_runs": 1,
        "tags": ["tidemark"],
        "doc_md": f"`{pipeline.file}`: `{pipeline.source.table}` to\n\n{windows}",
    }


def _add_tasks(dag: DAG, steps: Sequence[Step], pipeline: Pipeline, cli: str) -> None:
    """Adds a task for each step to `dag`, and one that announces what was published."""
    # Airflow adds to a DAG whatever is made inside its `with` block.
    with dag:
        tasks: dict[str, Any] = {}
        writer = steps[0].command
        for step in steps:
            tasks[step.command] = _make_task(step, str(pipeline.file), cli, writer)
            if step.after:
                tasks[step.after] >> tasks[step.command]
        if "publish" in tasks:
            _add_announcement(assets_of(pipeline), tasks["publish"])


def _make_task(step: Step, spec: str, cli: str, writer: str) -> Any:
    """The task of a step. Its result is the command's last line.

    Nothing has to be done after a `writer` that found nothing new, once readers use what there is.
    """

    def command(params: Mapping[str, Any], ti: Any = None) -> str:
        if step.after is not None and nothing_follows(ti.xcom_pull(task_ids=writer)):
            message = f"{writer} found nothing new, and readers use the newest versions"
            raise AirflowSkipException(message)
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


def _add_announcement(assets: dict[str, Asset], published: Any) -> Any:
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
    broken: list[str] = []
    if not directory.is_dir():
        broken.append(_describe_missing_directory(directory))
    candidates = directory.absolute().glob("*.y*ml")
    files = [file for file in candidates if file.suffix in {".yaml", ".yml"}]
    for file in sorted(files):
        try:
            pipeline = load_pipeline(file)
            _check_dag_ids(pipeline, pipelines)
            pipelines.append(pipeline)
        # Whatever error a spec provokes, Airflow has to keep the DAGs of the other specs.
        except Exception as error:  # noqa: BLE001
            broken.append(_describe_error(file, error))
    return Specs(tuple(pipelines), tuple(broken))


def _describe_missing_directory(directory: Path) -> str:
    return (
        f"'{directory}' is not a directory; name the one that holds the specs "
        "(the DAGs of a checkout take it from TIDEMARK_PIPELINES)"
    )


def _check_dag_ids(pipeline: Pipeline, others: Iterable[Pipeline]) -> None:
    """Raises ValueError if one of `others` already has an id of the pipeline's DAGs."""
    files = {}
    for other in others:
        for dag_id in dag_ids(other):
            files[dag_id] = other.file
    for dag_id in dag_ids(pipeline):
        if dag_id in files:
            message = (
                f"name: the DAG {dag_id!r} already belongs to {files[dag_id]}; "
                "give one of the two pipelines another name"
            )
            raise ValueError(message)


def _describe_error(file: Path, error: Exception) -> str:
    if str(file) in str(error):
        return str(error)
    return f"{file}: {error or type(error).__name__}"
