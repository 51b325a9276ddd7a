"""The expectations every output has to meet, whatever its pipeline: one Great Expectations type per rule of its law.

All of one output share one metric, so Spark reads the output once for them together.
"""

from typing import Any, ClassVar

from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.metrics.metric_provider import metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider

from expectations.law import Breaches, Law, breaches, law_from, law_of, missing
from expectations.outcome import Facts
from windowing.spec.duration import Duration
from windowing.spec.pipeline import Pipeline, Session, Sliding, Tumbling, Window

SUITE = "builtin"
_METRIC = "window.breaches"


class WindowBreaches(TableMetricProvider):
    """Frame of one output -> how many of its rows break each rule of `law`, and the names of columns it lacks."""

    metric_name = _METRIC
    value_keys = ("law",)

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(cls, execution_engine: Any, metric_domain_kwargs: Any, metric_value_kwargs: Any, **_: Any) -> dict[str, Any]:
        frame, law = execution_engine.get_domain_records(domain_kwargs=metric_domain_kwargs), law_from(metric_value_kwargs["law"])
        lacking = missing(law, frame.columns)
        return {"missing": lacking, "found": None if lacking else breaches(frame, law)}


class _WindowExpectation(BatchExpectation):
    """Meets its rule if no row of the output breaks it; can't be evaluated if columns are missing."""

    law: dict[str, Any]

    metric_dependencies = (_METRIC,)
    success_keys: ClassVar[tuple[str, ...]] = ("law",)
    breach: ClassVar[str] = "rows"

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: Any = None,
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        success, observed = self._judge(**metrics[_METRIC])
        return {"success": success, "result": {"observed_value": observed}}

    def _judge(self, missing: list[str], found: Breaches | None) -> tuple[bool, str]:
        """Whether the output meets the rule, and what was seen."""
        if found is None:
            raise LookupError(f"the output lacks {', '.join(missing)}")
        return self._weigh(found)

    def _weigh(self, found: Breaches) -> tuple[bool, str]:
        return found[self.breach] == 0, f"{found[self.breach]} of {_plural(found['rows'])}"


class ExpectWindowColumnsToExist(_WindowExpectation):
    """The key, the bounds, the aggregates, `revision` and `run` are there."""

    def _judge(self, missing: list[str], found: Breaches | None) -> tuple[bool, str]:
        return not missing, f"lacks {', '.join(missing)}" if missing else "all there"


class ExpectWindowKeyAndBoundsNotToBeNull(_WindowExpectation):
    """No NULL in the key or the bounds."""

    breach = "null"


class ExpectWindowStartBeforeEnd(_WindowExpectation):
    """`window_start` lies before `window_end`."""

    breach = "order"


class ExpectWindowsToBeUnique(_WindowExpectation):
    """No two rows are the same window of the same key."""

    breach = "twice"


class ExpectWindowsToLieOnGrid(_WindowExpectation):
    """Start and end are boundaries of the window's grid, one size apart."""

    breach = "grid"


class ExpectWindowCountsNotToBeNegative(_WindowExpectation):
    """Counts are there and not below zero."""

    breach = "negative"


class ExpectSessionsNotToOverlap(_WindowExpectation):
    """A key's sessions lie more than the gap apart."""

    breach = "overlap"


class ExpectSessionsToEndGapAfterLastEvent(_WindowExpectation):
    """`window_end` is `last_event` plus the gap, and `last_event` isn't before `window_start`."""

    breach = "end"


class ExpectWindowsOnceEventsWereAccepted(_WindowExpectation):
    """At least `least` rows, so that an empty output doesn't pass everything else."""

    least: int
    success_keys = ("law", "least")

    def _weigh(self, found: Breaches) -> tuple[bool, str]:
        return found["rows"] >= self.least, _plural(found["rows"])


class ExpectWindowCountsToAddUp(_WindowExpectation):
    """The counts in `column` add up to `total`: every accepted event counts once."""

    column: str
    total: int
    success_keys = ("law", "total")

    def _weigh(self, found: Breaches) -> tuple[bool, str]:
        total = found[f"total.{self.column}"]
        return total == self.total, f"{total}"


TYPES = frozenset(kind.expectation_type for kind in _WindowExpectation.__subclasses__())
"""The names of all builtin expectations."""


def builtin(window: Window, pipeline: Pipeline, facts: Facts) -> list[BatchExpectation]:
    """What the output of `window` must meet after the run that `facts` tell of; all critical."""
    law = law_of(window, pipeline.source.key)
    on_grid = [] if isinstance(window, Session) else [_expect(ExpectWindowsToLieOnGrid, law, _grid_text(window))]
    counts = [_expect(ExpectWindowCountsNotToBeNegative, law, f"{', '.join(law.counts)}: never below zero")] if law.counts else []
    return [
        _expect(ExpectWindowColumnsToExist, law, f"Has the columns {', '.join(law.columns)}"),
        _expect(ExpectWindowKeyAndBoundsNotToBeNull, law, f"No NULL in {', '.join((*law.key, *law.bounds))}"),
        _expect(ExpectWindowStartBeforeEnd, law, "window_start lies before window_end"),
        _expect(ExpectWindowsToBeUnique, law, f"One row per {', '.join(law.identity)}"),
        *on_grid,
        *(_session(window, law) if isinstance(window, Session) else []),
        *counts,
        _floor(window, law, facts),
        *(_conservation(window, law, facts) if isinstance(window, Tumbling) else []),
    ]


def _session(window: Session, law: Law) -> list[BatchExpectation]:
    gap = Duration(window.gap_us)
    return [
        _expect(ExpectSessionsNotToOverlap, law, f"A key's sessions lie more than {gap} apart"),
        _expect(ExpectSessionsToEndGapAfterLastEvent, law, f"window_end is last_event plus {gap}, and last_event not before window_start"),
    ]


def _floor(window: Window, law: Law, facts: Facts) -> BatchExpectation:
    least = 1 if facts.counted(window.name) > 0 else 0
    text = "Holds a window, since events were accepted" if least else "May be empty: no accepted event counts here"
    return _expect(ExpectWindowsOnceEventsWereAccepted, law, text, least=least)


def _conservation(window: Tumbling, law: Law, facts: Facts) -> list[BatchExpectation]:
    total, missed = facts.counted(window.name), facts.partial.get(window.name, 0)
    text = f"adds up to the accepted events that count here: {facts.accepted} - {missed} = {total}"
    counting = [a.name for a in window.aggregates if a.function == "count" and a.column is None]
    return [_expect(ExpectWindowCountsToAddUp, law, f"{name} {text}", column=name, total=total) for name in counting]


def _expect(kind: type[_WindowExpectation], law: Law, description: str, **more: Any) -> BatchExpectation:
    return kind(law=law.as_mapping(), description=description, severity=FailureSeverity.CRITICAL, **more)


def _grid_text(window: Tumbling | Sliding) -> str:
    grid = window.grid
    step = Duration(grid.step_us, grid.months)
    span = (
        f"begin every {step} and last {Duration(window.size_us)}"
        if isinstance(window, Sliding)
        else f"run from one boundary to the next, every {step}"
    )
    return f"Windows {span} on the clock of {grid.zone or 'UTC'}"


def _plural(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"
