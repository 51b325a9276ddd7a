"""From specs to DAGs: spec file -> Pipeline -> steps (plain values) -> operators.

A DAG folder of your own imports `make_dags` and `check_specs` from `tidemark.dags`
(docs/airflow.md).

Each pipeline has three DAGs:

- `{name}` runs on the spec's schedule and reads all new rows, whatever its logical date. Where the
  spec says in which folder files land, it takes these first.
- `{name}_backfill` is started by hand with a range of event time.
- `{name}_maintain` runs once a day, so that there are few files and few rows of state.

All of them run the command line of the Spark environment, so nothing here imports Spark. The
command's own lock admits one writer to a pipeline (exit code 75), also concurrently with commands
started by hand. Airflow's `max_active_runs` only avoids most of the waiting. No pool is needed.
"""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import DAG, Asset, TriggerRule, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from dags.announcement import add_announcement, assets_of
from dags.retries import BUSY, FINAL, LOST_DELAY, RETRIES, ByExitCode
from dags.steps import (
    BACKFILL,
    LIVE,
    MAINTAIN,
    PARAMS,
    Step,
    command_line,
    find_reason_to_skip,
    publish_as,
    take_files_first,
    writer_of,
)
from dags.summary import leave_out_days, summarize
from windowing.errors import TidemarkError, UsageError
from windowing.spec.description import describe_window
from windowing.spec.load import load_pipeline
from windowing.spec.pipeline import EACH, Pipeline
from windowing.spec.project.file import TARGET
from windowing.spec.project.load import find_project_in
from windowing.spec.project.specs import list_specs, specs_of

TENDED = "7 3 * * *"
"""When maintenance runs: not at a full hour, at which most runs begin.

Like every task, it is retried while another writer holds the lock.
"""

RUN_TYPES = (
    "scheduled",
    "manual",
    "operator_triggered",
    "asset_triggered",
    "asset_materialization",
)
"""Every type of DAG run but Airflow's own backfill.

That starts a run for each logical date in a range, and no run depends on its logical date.
"""

ATTEMPT = {
    "TIDEMARK_ATTEMPT": "{{ ti.dag_id }}/{{ ti.run_id }}/{{ ti.task_id }}#{{ ti.try_number }}"
}
"""Tells a command which try of which task it is, so that it ends a try that Airflow has lost."""

_NAME_SPECS = (
    "name the one that holds the specs (the DAGs of a checkout take it from TIDEMARK_PIPELINES)"
)

SUMMARY = "summary"
"""The key of the XCom with the figures of a task that has succeeded."""

SET_HERE = frozenset(
    (
        "dag_id",
        "allowed_run_types",
        "schedule",
        "start_date",
        "catchup",
        "max_active_runs",
        "params",
        "description",
        "doc_md",
    )
)
"""Settings of DAGs that follow from what a pipeline is."""


def make_dags(
    directory: Path,
    cli: str,
    default_args: Mapping[str, Any] | None = None,
    reports_url: str | None = None,
    target: str | None = None,
    **settings: Any,
) -> dict[str, DAG]:
    """Makes the DAGs of all specs in `directory` that are not broken, by their ids.

    Airflow finds them in the file that calls this, so nothing has to be done with them. `directory`
    and `target` are those of `read_specs`, all others those of `dags_of`.
    """
    made: list[DAG] = []
    for pipeline in read_specs(directory, target).pipelines:
        made.extend(dags_of(pipeline, cli, default_args, reports_url, **settings))
    return {dag.dag_id: dag for dag in made}


def check_specs(directory: Path, target: str | None = None) -> None:
    """Raises ValueError with a sentence for each broken spec, or where there is no spec at all.

    In a file without DAGs it is an import error for Airflow, which starts no DAG of such a file.
    """
    broken = read_specs(directory, target).broken
    if broken:
        raise ValueError("\n".join(broken))


