"""The public Python names of Tidemark: load a spec, open a session, and work on its pipeline.

    import tidemark

    pipeline = tidemark.load_pipeline("orders.yaml")    # or "orders", in a project
    spark = tidemark.spark_session()
    tidemark.run(spark, pipeline)
    tidemark.validate(spark, pipeline)
    tidemark.publish(pipeline)
    tidemark.read(spark, pipeline, "hourly").show()

Importing it loads neither Spark nor Great Expectations: each function does that when it is called.
So specs can be loaded, and errors caught, where the extra `spark` is not installed.
"""

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from expectations.outcome import Outcome, Validation
from windowing.errors import (
    Busy,
    ExpectationsFailed,
    SourceMissing,
    SpecError,
    StateRefused,
    TidemarkError,
    UsageError,
)
from windowing.report.alarms import Alarm
from windowing.report.periods import ClosedPeriod, ReopenedPeriod
from windowing.report.progress import RunProgress, Watch
from windowing.report.rule import Changed, Publication, RunReport
from windowing.report.status import Status
from windowing.source.rule import Followed
from windowing.spec.load import load_pipeline as load_spec
from windowing.spec.pipeline import Pipeline
from windowing.spec.project.file import TARGET

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "Alarm",
    "Busy",
    "Changed",
    "ClosedPeriod",
    "ExpectationsFailed",
    "Followed",
    "Outcome",
    "Pipeline",
    "Publication",
    "ReopenedPeriod",
    "RunProgress",
    "RunReport",
    "SourceMissing",
    "SpecError",
    "StateRefused",
    "Status",
    "TidemarkError",
    "UsageError",
    "Validation",
    "backfill",
    "close_period",
    "follow_rewrites",
    "load_pipeline",
    "publish",
    "read",
    "reopen_period",
    "run",
    "spark_session",
    "status",
    "validate",
]


def load_pipeline(
    spec: str | os.PathLike[str] | Mapping[str, Any], target: str | None = None
) -> Pipeline:
    """The pipeline that a YAML file or a mapping spells; every law of specs holds of it.

    A text such as `orders` names a pipeline of the project that the current directory is in, if
    there is one. Relative paths in a file start at the file's directory, and what its spec does not
    say is that of the `target` of its project, or of the one that TIDEMARK_TARGET or the project
    names. A mapping has absolute paths and no target.

    SpecError, in one sentence, for a wrong spec or project; UsageError for an unknown name.
    """
    if target == "":
        raise UsageError("the target is empty; name one of the project, or leave it out")
    return load_spec(spec, target or os.environ.get(TARGET) or None)


def spark_session(app_name: str = "tidemark", **conf: str) -> "SparkSession":
    """A session that reads and writes Delta, in UTC; `conf` adds to its settings or replaces them.

    `SPARK_MASTER` in the environment names a cluster, or else the target of the project that the
    current directory is in does; without either the session is local. Raises UsageError where the
    extra `spark` or the Delta JARs are missing, or where JAVA_HOME names a directory without Java.
    """
    from jobs.cli.spark_extra import require_spark_extra

    require_spark_extra()
    from jobs.engine.target_variables import target_variables
    from jobs.session import spark_session as open_session
    from jobs.sessions.process import environment_changed

    with environment_changed(target_variables((), os.environ, os.curdir)):
        return open_session(app_name, **conf)


def run(
    spark: "SparkSession",
    pipeline: Pipeline,
    arrival: datetime | None = None,
    watch: Watch = lambda progress: None,
) -> RunReport:
    """Reads everything new, corrects every output and advances the watermark once.

    The report counts the rows read by outcome, and the changed rows by window. `arrival` (aware)
    stands for the host clock; the arrival never goes back, whatever it is. A failed run is finished
    by the next one. Where there is more to read than one batch may, `watch` is called with how far
    the run has come. Raises SourceMissing, StateRefused, Busy and SpecError.
    """
    from jobs.run import run as run_once

    return run_once(spark, pipeline, arrival, watch)


