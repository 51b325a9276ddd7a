"""What the file of a commit says."""

import json

from windowing.source.commits import read_commit


def test_a_line_ends_where_the_log_ends_it_and_not_where_a_text_does() -> None:
    """delta-rs writes every character but those of ASCII as it is."""
    values = {"name": "a\u0085b\u2028c\u2029d"}
    stats = json.dumps({"numRecords": 3, "minValues": values}, ensure_ascii=False)
    add = {"add": {"path": "a.parquet", "dataChange": True, "stats": stats}}
    info = {"commitInfo": {"operation": "WRITE"}}
    lines = [json.dumps(action, ensure_ascii=False) + "\n" for action in (info, add)]
    assert "\u0085" in lines[1]
    commit = read_commit(5, "".join(lines), "at")
    assert (commit.operation, commit.files, commit.rows) == ("WRITE", 1, 3)
