"""The command that tells what the next run will do: explain."""

from typing import TYPE_CHECKING

import click

from jobs.cli.options import common
from jobs.cli.spark import asking
from jobs.console import Printer
from windowing.report.text import count, instant, interval
from windowing.spec.words import listed

if TYPE_CHECKING:
    from jobs.explain import News, Plan, Touched
    from windowing.spec.pipeline import Pipeline


@click.command()
@common
def explain(pipeline: "Pipeline", *, as_json: bool) -> None:
    """The plan of the next run; no side effect."""
    session = asking()
    from jobs.explain import explain as plan_of

    plan = plan_of(session, pipeline)
    printer = Printer(as_json=as_json)
    printer.line(f"{pipeline.name}: run {plan.run} would read {_news(plan.news)}")
    printer.facts(_facts(plan, feed=pipeline.source.changes == "feed"))
    columns = [
        "window",
        "kind",
        "made from",
        "version",
        "published",
        "closed until",
        "windows with new events",
    ]
    printer.table(columns, [_row(output) for output in plan.outputs])
    printer.table(
        ["state", "serves"], [[table, ", ".join(windows)] for table, windows in plan.tables.items()]
    )
    printer.finish(plan.as_json())


def _news(news: "News") -> str:
    if not news.commits:
        return f"nothing: version {news.version} of the source has been read"
    return f"{count(news.rows, 'row')} in {count(news.files, 'file')} of {count(news.commits, 'commit')}"


def _facts(plan: "Plan", *, feed: bool) -> dict[str, str]:
    news, facts = plan.news, {"source": plan.news.table, "watermark": instant(plan.watermark)}
    facts["versions"] = (
        f"{news.since} to {news.version}" if news.commits else f"none after {news.version}"
    )
    if news.event_times:
        facts["event times"] = f"{instant(news.event_times[0])} to {instant(news.event_times[1])}"
    if news.rewrites:
        versions = ", ".join(f"{version} ({operation})" for version, operation in news.rewrites)
        fate = "the ranges they touch will be counted again" if feed else "the run will be refused"
        facts["rewrites"] = f"versions that change rows already in the source: {versions}; {fate}"
    if plan.spec.changed:
        facts["spec"] = (
            f"{listed(plan.spec.changed)} differ from what made the state, so the run will be refused"
        )
    elif plan.spec:
        facts["spec"] = (
            f"{listed((*plan.spec.added, *plan.spec.removed))} came or went; the run makes state anew first"
        )
    return facts | {
        f"left open {n}".removesuffix(" 1"): text for n, text in enumerate(plan.left_open, 1)
    }


def _row(output: "Touched") -> list[object]:
    span = interval(*output.span) if output.span else None
    return [
        output.name,
        output.kind,
        output.state,
        output.version,
        output.published,
        instant(output.closed_until),
        span,
    ]