def dags_of(
    pipeline: Pipeline,
    cli: str,
    default_args: Mapping[str, Any] | None = None,
    reports_url: str | None = None,
    **settings: Any,
) -> tuple[DAG, DAG, DAG]:
    """The scheduled, the backfill and the maintenance DAG of a pipeline.

    Their tasks run the command `cli`, a path or a name on PATH. `default_args` are Airflow's own,
    for every task: `owner`, `pool`, `queue`, `executor`, `on_failure_callback` and others.
    `reports_url` is the address at which a web server shows the lake; pages of DAGs link to reports
    there. `settings` are those of each DAG, such as `tags` (added to `tidemark`), `deadline`,
    `access_control` or `on_failure_callback`. TypeError for one that Tidemark sets itself.
    """
    ours = sorted(SET_HERE & settings.keys())
    if ours:
        message = f"{', '.join(ours)}: Tidemark sets this itself, so a DAG can't be given another"
        raise TypeError(message)
    # Tasks run in a temporary directory.
    cli = str(Path(cli).absolute()) if "/" in cli else cli
    page = describe_dags(pipeline, reports_url)
    common = _common_settings(page, default_args or {}, settings)
    live_id, backfill_id, maintain_id = dag_ids(pipeline)
    live = DAG(
        dag_id=live_id,
        schedule=pipeline.schedule,
        description="Everything that is new",
        **common,
    )
    backfill = DAG(
        dag_id=backfill_id,
        schedule=None,
        params=PARAMS,
        description="A range of event time",
        **common,
    )
    maintain = DAG(
        dag_id=maintain_id,
        schedule=TENDED,
        description="Fewer files, fewer rows of state",
        **common,
    )
    steps = publish_as(LIVE, pipeline.publish)
    if pipeline.source.files is not None:
        steps = take_files_first(steps)
    _add_tasks(live, steps, pipeline, cli)
    _add_tasks(backfill, publish_as(BACKFILL, pipeline.publish), pipeline, cli)
    _add_tasks(maintain, MAINTAIN, pipeline, cli)
    return live, backfill, maintain


def dag_ids(pipeline: Pipeline) -> tuple[str, str, str]:
    """The ids of a pipeline's DAGs."""
    return pipeline.name, f"{pipeline.name}_backfill", f"{pipeline.name}_maintain"


