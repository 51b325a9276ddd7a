"""What a step becomes: its shell line, its retries, its assets. No database."""

import shlex
from pathlib import Path

import pytest
from airflow.sdk import Asset
from airflow.sdk.definitions.retry_policy import RetryAction
from airflow.sdk.exceptions import AirflowFailException
from conftest import LAKE

from dags.factory import (
    BACKFILL,
    LIVE,
    RETRY_DELAY,
    assets_of,
    command_line,
    decide_retry,
    nothing_follows,
    read_specs,
)

NASTY = [
    "2013-01-01; rm -rf /",
    "$(touch /tmp/x)",
    "`id`",
    "2013-01-01' --to '2014-01-01",
    "--help",
    "{{ dag.dag_id }}",
    "yesterday",
    "2013-13-01",
    "",
    None,
    "2013-01-01T00:00:00Z\nrm",
]


@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize("name", ["from", "to"])
def test_a_parameter_that_is_no_date_time_never_becomes_a_shell_line(
    name: str, value: str | None
) -> None:
    params = {"from": "2013-01-01", "to": "2013-02-01"} | {name: value}
    with pytest.raises(
        AirflowFailException, match=rf"^{name}: .* is not a date-time; write one such as"
    ):
        command_line("tidemark", "spec.yaml", BACKFILL[0], params)


def test_date_times_are_passed_on_with_their_offset() -> None:
    line = command_line(
        "tidemark",
        "spec.yaml",
        BACKFILL[0],
        {"from": "2013-03-10T00:00:00-05:00", "to": "2013-03-11 00:00Z"},
    )
    assert line == (
        "exec tidemark backfill spec.yaml --from 2013-03-10T00:00:00-05:00 "
        "--to 2013-03-11T00:00:00+00:00 --validate --json"
    )


@pytest.mark.parametrize("path", ["/a b/c.yaml", "/a;b.yaml", "/it's/$HOME.yaml", "/`id`.yaml"])
def test_paths_are_one_word_to_the_shell(path: str) -> None:
    assert shlex.split(command_line(path, path, LIVE[0], {})) == [
        "exec",
        path,
        "run",
        path,
        "--validate",
        "--json",
    ]


@pytest.mark.parametrize("code", [2, 3, 4])
@pytest.mark.parametrize("try_number", [1, 2])
def test_a_verdict_on_spec_data_or_state_is_final(code: int, try_number: int) -> None:
    assert decide_retry(code, try_number).action is RetryAction.FAIL
    assert decide_retry(code, try_number).reason


@pytest.mark.parametrize("try_number", [1, 2, 29])
def test_busy_waits_again_and_again(try_number: int) -> None:
    assert (decide_retry(75, try_number).action, decide_retry(75, try_number).retry_delay) == (
        RetryAction.RETRY,
        RETRY_DELAY,
    )


@pytest.mark.parametrize("code", [1, 137, -9, None])
def test_anything_else_gets_three_tries(code: int | None) -> None:
    assert [decide_retry(code, n).action for n in (1, 2, 3)] == [
        RetryAction.RETRY,
        RetryAction.RETRY,
        RetryAction.FAIL,
    ]


@pytest.mark.parametrize("line", [None, "", "no json", "[]", "{}", '{"published": false}'])
def test_something_follows_whatever_does_not_say_otherwise(line: str | None) -> None:
    assert not nothing_follows(line)


def test_an_output_is_an_asset_at_its_tables_uri(specs: Path) -> None:
    (shop,) = read_specs(specs).pipelines
    assert assets_of(shop) == {
        w: Asset(name=f"shop.{w}", uri=f"file://{LAKE}/shop/{w}") for w in ("hourly", "visits")
    }
