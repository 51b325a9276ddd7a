"""What has to be true of outputs, their events and their readers."""

from tests.live.airflow import Airflow
from tests.live.rest import DagRun, Json, wait_until
from tests.live.shop import Shop

OUTPUTS = ("hourly", "visits")
READER_S = 120.0
"""Within so many seconds of an event the DAG that reads hours has run."""


def assert_readers_see_the_truth(shop: Shop) -> None:
    """Nothing is lost and nothing is doubled."""
    for window in OUTPUTS:
        assert shop.shown(window) == shop.wanted(window)


def count_events(airflow: Airflow, run: DagRun, shop: Shop) -> dict[str, int]:
    """By output how many events a DAG run has given its asset."""
    events = {window: airflow.rest.events(f"{shop.name}.{window}") for window in OUTPUTS}
    return {
        window: sum(event["source_run_id"] == run.run for event in found)
        for window, found in events.items()
    }


def assert_each_publication_is_told_once(airflow: Airflow, shop: Shop, publications: int) -> None:
    """Where each publication has changed both outputs: as many events, each after the one before.

    The DAG that reads the hours has run as often.
    """
    for window in OUTPUTS:
        extras = [event["extra"] for event in airflow.rest.events(f"{shop.name}.{window}")]
        assert len(extras) == publications
        assert [extra["previous"] for extra in extras[1:]] == [e["version"] for e in extras[:-1]]
        assert extras[-1]["version"] == shop.published[window]["version"]
    wait_for_readers(airflow, shop, publications)


def wait_for_readers(airflow: Airflow, shop: Shop, count: int) -> list[Json]:
    """The runs of the DAG that reads the hours, once so many have ended; there are no others."""

    def look() -> list[Json] | None:
        runs = airflow.rest.runs(f"{shop.name}_reader")
        ended = [run for run in runs if run["state"] == "success"]
        return runs if len(ended) >= count else None

    runs = wait_until(f"the reader of {shop.name} has run {count} times", READER_S, look)
    assert len(runs) == count
    return runs