def _common_settings(
    page: str, default_args: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What the three DAGs of a pipeline have in common."""
    return {
        **settings,
        "start_date": pendulum.datetime(2020, 1, 1, tz="UTC"),
        "catchup": False,
        "max_active_runs": 1,
        "allowed_run_types": RUN_TYPES,
        # Without it Airflow waits for five minutes.
        "default_args": {"retry_delay": LOST_DELAY, **default_args},
        "tags": ["tidemark", *settings.get("tags", ())],
        "doc_md": page,
    }


def describe_dags(pipeline: Pipeline, reports_url: str | None = None) -> str:
    """The page of a DAG in Airflow: windows, assets, where reports are, what exit codes mean."""
    assets = assets_of(pipeline)
    windows = []
    for window in pipeline.windows:
        kind = describe_window(window).text
        windows.append(f"- `{window.name}`: {kind}; asset `{assets[window.name].name}`")
    lines = [
        f"`{pipeline.file}`: `{pipeline.source.table}` to",
        "",
        *windows,
        "",
        _describe_reports(pipeline, reports_url),
        "",
        "A task that fails names the exit code of its command:",
        "",
        *(f"- {code}: {meaning}" for code, meaning in FINAL.items()),
        f"- {BUSY}: another command writes; the task is tried again until it has ended",
    ]
    return "\n".join(lines)


def _describe_reports(pipeline: Pipeline, url: str | None) -> str:
    """Where report and Data Docs are: links, if a web server shows the lake, else their files."""
    if url is None:
        return (
            f"Report: `{pipeline.table('_report.html')}`. Data Docs: `{pipeline.table('_docs')}`."
        )
    place = f"{url.rstrip('/')}/{pipeline.name}"
    return f"[Report]({place}/_report.html). [Data Docs]({place}/_docs/)."


def _add_tasks(dag: DAG, steps: Sequence[Step], pipeline: Pipeline, cli: str) -> None:
    """Adds a task for each step to `dag`, and one that announces what was published."""
    # Airflow adds to a DAG whatever is made inside its `with` block, and the DAG to the file.
    with dag:
        tasks: dict[str, Any] = {}
        writer = writer_of(steps)
        for step in steps:
            tasks[step.command] = _make_task(step, pipeline, cli, writer)
            if step.after:
                tasks[step.after] >> tasks[step.command]
        if "publish" in tasks:
            add_announcement(pipeline, tasks["publish"])
            if pipeline.publish == EACH:
                _add_watcher([tasks[name] for name in (writer.command, "validate", "publish")])


def _make_task(step: Step, pipeline: Pipeline, cli: str, writer: Step) -> Any:
    """The task of a step. Its result is the command's last line, without `changed_days`.

    After a `writer` that found nothing new, steps that need news are skipped once readers use what
    there is.
    """

    def command(params: Mapping[str, Any], ti: Any = None) -> str:
        if step.after is not None and step is not writer:
            written = ti.xcom_pull(task_ids=writer.command)
            reason = find_reason_to_skip(step, writer, params, written)
            if reason is not None:
                raise AirflowSkipException(reason)
        # A worker of Airflow reads the DAG's file again, so TIDEMARK_TARGET is the worker's own.
        by = pipeline.placed_by
        target = None if by is None else by.target
        return command_line(cli, str(pipeline.file), step, params, target)

    operator: Any = task.bash(
        task_id=step.command,
        inlets=[Asset(f"source/{pipeline.name}")] if step is writer else [],
        env=ATTEMPT,
        append_env=True,
        output_processor=partial(_tell_figures, step.command),
        retries=RETRIES,
        retry_policy=ByExitCode(),
        execution_timeout=step.timeout,
        trigger_rule=step.trigger_rule,
    )
    return operator(command)()


def _tell_figures(command: str, result: str) -> str:
    """The result for Airflow; its figures are in the log and in an XCom of their own then."""
    figures = summarize(command, result)
    if figures is not None:
        logging.getLogger(__name__).info("%s: %s", command, figures)
        get_current_context()["ti"].xcom_push(key=SUMMARY, value=figures)
    return leave_out_days(result)


def _add_watcher(watched: Sequence[Any]) -> None:
    """The task that fails a DAG run in which a step failed although steps after it succeeded.

    Airflow decides by the last tasks of a DAG alone.
    """

    @task(task_id="watcher", trigger_rule=TriggerRule.ONE_FAILED, retries=0)
    def watcher() -> None:
        message = "a step before this one has failed; its log says why"
        raise AirflowFailException(message)

    watched >> watcher()


@dataclass(frozen=True)
class Specs:
    """The pipelines of a directory, and one sentence for each file that is not one."""

    pipelines: tuple[Pipeline, ...]
    broken: tuple[str, ...]


def read_specs(directory: Path, target: str | None = None) -> Specs:
    """Every *.yaml and *.yml in `directory`, by name, with the places of a target.

    Where the directory has the file of a project, the specs are those of the project. The target is
    the one called `target`, or else what TIDEMARK_TARGET or the project says. A file that can't be
    read, or whose DAG ids another one has, doesn't affect the others. `broken` also says where
    there is no spec at all.
    """
    pipelines: list[Pipeline] = []
    target = target or os.environ.get(TARGET) or None
    try:
        files = _list_files(directory)
    except TidemarkError as error:
        return Specs((), (str(error),))
    broken: list[str] = []
    for file in files:
        try:
            pipeline = load_pipeline(file, target)
            _check_dag_ids(pipeline, pipelines)
            pipelines.append(pipeline)
        # Whatever error a spec provokes, Airflow has to keep the DAGs of the other specs.
        except Exception as error:  # noqa: BLE001
            broken.append(_describe_error(file, error))
    return Specs(tuple(pipelines), tuple(broken))


def _list_files(directory: Path) -> list[Path]:
    """The specs of a folder or of a project; TidemarkError where there are none."""
    home = directory.absolute()
    if not home.is_dir():
        raise UsageError(f"'{directory}' is not a directory; {_NAME_SPECS}")
    project = find_project_in(str(home))
    found = list_specs(str(home)) if project is None else specs_of(project)
    if not found:
        folder = directory if project is None else project.pipelines
        raise UsageError(f"'{folder}' is a directory without *.yaml and *.yml; {_NAME_SPECS}")
    return [Path(file) for file in found]


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
