"""Which part of Airflow is started again once it has ended."""

from pathlib import Path

from jobs.local.airflow_page import MOST_RESTARTS, RESTARTS_WITHIN_S, Restarts, make_settings

MINUTE_S = 60
LOOKS_EVERY_S = 10
"""How often Airflow looks for tasks that send no heartbeat, where nobody sets it."""
SCHEDULER_IS_LOST_S = 30
"""How long a scheduler has to be silent to count as lost, where nobody sets it."""
LOST_DELAY_S = 5
"""The pause before the next try, as dags/retries.py has it."""


def test_a_part_is_started_again_unless_it_ends_again_and_again() -> None:
    restarts = Restarts()
    assert [restarts.allow(float(second)) for second in range(MOST_RESTARTS)] == [True] * 3
    assert not restarts.allow(RESTARTS_WITHIN_S - 1.0)
    # The first restart is long ago by then, and one that was refused does not count.
    assert restarts.allow(float(RESTARTS_WITHIN_S))
    assert not restarts.allow(float(RESTARTS_WITHIN_S))


def test_a_lost_task_is_noticed_within_a_minute(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, 18080)
    silent_s = int(settings["AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT"])
    assert silent_s + LOOKS_EVERY_S + LOST_DELAY_S <= MINUTE_S


def test_tasks_of_a_lost_scheduler_are_noticed_within_a_minute(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, 18080)
    every_s = int(settings["AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL"])
    assert SCHEDULER_IS_LOST_S + every_s + LOST_DELAY_S <= MINUTE_S


def test_the_database_is_a_file_unless_another_one_is_named(tmp_path: Path) -> None:
    name = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
    assert make_settings(tmp_path, 18080)[name] == f"sqlite:///{tmp_path}/airflow.db"
    url = "postgresql+psycopg2://airflow@127.0.0.1/airflow"
    assert make_settings(tmp_path, 18080, url)[name] == url
