"""Tells Airflow what readers use now: an event for each output, and one for each day that changed.

what `publish` says -> what the last event of a publication has not told -> events
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from airflow.sdk import Asset, AssetAlias, task
from airflow.sdk.exceptions import AirflowSkipException

from windowing.spec.pipeline import Pipeline

MOST_KEYS = 100
"""How many days of all outputs together are told at once.

Airflow starts a DAG run for each, and stores all of them by one request, at some 10 ms each, for
which it allows five seconds unless it is told otherwise.
"""

MOST_EVENTS = 100
"""How many of the last events of an asset are looked at for the last one that `announce` made.

Anyone may make others, by hand on its page or by the REST API.
"""

Output = Mapping[str, Any]
"""What `publish` says of an output."""


def assets_of(pipeline: Pipeline) -> dict[str, Asset]:
    """Window name -> the asset `{pipeline}.{window}` of its output.

    Airflow knows it by its name alone, so a lake can move. Where the table lies is told by events.
    """
    return {window.name: Asset(f"{pipeline.name}.{window.name}") for window in pipeline.windows}


def assets_of_days(pipeline: Pipeline) -> dict[str, Asset]:
    """Window name -> the asset `{pipeline}.{window}.days`, whose partitions are days."""
    return {name: Asset(f"{asset.name}.days") for name, asset in assets_of(pipeline).items()}


def add_announcement(pipeline: Pipeline, published: Any) -> Any:
    """The task that tells Airflow what readers use now, where it has not been told before.

    What was told last is what the last event says that told of a publication. So there is one event
    for each output that a publication has changed, whoever published it and however often the task
    runs, and one for each of its days that changed since. Airflow stores all of them together.
    """
    assets, days_assets = assets_of(pipeline), assets_of_days(pipeline)
    # Of the outlets of a task each one gets an event. An alias gets those that are added to it.
    alias = AssetAlias(pipeline.name)
    outlets = [alias, *days_assets.values()]

    @task(task_id="announce", outlets=outlets, inlets=[*assets.values()], retries=2)
    def announce(
        published: str, *, inlet_events: Any = None, outlet_events: Any = None, ti: Any = None
    ) -> None:
        outputs = json.loads(published)["outputs"]
        told: list[Any] = [alias]
        changed: dict[str, list[str] | None] = {}
        for window, asset in assets.items():
            events = inlet_events[asset].ascending(False).limit(MOST_EVENTS)
            last = find_last(event.extra for event in events)
            if window in outputs and not was_announced(outputs[window], last):
                changed[window] = find_changed_days(outputs[window], last)
        days = choose_days({assets[window].name: each for window, each in changed.items()})
        for window in changed:
            asset = assets[window]
            extra = {**leave_out_history(outputs[window]), "uri": pipeline.table(window).uri}
            outlet_events[alias].add(asset, extra=extra)
            if days[asset.name]:
                of_days = outlet_events[days_assets[window]]
                of_days.extra = extra
                of_days.add_partitions(days[asset.name])
                told.append(days_assets[window])
        if not changed:
            message = "readers use what was announced last"
            raise AirflowSkipException(message)
        # An asset without a changed day would get an event without a day.
        ti.task.outlets = told

    return announce(published)


def find_last(extras: Iterable[Output | None]) -> list[Output]:
    """Of the events of an asset, newest first, the first one that told of a publication, if any."""
    return [extra for extra in extras if extra is not None and "entry" in extra][:1]


def was_announced(output: Output, last: Sequence[Output]) -> bool:
    """Whether the last event of a publication, if any, told of an output what readers use now.

    It may have told of a later publication than a task that is late or was cleared. A version may
    have been told of another table, before the pipeline was reset.
    """
    identity = ("version", "entry", "at")
    return any(
        [output.get(name) for name in identity] == [e.get(name) for name in identity]
        or _is_outdated(output, e)
        for e in last
    )


def _is_outdated(output: Output, event: Output) -> bool:
    """Whether an event told of a later publication of an output."""
    if output.get("entry") in (None, event.get("entry")) or output.get("at") is None:
        return False
    return _is_before(output["entry"], output["at"], event)


def leave_out_history(output: Output) -> dict[str, Any]:
    """What an event says of an output."""
    return {name: value for name, value in output.items() if name != "changes"}


def find_changed_days(output: Output, last: Sequence[Output]) -> list[str] | None:
    """The days of an output that changed since its last event, or ever where it had none.

    None where that is not known, as the command or a publication is of an earlier version.
    """
    if "changes" not in output:
        return None
    days: set[str] = set()
    for change in output["changes"]:
        if any(_is_before(change["publication"], change["at"], event) for event in last):
            continue
        if change["days"] is None:
            return None
        for days_range in change["days"]:
            days.update(_list_days(days_range["first"], days_range["last"]))
    return sorted(days)


def _is_before(publication: int, at: str, event: Output) -> bool:
    """Whether an event told what readers saw after the publication of that number and time.

    After a reset or a restore the numbers of publications begin again, and times do not.
    """
    told, told_at = event.get("entry"), event.get("at")
    if told is None or told_at is None:
        return False
    is_later = datetime.fromisoformat(at) > datetime.fromisoformat(told_at)
    return bool(publication <= told) and not is_later


def _list_days(first: str, last: str) -> list[str]:
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    return [(begin + timedelta(days=n)).isoformat() for n in range((end - begin).days + 1)]


def choose_days(changed: Mapping[str, list[str] | None]) -> dict[str, list[str]]:
    """By name the days that partition keys tell.

    Where all together are too many, the longest lists are left out first. An output of which no day
    is told, or of which the days are not known, has a line in the log.
    """
    log = logging.getLogger(__name__)
    chosen = {name: days or [] for name, days in changed.items()}
    for name, days in changed.items():
        if days is None:
            log.warning("%s: not all publications since the last event name their days", name)
    while sum(map(len, chosen.values())) > MOST_KEYS:
        name = max(chosen, key=lambda name: len(chosen[name]))
        line = (
            "%s: %s days have changed, and those of all outputs together are more than %s; no day "
            "of it is told, so start readers by hand"
        )
        log.warning(line, name, f"{len(chosen[name]):,}", f"{MOST_KEYS:,}")
        chosen[name] = []
    return chosen
