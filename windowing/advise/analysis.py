"""A history, judged: how late events are, what settings of the watermark cost, a proposal.

pipeline + `Reading` -> `Advice`
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from windowing.advise.advice import (
    EVER_US,
    Advice,
    Checked,
    Named,
    OpenWindow,
    Target,
    Wanted,
)
from windowing.advise.cost import Cost, find_closings, find_cost, find_open_rows
from windowing.advise.ends import has_sessions
from windowing.advise.groups import ALL, MOST, NEARLY_ALL, Lateness, measure_all, measure_groups
from windowing.advise.history import (
    History,
    Judged,
    build_history,
    find_bases,
    find_highest,
    find_margins,
    judge,
)
from windowing.advise.keys import FEW, find_odd_keys
from windowing.advise.open_windows import Span, list_open, pair_events
from windowing.advise.reading import Reading
from windowing.advise.rule import Lengths, Margins, Settings, propose, round_up
from windowing.advise.share import Check, ShareCurve, check_curve, learn_curve
from windowing.errors import SpecError
from windowing.grid.boundaries import Instants, find_local_hours
from windowing.grid.zone import moment
from windowing.spec.duration import DAY, HOUR
from windowing.spec.kinds import Aligned, Global
from windowing.spec.pipeline import Pipeline
from windowing.spec.retention import check_state

MOST_GROUPS = 10
"""How many groups are listed, the latest ones."""
_MOST_PERIODS = 30
_PERIODS = (HOUR, 6 * HOUR, DAY, 7 * DAY, 28 * DAY)
"""How long the stretches are by which lateness is shown over time."""
TARGETS = (MOST, NEARLY_ALL, ALL)
"""For which shares of events it is told what would have been enough."""


def advise_watermark(pipeline: Pipeline, reading: Reading, wanted: Wanted) -> Advice:
    """What the events that were read say about the watermark."""
    history = build_history(pipeline, reading.batches, reading.events, wanted.every_us)
    source = str(pipeline.source.table)
    judged = judge(pipeline, history) if len(history.events.time) else None
    events = 0 if judged is None else len(judged.age)
    if judged is None or not events:
        why = _explain_unknown(history, reading.cut_by)
        return Advice(pipeline.name, source, reading, history, 0, unknown=why)
    margins = find_margins(judged)
    closings = find_closings(history, judged, pipeline.watermark)
    open_rows = find_open_rows(history, judged, pipeline.watermark)

    def cost_of(settings: Settings) -> Cost:
        return find_cost(settings, margins, closings, open_rows)

    whole = measure_all(judged)
    groups = measure_groups(judged, judged.events.group)
    latest = _choose_latest(groups)
    odd = find_odd_keys(history, judged, whole.behind_us[1])
    windows, checks = _judge_windows(pipeline, history, reading.complete_from_us)
    chosen = propose(margins, wanted.on_time, wanted.counted)
    return Advice(
        pipeline.name,
        source,
        reading,
        history,
        events,
        all=whole,
        histogram=tuple(Lengths.of(judged.behind).histogram()),
        groups=tuple(Named(", ".join(reading.groups[g.group]), g) for g in latest),
        others=len(groups) - len(latest),
        hours=_measure_hours(pipeline, judged),
        periods=_measure_periods(judged),
        present=cost_of(_read_settings(pipeline)),
        targets=tuple(
            Target(share, need, cost_of(Settings(round_up(need), 0)))
            for share in TARGETS
            for need in (margins.need_for(share),)
        ),
        proposed=cost_of(chosen),
        odd_keys=tuple((", ".join(reading.keys[one.key]), one) for one in odd),
        windows=windows,
        checks=checks,
        notes=tuple(_find_notes(pipeline, margins, wanted, chosen)),
    )


_MORE = {"--since": "name an earlier time by --since", "--rows": "read more rows by --rows"}


def _explain_unknown(history: History, cut_by: str | None) -> str:
    more = None if cut_by is None else _MORE[cut_by]
    if not len(history.events.time):
        if more is not None:
            return f"{cut_by} leaves no event of the source that could be read; {more}"
        return "no event of the source could be read; land events in it and advise again"
    if more is not None:
        return (
            "all events that were read arrived at once, so it can't be told how late they are; "
            f"{more}"
        )
    return (
        "all events arrived at once, so it can't be told how late they are; what is needed are "
        "events of at least two commits, better of some days"
    )


def _read_settings(pipeline: Pipeline) -> Settings:
    lateness_us = pipeline.watermark.allowed_lateness_us
    return Settings(pipeline.watermark.delay_us, EVER_US if lateness_us is None else lateness_us)


def _choose_latest(groups: Sequence[Lateness]) -> list[Lateness]:
    """The groups of which 99 % of the events are latest, the latest first.

    Those with few events come last, because of them one event is 99 %.
    """

    def rank(group: Lateness) -> tuple[int, int, int]:
        return group.events < FEW, -group.behind_us[1], -group.events

    return sorted(groups, key=rank)[:MOST_GROUPS]


def find_zone(pipeline: Pipeline) -> str | None:
    """The zone in which hours of the day are counted: that of the source, or of a window."""
    zones = [pipeline.source.zone, *(window.grid.zone for window in pipeline.aligned)]
    return next((zone for zone in zones if zone is not None), None)


def _measure_hours(pipeline: Pipeline, judged: Judged) -> tuple[Named, ...]:
    hours = find_local_hours(find_zone(pipeline), judged.events.time)
    found = measure_groups(judged, hours)
    return tuple(Named(f"{each.group:02}:00", each) for each in found)


def _measure_periods(judged: Judged) -> tuple[Named, ...]:
    """By stretches of arrival that are as short as gives few enough of them."""
    long_us = int(judged.arrived.max() - judged.arrived.min())
    fitting = [us for us in _PERIODS if long_us <= us * _MOST_PERIODS]
    length = fitting[0] if fitting else _PERIODS[-1]
    found = measure_groups(judged, judged.arrived // length)
    shown = "%Y-%m-%d" if length >= DAY else "%Y-%m-%d %H:%MZ"
    return tuple(Named(moment(g.group * length).strftime(shown), g) for g in found)[-_MOST_PERIODS:]


def _judge_windows(
    pipeline: Pipeline, history: History, complete_from_us: int | None
) -> tuple[tuple[OpenWindow, ...], tuple[Checked, ...]]:
    """The open windows of grids with their shares, and how well such shares were met.

    Of those that begin before `complete_from_us` it is not known how many events have arrived.
    """
    arrived = history.batches.arrived_us
    highest = np.maximum(find_highest(history), find_bases(history, pipeline.watermark))
    closed_us, until_us = int(highest[-1]) - pipeline.watermark.delay_us, int(arrived[-1])
    events = history.events
    time = np.sort(events.time)
    windows: list[OpenWindow] = []
    checks: list[Checked] = []
    for window in pipeline.aligned:
        curves, found = _learn_shares(window, events.time, arrived[events.batch], arrived)
        checks += [Checked(window.name, check) for check in found]
        for span in list_open(window, closed_us, until_us + 1):
            found_open = _measure_open(window.name, span, time, curves, until_us)
            if complete_from_us is not None and span.start_us < complete_from_us:
                found_open = replace(found_open, events=None)
            windows.append(found_open)
    return tuple(windows), tuple(checks)


def _learn_shares(
    window: Aligned, time: Instants, arrived: Instants, batches: Instants
) -> tuple[dict[int, ShareCurve], tuple[Check, ...]]:
    """The curves of the windows by their numbers, and how well that of the longest was met."""
    # What began before the first batch may have arrived with it.
    pairs = pair_events(window, time, arrived, int(batches[0]))
    until_us = int(batches[-1])
    curves = {}
    checks: tuple[Check, ...] = ()
    for number in np.unique(pairs.number).tolist():
        those = pairs.select(pairs.number == number)
        curve = learn_curve(those, until_us)
        if curve is not None:
            curves[number] = curve
            checks = check_curve(those, (int(batches[0]) + until_us) // 2, until_us)
    return curves, checks


def _measure_open(
    output: str, span: Span, time: Instants, curves: dict[int, ShareCurve], until_us: int
) -> OpenWindow:
    low, high = np.searchsorted(time, [span.start_us, span.end_us]).tolist()
    curve = curves.get(span.number)
    share = None if curve is None else curve.find_share(until_us - span.end_us)
    return OpenWindow(output, moment(span.start_us), moment(span.end_us), high - low, share)


def _find_notes(
    pipeline: Pipeline, margins: Margins, wanted: Wanted, chosen: Settings
) -> list[str]:
    """What limits the figures, and what of the spec would refuse the proposal."""
    found = []
    total = margins.first.total
    if total * (1 - wanted.counted) < 1 and wanted.counted < 1:
        found.append(f"so few events ({total:,}) can't tell that share from all of them")
    if all(isinstance(window, Global) for window in pipeline.windows):
        found.append("global windows never close, so nothing is ever late, whatever the settings")
    if has_sessions(pipeline):
        found.append(
            "of session windows the figures are the most that can be: an event that joins an open "
            "session is accepted for longer"
        )
    if pipeline.watermark.idle_after_us is not None:
        found.append("idle_after is taken as if a run had looked just before each commit")
    refused = _explain_refusal(pipeline, chosen)
    if refused is not None:
        found.append(f"before the proposal is used, {refused}")
    return found


def _explain_refusal(pipeline: Pipeline, chosen: Settings) -> str | None:
    """Why the spec can't have these settings; None where it can."""
    watermark = replace(
        pipeline.watermark, delay_us=chosen.delay_us, allowed_lateness_us=chosen.lateness_us
    )
    try:
        check_state("retention.state", watermark, pipeline.retention, pipeline.windows)
    except SpecError as error:
        return f"change retention.state: {error.message}"
    if pipeline.freshness_us is not None and pipeline.freshness_us <= chosen.delay_us:
        return "change freshness, which has to be longer than the delay"
    return None
