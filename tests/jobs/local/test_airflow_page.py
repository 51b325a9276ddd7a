"""Which part of Airflow is started again once it has ended."""

from pathlib import Path

from jobs.local.airflow_page import MOST_RESTARTS, RESTARTS_WITHIN_S, Restarts, make_settings


def test_a_part_is_started_again_unless_it_ends_again_and_again() -> None:
    restarts = Restarts()
    assert [restarts.allow(float(second)) for second in range(MOST_RESTARTS)] == [True] * 3
    assert not restarts.allow(RESTARTS_WITHIN_S - 1.0)
    # The first restart is long ago by then, and one that was refused does not count.
    assert restarts.allow(float(RESTARTS_WITHIN_S))
    assert not restarts.allow(float(RESTARTS_WITHIN_S))


def test_a_lost_task_is_noticed_within_a_minute(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, 18080)
    assert settings["AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT"] == "60"
