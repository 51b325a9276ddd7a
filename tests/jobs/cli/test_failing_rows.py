"""What `validate --failing` says where it has no rows. No JVM."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from expectations.outcome import CRITICAL, UNKNOWN, Outcome, Validation
from jobs.cli.main import main
from tests.support.hourly_trips import SPEC
from windowing.report.facts import FailingRows

REASON = f"{UNKNOWN}it raised ParserError"


@pytest.mark.parametrize(
    ("expectation", "detail", "said"),
    [
        ("expect_column_max_to_be_between(n)", REASON, f", which {REASON}"),
        ("expect_column_max_to_be_between(n)", "", ", for which no single row is to blame"),
        ("rows_are_not_quarantined", "run 2", ", for which no single row is to blame"),
    ],
)
def test_why_there_are_no_rows_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expectation: str, detail: str, said: str
) -> None:
    (tmp_path / "trips.yaml").write_text(SPEC.replace("lake: lake", f"lake: {tmp_path}/lake"))
    outcome = Outcome("hourly", "own", expectation, CRITICAL, False, "", detail)
    judged = Validation(2, 7, (outcome,), "x.html")
    monkeypatch.setattr("jobs.validation.validated.find_validation", lambda _: judged)
    monkeypatch.setattr("jobs.cli.validate._open_session", lambda _: None)
    listed = FailingRows("hourly", expectation, None)
    monkeypatch.setattr("jobs.failing.list_failing", lambda *_: (listed,))
    line = ["validate", str(tmp_path / "trips.yaml"), "--failing"]
    done = CliRunner().invoke(main, line, prog_name="tidemark")
    assert done.exit_code == 3, done.output
    assert f"hourly fails {expectation}{said}\n" in done.output
