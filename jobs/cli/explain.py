"""The command that prints the plan of the next run: explain."""

from typing import TYPE_CHECKING

import click

from jobs.cli.format import join_evolved
from jobs.cli.options import common
from jobs.cli.spark import open_to_read
from jobs.console import Printer
from windowing.doctor.rule import name_command
from windowing.report.text import count, instant, interval
from windowing.spec.kinds import zone_of

if TYPE_CHECKING:
    from jobs.explain import News, Plan, Touched
    from windowing.spec.fingerprint import Evolution
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
def explain(pipeline: "Pipeline", *, printer: Printer) -> None:
    """Print the plan of the next run; write nothing.

    Shows the versions of the source that it would read, the watermark, and for each output the
    windows that new events belong to.
    """
    from jobs.sessions.profiles import TINY

    session = open_to_read(TINY)
    from jobs.explain import explain as plan_of

    plan = plan_of(session, pipeline)
    printer.line(f"{pipeline.name}: run {plan.run} would read {_describe_news(plan.news)}")
    printer.facts(plan_facts(pipeline, plan))
    columns = [
        "window",
        "kind",
        "made from",
        "version",
        "published",
        "closed until",
        "windows with new events",
    ]
    printer.table(columns, [_output_cells(pipeline, output) for output in plan.outputs])
    state = [[table, ", ".join(windows)] for table, windows in plan.tables.items()]
    printer.table(["state", "serves"], state)
    printer.finish(plan.as_json())


def _describe_news(news: "News") -> str:
    if not news.commits:
        return f"nothing: version {news.version} of the source has been read"
    rows, files = count(news.rows, "row"), count(news.files, "file")
    return f"{rows} in {files} of {count(news.commits, 'commit')}"


def plan_facts(pipeline: "Pipeline", plan: "Plan") -> dict[str, str]:
    """What the plan says, by the names that are printed for it."""
    news = plan.news
    facts = {"source": str(news.table), "watermark": instant(plan.watermark)}
    if news.commits:
        facts["versions"] = f"{news.since} to {news.version}"
    else:
        facts["versions"] = f"none after {news.version}"
    if news.event_times:
        first, last = news.event_times
        facts["event times"] = f"{instant(first)} to {instant(last)}"
    if news.rewrites:
        versions = ", ".join(f"{version} ({operation})" for version, operation in news.rewrites)
        follow = name_command(pipeline, "backfill", "--source newest")
        effect = f"the run will be refused; {follow} reads what is new and reprocesses them"
        if pipeline.source.event_time.column is None:
            effect = (
                "the run will be refused; events that happen when they arrive can't be reprocessed"
            )
        if pipeline.source.changes == "feed":
            effect = "the ranges they touch will be reprocessed"
        facts["rewrites"] = f"versions that change rows already in the source: {versions}; {effect}"
    if plan.refused:
        facts["spec"] = f"the run will be refused (SPEC_CHANGED): {plan.refused}"
    elif plan.spec:
        facts["spec"] = f"{_describe_evolution(plan.spec)}, so the run rebuilds state first"
    for n, text in enumerate(plan.left_open, 1):
        facts["left open" if n == 1 else f"left open {n}"] = text
    return facts


def _describe_evolution(found: "Evolution") -> str:
    """What a changed spec adds, and what it removes."""
    said = []
    if found.added:
        said.append(f"adds {join_evolved(found.added)}")
    if found.removed:
        said.append(f"removes {join_evolved(found.removed)}")
    return " and ".join(said)


def _output_cells(pipeline: "Pipeline", output: "Touched") -> list[object]:
    zone = zone_of(pipeline.window(output.name))
    return [
        output.name,
        output.kind,
        output.state,
        output.version,
        output.published,
        instant(output.closed_until),
        interval(*output.span, zone) if output.span else None,
    ]
