"""The builtin expectations: one Great Expectations type per rule of an output's law.

All of one output share one metric, so Spark reads the output once for them together.
"""

from typing import Any, ClassVar

from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.expectation import BatchExpectation
from great_expectations.expectations.metrics.metric_provider import metric_value
from great_expectations.expectations.metrics.table_metric_provider import TableMetricProvider

from expectations.breaches import Breaches, count_breaches
from expectations.law import law_from, missing_columns

_METRIC = "window.breaches"


class WindowBreaches(TableMetricProvider):
    """Frame of one output -> rows that break each rule of `law`, and the columns that are missing.

    `found` is None if columns are missing, because the rules can't be evaluated then.
    """

    metric_name = _METRIC
    value_keys = ("law",)

    @metric_value(engine=SparkDFExecutionEngine)
    def _spark(
        cls, execution_engine: Any, metric_domain_kwargs: Any, metric_value_kwargs: Any, **_: Any
    ) -> dict[str, Any]:
        frame = execution_engine.get_domain_records(domain_kwargs=metric_domain_kwargs)
        law = law_from(metric_value_kwargs["law"])
        missing = missing_columns(law, frame.columns)
        if missing:
            return {"missing": missing, "found": None}
        return {"missing": missing, "found": count_breaches(frame, law)}


class WindowExpectation(BatchExpectation):
    """Succeeds if no row breaks the rule `breach`; fails with a reason if columns are missing."""

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
        success, observed = self._judge_metric(**metrics[_METRIC])
        return {"success": success, "result": {"observed_value": observed}}

    def _judge_metric(self, missing: list[str], found: Breaches | None) -> tuple[bool, str]:
        """Whether the expectation succeeds, and the value observed; LookupError without columns."""
        if found is None:
            raise LookupError(f"the output lacks {', '.join(missing)}")
        return self._judge_breaches(found)

    def _judge_breaches(self, found: Breaches) -> tuple[bool, str]:
        broken = found[self.breach]
        return broken == 0, f"{broken} of {_row_count_text(found['rows'])}"


class ExpectWindowColumnsToExist(WindowExpectation):
    """The key, the bounds, the aggregates, `revision` and `run` are there."""

    def _judge_metric(self, missing: list[str], found: Breaches | None) -> tuple[bool, str]:
        if missing:
            return False, f"lacks {', '.join(missing)}"
        return True, "all there"


class ExpectWindowKeyAndBoundsNotToBeNull(WindowExpectation):
    """No NULL in the key or, where windows have them, the bounds."""

    breach = "null"


class ExpectWindowStartBeforeEnd(WindowExpectation):
    """`window_start` lies before `window_end`."""

    breach = "order"


class ExpectWindowsToBeUnique(WindowExpectation):
    """No two rows are the same window of the same key."""

    breach = "twice"


class ExpectWindowsToLieOnGrid(WindowExpectation):
    """Start and end are boundaries of the window's grid that belong together."""

    breach = "grid"


class ExpectWindowCountsNotToBeNegative(WindowExpectation):
    """Counts are there and not below zero."""

    breach = "negative"


class ExpectSessionsNotToOverlap(WindowExpectation):
    """A key's session begins beyond the gap after the one before, or where that one was cut."""

    breach = "overlap"


class ExpectSessionsToEndGapAfterLastEvent(WindowExpectation):
    """`window_end` is `last_event` plus the gap, or the cut, and `last_event` lies inside."""

    breach = "end"


class ExpectWindowIndexNotToBeNegative(WindowExpectation):
    """`window_index` is 0 or more."""

    breach = "index"


class ExpectWindowsToFollowEventOrder(WindowExpectation):
    """A key's windows, by `window_index`, go forward in time."""

    breach = "sequence"


class ExpectGlobalWindowsToHaveNoBounds(WindowExpectation):
    """`window_start` and `window_end` are NULL."""

    breach = "endless"


class ExpectWindowsOnceEventsWereAccepted(WindowExpectation):
    """At least `least` rows, because an empty output meets every other expectation."""

    least: int
    success_keys = ("law", "least")

    def _judge_breaches(self, found: Breaches) -> tuple[bool, str]:
        rows = found["rows"]
        return rows >= self.least, _row_count_text(rows)


class ExpectWindowCountsToAddUp(WindowExpectation):
    """The counts in `column` sum to `total`, because every accepted event counts once."""

    column: str
    total: int
    success_keys = ("law", "total")

    def _judge_breaches(self, found: Breaches) -> tuple[bool, str]:
        total = found[f"total.{self.column}"]
        return total == self.total, f"{total}"


BREACHES = {kind.expectation_type: kind.breach for kind in WindowExpectation.__subclasses__()}
"""By the name of a builtin expectation the rule of the law that it judges by."""
TYPES = frozenset(BREACHES)
"""The names of all builtin expectations."""


def _row_count_text(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows} rows"