def backfill(
    spark: "SparkSession",
    pipeline: Pipeline,
    start: datetime,
    end: datetime,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RunReport:
    """Reprocesses every event of [start, end) and corrects state and outputs.

    `start` is inside the range and `end` is not; both are aware. Late and refused rows of the range
    are accepted if they are valid, and the watermark stays where it is. `progress` is called with
    (chunks done, all chunks). An interrupted run or backfill is finished first. Raises as `run`
    does, and UsageError for a range that can't be backfilled.
    """
    from jobs.backfill import backfill as reprocess

    return reprocess(spark, pipeline, start, end, progress)


def follow_rewrites(
    spark: "SparkSession",
    pipeline: Pipeline,
    start: datetime | None = None,
    end: datetime | None = None,
) -> RunReport:
    """A run that also follows what was updated or deleted in the source after it had been read.

    The event times of such rows, before and after the change, are reprocessed from the newest
    version: those of [start, end), or all where there are no bounds. The source needs no change
    feed, only the files of the version that was read last. `followed` of the report has the number
    of rows that differ, the ranges that were reprocessed and those that were left out; it is None
    where no row differs. Raises as `run` does, StateRefused where those files are gone, and
    UsageError where events happen when they arrive.
    """
    from jobs.run import follow_rewrites as follow

    return follow(spark, pipeline, start, end)


def close_period(
    spark: "SparkSession", pipeline: Pipeline, until: datetime, reason: str
) -> ClosedPeriod:
    """Freezes every row of the outputs whose window ends at or before `until` (aware).

    What would change one of these rows is stated beside it from now on, and `reopen_period` applies
    it. A later `until` than that of a closed period moves it forward. The result has the number of
    frozen rows by window. Raises UsageError before anything was computed, where the watermark has
    not reached `until`, where a later period is closed, or without a reason; all else as `run`.
    """
    from jobs.close import close_period as close

    return close(spark, pipeline, until, reason)


def reopen_period(spark: "SparkSession", pipeline: Pipeline, reason: str) -> ReopenedPeriod:
    """Releases every frozen row: outputs become what they would be if nothing had been closed.

    The result has the changed rows by window. Nothing is changed where nothing is closed. Raises
    UsageError without a reason, and else as `run` does.
    """
    from jobs.close import reopen_period as reopen

    return reopen(spark, pipeline, reason)


def validate(spark: "SparkSession", pipeline: Pipeline, suites: Path | None = None) -> Validation:
    """Evaluates the expectations of the outputs as the newest finished run or backfill left them.

    A failed expectation is a result, not an error. The suite is read from `suites`, else from the
    folder `expectations` beside the spec, else from the shipped ones. Before the first finished run
    nothing is evaluated. Raises SpecError for an invalid suite file, StateRefused and Busy.
    """
    from jobs.validate import validate as evaluate

    return evaluate(spark, pipeline, suites)


def publish(pipeline: Pipeline, accept: str | None = None) -> Publication:
    """Publishes every output at the version that the newest validated run wrote.

    `accept` publishes the newest run although its expectations failed, and records that reason.
    Before the first finished run nothing is published. It needs no session. Raises
    ExpectationsFailed where expectations failed or were not evaluated, UsageError while an erase or
    a reprocessing is incomplete, or where the extra `spark` is missing, StateRefused and Busy.
    """
    from jobs.cli.spark_extra import require_spark_extra

    require_spark_extra()
    from jobs.publish import publish as publish_validated

    return publish_validated(pipeline, accept)


def status(pipeline: Pipeline, now: datetime | None = None) -> Status:
    """How the pipeline stands at `now` (aware), or now by the host clock where it is None.

    It says how far the watermark lies behind, whether that is more than `freshness` of the spec,
    what the newest run, validation and publication were, and what is open. It needs no session, and
    takes no lock. Before the first run nearly all of it is empty. Raises StateRefused where the
    ledger is damaged, and UsageError where the lake can't be read or the extra `spark` is missing.
    """
    from jobs.cli.spark_extra import require_spark_extra

    require_spark_extra()
    from jobs.status import status as read_status

    return read_status(pipeline, now)


def read(
    spark: "SparkSession",
    pipeline: Pipeline,
    window: str,
    published: bool = True,  # noqa: FBT001, FBT002 (fixed by contract)
) -> "DataFrame":
    """The rows of one output, with `is_closed` and `is_final`.

    A window is closed when the watermark has reached its end, and final when only a backfill can
    still change it. `published` reads the version that was validated and published, otherwise the
    newest. Raises UsageError for a window that the pipeline doesn't have, and where there is no
    such version; StateRefused where the ledger is damaged or the table was lost.
    """
    from jobs.read import read as read_output

    return read_output(spark, pipeline, window, published)
