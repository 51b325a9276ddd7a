"""Validates the outputs of a run with Great Expectations.

outputs, pipeline, facts -> expectations (builtin and the pipeline's suite)
    -> results without row values -> outcomes and Data Docs
failures that were accepted -> those that last (acceptance.py)
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from expectations.library import import_great_expectations
from expectations.outcome import Facts, Outcome, Standing, Verdict
from expectations.places import SUITES
from windowing.location import Location
from windowing.spec.pipeline import Pipeline

gx = import_great_expectations()

from great_expectations.data_context.types.base import ProgressBarsConfig  # noqa: E402
from great_expectations.expectations.expectation import Expectation  # noqa: E402

from expectations.acceptance import digest_rule, find_accepted  # noqa: E402
from expectations.builtin import SUITE, builtin_suite  # noqa: E402
from expectations.docs import prune_docs, write_site  # noqa: E402
from expectations.promises import TYPES  # noqa: E402
from expectations.redact import reason_of_result, redact_results  # noqa: E402
from expectations.suite import load_suite, named_columns  # noqa: E402

_RESULT_FORMAT = {
    "result_format": "BASIC",
    "partial_unexpected_count": 0,
    "include_unexpected_rows": False,
}
_AT_ONCE = 2


def evaluate(
    outputs: Mapping[str, DataFrame],
    pipeline: Pipeline,
    facts: Facts,
    docs: Location,
    run_name: str,
    suites: Path = SUITES,
    standing: Mapping[str, Standing] | None = None,
) -> Verdict:
    """Judges every output; what can't be evaluated has failed.

    `outputs`: window name -> its table at one pinned version. `standing`: window name -> what was
    accepted of it before. A site named after the run is written to `docs`; it replaces one of that
    name, and only the newest 30 are kept. No value of a row gets into outcomes or pages. SpecError
    if the suite is wrong.
    """
    own = load_suite(pipeline, suites)
    context = _make_context()
    batches: list[Any] = []
    checks: list[Any] = []
    for window, frame in outputs.items():
        builtin = builtin_suite(pipeline.window(window), pipeline, facts)
        batches.append(_make_batch(context, pipeline, window, frame))
        checks.append(_add_suite(context, window, [*builtin, *own.get(window, [])]))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = dict(zip(outputs, pool.map(_validate_batch, batches, checks), strict=True))
    index = write_site(context, results, docs / run_name)
    prune_docs(docs)
    outcomes: list[Outcome] = []
    for window, result in results.items():
        found = _list_outcomes(window, result, pipeline.suite)
        accepted = (standing or {}).get(window)
        if accepted is not None:
            found = _accept(pipeline, found, own.get(window, []), outputs[window], accepted)
        outcomes += found
    return Verdict(tuple(outcomes), index)


def _accept(
    pipeline: Pipeline,
    found: list[Outcome],
    own: list[Expectation],
    newest: DataFrame,
    standing: Standing,
) -> list[Outcome]:
    """The outcomes, with a reason for those whose acceptance lasts."""
    failed = set()
    for outcome in found:
        if not outcome.success and not outcome.is_unknown:
            failed.add(outcome.rule)
    again = [each for each in own if digest_rule(each.configuration) in failed]
    lasting = find_accepted(newest, again, standing, partial(_observe, pipeline))
    return [replace(outcome, accepted=lasting.get(outcome.rule)) for outcome in found]


def _observe(pipeline: Pipeline, rows: DataFrame, expectation: Expectation) -> Any:
    """The value that an expectation over all rows observes; None where it can't be evaluated."""
    batch = _make_batch(_make_context(), pipeline, "rows", rows)
    result = batch.validate(expectation, result_format=_RESULT_FORMAT)
    return result.result.get("observed_value")


def _make_context() -> Any:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context


def _make_batch(context: Any, pipeline: Pipeline, window: str, frame: DataFrame) -> Any:
    """One source, and so one engine, per output: two outputs are judged at a time."""
    source = context.data_sources.add_spark(name=window, persist=False)
    asset = source.add_dataframe_asset(name=f"{pipeline.name}.{window}")
    definition = asset.add_batch_definition_whole_dataframe("whole")
    return definition.get_batch({"dataframe": frame})


def _add_suite(context: Any, window: str, checks: list[Any]) -> Any:
    return context.suites.add(gx.ExpectationSuite(name=window, expectations=checks))


def _validate_batch(batch: Any, suite: Any) -> Any:
    result: Any = redact_results(batch.validate(suite, result_format=_RESULT_FORMAT), TYPES)
    result.meta["batch_spec"] = {"data_asset_name": batch.data_asset.name}
    return result


def _list_outcomes(window: str, result: Any, suite: str | None) -> list[Outcome]:
    return [_to_outcome(window, one, suite or "") for one in result.results]


def _to_outcome(window: str, result: Any, suite: str) -> Outcome:
    config = result.expectation_config
    is_builtin = config.type in TYPES
    reason = reason_of_result(result)
    return Outcome(
        window=window,
        suite=SUITE if is_builtin else suite,
        expectation=label_expectation(config),
        severity=_name_severity(config.severity),
        success=bool(result.success),
        observed=_describe_observed(result.result),
        detail=reason or config.description or _describe_arguments(config),
        rule="" if is_builtin else digest_rule(config),
    )


def label_expectation(config: Any) -> str:
    """The type with the columns that it is about, such as `expect_...(origin, dest)`."""
    columns = named_columns(config.kwargs).values()
    label = f"{config.type}({', '.join(columns)})"
    return label.removesuffix("()")


def _name_severity(severity: Any) -> str:
    # Great Expectations has an enum member or its text here.
    return str(severity.value if hasattr(severity, "value") else severity)


def _describe_observed(result: Mapping[str, Any]) -> str:
    if "unexpected_count" in result and "element_count" in result:
        return f"{result['unexpected_count']} of {result['element_count']} rows"
    value = result.get("observed_value")
    if value is None:
        return ""
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _describe_arguments(config: Any) -> str:
    arguments = []
    for name, value in config.kwargs.items():
        if name not in ("batch_id", "column", "law"):
            arguments.append(f"{name}={value!r}")
    return ", ".join(arguments)
