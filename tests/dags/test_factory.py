"""What a step becomes: its shell line, its retries, its assets. No database."""

import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.definitions.retry_policy import RetryAction
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from conftest import publication

from dags.announcement import assets_of, was_announced
from dags.factory import read_specs
from dags.retries import RETRY_DELAY, ByExitCode, decide_retry
from dags.steps import (
    BACKFILL,
    LIVE,
    command_line,
    find_reason_to_skip,
    nothing_follows,
    publish_as,
)

SHOWN = publication("2013-01-02T00:00:00+00:00")["hourly"]
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


@pytest.mark.parametrize("value", [each for each in NASTY if each is not None])
@pytest.mark.parametrize("name", ["from", "to"])
def test_a_parameter_that_is_no_date_time_never_becomes_a_shell_line(name: str, value: str) -> None:
    params = {"from": "2013-01-01", "to": "2013-02-01"} | {name: value}
    with pytest.raises(
        AirflowFailException, match=rf"^{name}: .* is not a date-time; write one such as"
    ):
        command_line("tidemark", "spec.yaml", BACKFILL[0], params)


def test_a_parameter_that_there_is_not_never_becomes_a_shell_line() -> None:
    params = {"from": "2013-01-01", "to": "2013-02-01", "dryrun": True}
    sentence = (
        "^dryrun: no such parameter; backfill has from, to, source, check, dry_run, and nothing "
        "was done$"
    )
    with pytest.raises(AirflowFailException, match=sentence):
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
        "--to 2013-03-11T00:00:00+00:00 --validate --json </dev/null"
    )


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"source": "newest"}, "--source newest --validate --json"),
        ({"source": "read", "check": False, "dry_run": False}, "--validate --json"),
        ({"check": True}, "--check --json"),
        ({"dry_run": True}, "--dry-run --json"),
        # The command says that these exclude each other.
        ({"check": True, "dry_run": True}, "--check --dry-run --json"),
    ],
    ids=["newest", "usual", "check", "dry run", "both"],
)
def test_what_a_backfill_does_is_passed_on(params: dict[str, Any], words: str) -> None:
    line = command_line("tidemark", "spec.yaml", BACKFILL[0], params)
    assert line == f"exec tidemark backfill spec.yaml {words} </dev/null"


def test_what_was_marked_as_successful_is_published() -> None:
    publish, writer = next(s for s in LIVE if s.command == "publish"), LIVE[0]
    assert find_reason_to_skip(publish, writer, {}, None) is None
    (each,) = (s for s in publish_as(LIVE, "each") if s.command == "publish")
    assert find_reason_to_skip(each, writer, {}, None) == "run has failed"


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"source": "latest"}, "source: 'latest' is none of read, newest"),
        ({"check": "true"}, "check: 'true' is neither true nor false"),
        ({"dry_run": 1}, "dry_run: 1 is neither true nor false"),
    ],
    ids=["source", "check", "dry run"],
)
def test_a_value_that_a_parameter_can_not_have_is_refused(
    params: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(AirflowFailException, match=f"^{sentence}$"):
        command_line("tidemark", "spec.yaml", BACKFILL[0], params)


@pytest.mark.parametrize("path", ["/a b/c.yaml", "/a;b.yaml", "/it's/$HOME.yaml", "/`id`.yaml"])
def test_paths_are_one_word_to_the_shell(path: str) -> None:
    assert shlex.split(command_line(path, path, LIVE[0], {})) == [
        "exec",
        path,
        "run",
        path,
        "--validate",
        "--json",
        "</dev/null",
    ]


@pytest.mark.parametrize("code", [2, 3, 4])
@pytest.mark.parametrize("failures", [0, 2])
def test_a_verdict_on_spec_data_or_state_is_final(code: int, failures: int) -> None:
    assert decide_retry(code, failures).action is RetryAction.FAIL
    assert decide_retry(code, failures).reason


@pytest.mark.parametrize("failures", [0, 2, 29])
def test_busy_waits_again_and_again(failures: int) -> None:
    assert (decide_retry(75, failures).action, decide_retry(75, failures).retry_delay) == (
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


def ended(code: int, store: object) -> Any:
    """What Airflow tells of a task whose command has ended with this code."""
    hook = SimpleNamespace(sub_process=SimpleNamespace(returncode=code))
    return {"task": SimpleNamespace(subprocess_hook=hook), "task_state_store": store}


class Store(dict[str, Any]):
    """What Airflow keeps of a task from one try to the next one."""

    set = dict.__setitem__


def decide(code: int, store: object, try_number: int = 1, max_tries: int = 120) -> RetryAction:
    error = AirflowException("the command has failed")
    return ByExitCode().evaluate(error, try_number, max_tries, ended(code, store)).action


def test_a_task_that_is_cleared_has_three_tries_again() -> None:
    store = Store()
    retry, fail = RetryAction.RETRY, RetryAction.FAIL
    assert [decide(1, store, n) for n in (1, 2, 3)] == [retry, retry, fail]
    # Airflow raises the greatest number of tries then, and counts them on.
    assert [decide(1, store, n, 123) for n in (4, 5, 6)] == [retry, retry, fail]


def test_all_tries_count_where_airflow_keeps_nothing() -> None:
    assert decide(1, None, 2) is RetryAction.RETRY
    assert decide(1, None, 3) is RetryAction.FAIL


@pytest.mark.parametrize("line", [None, "", "no json", "[]", "{}", '{"published": false}'])
def test_something_follows_whatever_does_not_say_otherwise(line: str | None) -> None:
    assert not nothing_follows(line)


def test_an_output_is_an_asset_by_its_name_wherever_its_lake_is(specs: Path) -> None:
    (shop,) = read_specs(specs).pipelines
    assert assets_of(shop) == {w: Asset(f"shop.{w}") for w in ("hourly", "visits")}


@pytest.mark.parametrize(
    "last",
    [
        [SHOWN],
        [SHOWN | {"rows": 1, "uri": "file:///moved"}],
        [SHOWN | {"version": 9, "entry": 90, "at": "2099-01-01T00:00:00+00:00"}],
    ],
    ids=["same", "moved lake", "a later one"],
)
def test_what_the_last_event_says_was_announced(last: list[dict[str, Any]]) -> None:
    assert was_announced(SHOWN, last)


@pytest.mark.parametrize(
    "last",
    [
        [],
        [SHOWN | {"version": 2}],
        [SHOWN | {"at": "2013-01-01T00:00:00+00:00"}],
        [{"version": 3, "rows": 24}],
    ],
    ids=["nothing", "an older one", "before a reset", "by 0.1"],
)
def test_what_it_does_not_say_was_not(last: list[dict[str, Any]]) -> None:
    assert not was_announced(SHOWN, last)
