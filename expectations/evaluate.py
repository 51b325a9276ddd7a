"""Validates the outputs of a run with Great Expectations.

outputs, pipeline, facts -> expectations (builtin and the pipeline's suite)
    -> results without row values -> outcomes and Data Docs
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from expectations.library import library
from expectations.outcome import Facts, Outcome, Verdict
from expectations.places import SUITES
from windowing.spec.pipeline import Pipeline

gx = library()

from great_expectations.data_context.types.base import ProgressBarsConfig  # noqa: E402

from expectations.builtin import SUITE, builtin_suite  # noqa: E402
from expectations.docs import directory, prune_docs, write_site  # noqa: E402
from expectations.promises import TYPES  # noqa: E402
from expectations.redact import reason_of_result, redact_results  # noqa: E402
from expectations.suite import load_suite  # noqa: E402

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
    docs: Path,
    run_name: str,
    suites: Path = SUITES,
) -> Verdict:
    """Judges every output; what can't be evaluated has failed.

    `outputs`: window name -> its table at one pinned version. A site named after the run is written
    to `docs`; it replaces one of that name, and only the newest 30 are kept. No value of a row gets
    into outcomes or pages. SpecError if the suite is wrong.
    """
    own = load_suite(pipeline, suites)
    context = _context()
    checks = {
        w: [*builtin_suite(pipeline.window(w), pipeline, facts), *own.get(w, [])] for w in outputs
    }
    batches = {
        w: (_batch(context, pipeline, w, frame), _suite(context, w, checks[w]))
        for w, frame in outputs.items()
    }
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = dict(
            zip(batches, pool.map(lambda pair: _validated(*pair), batches.values()), strict=True)
        )
    index = write_site(context, found, directory(docs, run_name))
    prune_docs(docs)
    return Verdict(
        tuple(o for name, result in found.items() for o in _outcomes(name, result, pipeline.suite)),
        index,
    )


def _context() -> Any:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context


def _batch(context: Any, pipeline: Pipeline, window: str, frame: DataFrame) -> Any:
    """One source, and so one engine, per output: two outputs are judged at a time."""
    asset = context.data_sources.add_spark(name=window, persist=False).add_dataframe_asset(
        name=f"{pipeline.name}.{window}"
    )
    return asset.add_batch_definition_whole_dataframe("whole").get_batch({"dataframe": frame})


def _suite(context: Any, window: str, checks: list[Any]) -> Any:
    return context.suites.add(gx.ExpectationSuite(name=window, expectations=checks))


def _validated(batch: Any, suite: Any) -> Any:
    result: Any = redact_results(batch.validate(suite, result_format=_RESULT_FORMAT), TYPES)
    result.meta["batch_spec"] = {"data_asset_name": batch.data_asset.name}
    return result


def _outcomes(window: str, result: Any, suite: str | None) -> list[Outcome]:
    return [_outcome(window, one, suite or "") for one in result.results]


def _outcome(window: str, result: Any, suite: str) -> Outcome:
    config = result.expectation_config
    builtin_one = config.type in TYPES
    return Outcome(
        window=window,
        suite=SUITE if builtin_one else suite,
        expectation=_label(config),
        severity=str(
            config.severity.value if hasattr(config.severity, "value") else config.severity
        ),
        success=bool(result.success),
        observed=_observed(result.result),
        detail=reason_of_result(result) or config.description or _arguments(config),
    )


def _label(config: Any) -> str:
    columns = [
        config.kwargs[name]
        for name in ("column", "column_A", "column_B")
        if config.kwargs.get(name)
    ]
    return (
        f"{config.type}({', '.join(columns or config.kwargs.get('column_list', []))})".removesuffix(
            "()"
        )
    )


def _observed(result: Mapping[str, Any]) -> str:
    if "unexpected_count" in result and "element_count" in result:
        return f"{result['unexpected_count']} of {result['element_count']} rows"
    value = result.get("observed_value")
    return "" if value is None else value if isinstance(value, str) else f"{value:g}"


def _arguments(config: Any) -> str:
    return ", ".join(
        f"{name}={value!r}"
        for name, value in config.kwargs.items()
        if name not in ("batch_id", "column", "law")
    )
