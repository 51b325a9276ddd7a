"""Specs with wrong values: each is refused with one sentence.

The sentence names the field and says what was given and what is allowed. Fields of the wrong shape
are in test_spec_refused_shape.py, windows in test_spec_refused_windows.py.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.windowing.spec.specs import changed, refused

W = "windows/hourly/"
SESSION = {"kind": "session", "gap": "1 hour"}
UNEXPANDED = "environment variables are not expanded here"
RESERVED = [
    "window_start",
    "window_end",
    "last_event",
    "window_index",
    "revision",
    "RUN",
    "is_closed",
    "Is_Final",
    "closed_by",
]
RESERVED += ["__x", "_change_type", "_commit_version", "_commit_timestamp"]
STATE = [
    "pane_start",
    "first_event",
    "rows",
    "event_time",
    "digest",
    "inputs",
    "missed",
    "generation",
    "Batch",
    "judged_by",
]
SPANS = "units are microsecond, millisecond, second, minute, hour, day, week, month, quarter, year"
CASES: list[tuple[dict[str, Any], str, str]] = [
    # names
    (
        {"name": "Departures"},
        "name",
        "'Departures' is not a name; a name matches [a-z][a-z0-9_]{0,63}",
    ),
    ({"name": "_x"}, "name", "'_x' is not a name"),
    ({"name": "a" * 65}, "name", "is not a name"),
    ({"name": "a\n"}, "name", "is not a name"),
    ({"name": "a/../b"}, "name", "'a/../b' is not a name"),
    (
        {"windows/_late": {"kind": "session", "gap": "1 hour"}},
        "windows._late",
        "'_late' is not a name",
    ),
    (
        {"windows/Hourly": {"kind": "session", "gap": "1 hour"}},
        "windows.Hourly",
        "'Hourly' is not a name",
    ),
    ({"expectations/suite": "../x"}, "expectations.suite", "'../x' is not a name"),
    ({"expectations": {}}, "expectations.suite", "is missing"),
    # wrong shapes
    ({"windows": {}}, "windows", "{} is empty; write at least one: output tables"),
    ({"aggregates": {}}, "aggregates", "{} is empty; write at least one: output columns"),
    ({"source/key": []}, "source.key", "[] is empty; write at least one: the columns"),
    ({"source/key": "origin"}, "source.key", "'origin' is not a list; write [origin]"),
    ({"source/key": ["origin", ""]}, "source.key[1]", "'' is not the name of a column"),
    ({"source/key": ["origin", 7]}, "source.key[1]", "7 is not the name of a column"),
    ({"source/order_by": "seq"}, "source.order_by", "'seq' is not a list"),
    ({"source/order_by": ["seq", "SEQ"]}, "source.order_by[1]", "'SEQ' is given twice"),
    (
        {"watermark": None},
        "watermark",
        "null is not a mapping; write fields among delay, allowed_lateness",
    ),
    ({"watermark/delay": None}, "watermark.delay", "null is not a duration"),
    ({"aggregates": {1: "count()"}}, "aggregates.1", "1 is not a name; quote it"),
    (
        {"windows": {1: {"kind": "session", "gap": "1 hour"}}},
        "windows.1",
        "1 is not a name; quote it",
    ),
    ({"source/columns": ["a"]}, "source.columns", "['a'] is not a mapping"),
    # lengths
    (
        {W + "size": "15 minuts"},
        "windows.hourly.size",
        f"'15 minuts' has the unit 'minut'; {SPANS}",
    ),
    (
        {W + "size": "15minutes"},
        "windows.hourly.size",
        "'15minutes' is not a duration such as '15 minutes'",
    ),
    ({W + "size": "an hour"}, "windows.hourly.size", "'an hour' is not a duration"),
    ({W + "size": "1.5 hours"}, "windows.hourly.size", "'1.5 hours' is not a duration"),
    (
        {W + "size": "1 month 1 day"},
        "windows.hourly.size",
        "'1 month 1 day' mixes months with fixed lengths",
    ),
    ({W + "size": "0 minutes"}, "windows.hourly.size", "'0 minutes' is not longer than 0"),
    ({W + "size": "-1 hour"}, "windows.hourly.size", "'-1 hour' is not longer than 0"),
    ({W + "size": "-1 month"}, "windows.hourly.size", "'-1 month' is not longer than 0"),
    (
        {W + "size": "10000 years"},
        "windows.hourly.size",
        "'10000 years' is longer than 9,999 years",
    ),
    ({W + "size": "9" * 5000 + " days"}, "windows.hourly.size", "is not a duration such as"),
    ({"windows/rolling/size": "0 hours"}, "windows.rolling.size", "'0 hours' is not longer than 0"),
    (
        {"windows/rolling/slide": "-5 minutes"},
        "windows.rolling.slide",
        "'-5 minutes' is not longer than 0",
    ),
    (
        {"windows/rolling/slide": "4 hours"},
        "windows.rolling.slide",
        "'4 hours' is longer than size '3 hours'",
    ),
    (
        {"windows/rolling/size": "1 month"},
        "windows.rolling.size",
        "'1 month' has no fixed length; use weeks, days or shorter units",
    ),
    ({"windows/rolling/slide": "1 year"}, "windows.rolling.slide", "'1 year' has no fixed length"),
    ({"windows/busy/gap": "0 seconds"}, "windows.busy.gap", "'0 seconds' is not longer than 0"),
    ({"windows/busy/gap": "-3 seconds"}, "windows.busy.gap", "'-3 seconds' is not longer than 0"),
    ({"windows/busy/gap": "1 month"}, "windows.busy.gap", "'1 month' has no fixed length"),
    (
        {"watermark/delay": "-1 minute"},
        "watermark.delay",
        "'-1 minute' is negative; it must be '0 seconds' or longer",
    ),
    ({"watermark/delay": "forever"}, "watermark.delay", "'forever' is not a duration"),
    ({"watermark/delay": "1 month"}, "watermark.delay", "'1 month' has no fixed length"),
    (
        {"watermark/allowed_lateness": "-1 day"},
        "watermark.allowed_lateness",
        "'-1 day' is negative",
    ),
    (
        {"watermark/allowed_lateness": "never"},
        "watermark.allowed_lateness",
        "'never' is not a duration",
    ),
    ({"watermark/max_future": "-1 hour"}, "watermark.max_future", "'-1 hour' is negative"),
    ({"watermark/dedupe_horizon": "-1 hour"}, "watermark.dedupe_horizon", "'-1 hour' is negative"),
    (
        {"watermark/idle_after": "-1 minute"},
        "watermark.idle_after",
        "'-1 minute' is negative; it must be '0 seconds' or longer",
    ),
    (
        {"watermark/idle_after": "1 month"},
        "watermark.idle_after",
        "'1 month' has no fixed length; use weeks, days or shorter units",
    ),
    (
        {"watermark/idle_after": "forever"},
        "watermark.idle_after",
        "'forever' is not a duration such as '15 minutes'",
    ),
    # grids
    (
        {W + "offset": "5 minutes", W + "origin": "2024-01-01"},
        "windows.hourly.offset",
        "'5 minutes' and origin '2024-01-01' are both given",
    ),
    (
        {W + "size": "1 month", W + "offset": "1 day"},
        "windows.hourly.offset",
        "'1 day' can't shift months",
    ),
    ({W + "offset": "1 month"}, "windows.hourly.offset", "'1 month' has no fixed length"),
    (
        {W + "origin": "January"},
        "windows.hourly.origin",
        "'January' is not a local date or time such as '2024-01-01'",
    ),
    ({W + "origin": "2024-02-30"}, "windows.hourly.origin", "'2024-02-30' is not a local date"),
    ({W + "origin": "2024-1-1"}, "windows.hourly.origin", "'2024-1-1' is not a local date"),
    ({W + "origin": "2024-01-01T00:00Z"}, "windows.hourly.origin", "without a zone of its own"),
    (
        {W + "origin": datetime(2024, 1, 1, tzinfo=UTC)},
        "windows.hourly.origin",
        "without a zone of its own",
    ),
    (
        {W + "zone": "America/NewYork"},
        "windows.hourly.zone",
        "'America/NewYork' is not a zone such as 'America/New_York' or 'UTC', did you mean",
    ),
    ({W + "zone": "asia/kolkata"}, "windows.hourly.zone", "did you mean 'Asia/Kolkata'"),
    ({"windows/rolling/zone": "+05:30"}, "windows.rolling.zone", "'+05:30' is not a zone"),
    ({"source/zone": "../etc"}, "source.zone", "'../etc' is not a zone"),
    # aggregates
    ({"aggregates/a": "count"}, "aggregates.a", "'count' is not a call; write count()"),
    (
        {"aggregates/a": "delay"},
        "aggregates.a",
        "'delay' is not a call such as count(), sum(delay) or quantile(delay, 0.95)",
    ),
    ({"aggregates/a": "sum(a) + 1"}, "aggregates.a", "'sum(a) + 1' is not a call"),
    ({"aggregates/a": "sum(max(a))"}, "aggregates.a", "'max(a)' in 'sum(max(a))' is not a column"),
    (
        {"aggregates/a": "summ(a)"},
        "aggregates.a",
        "unknown function 'summ', did you mean 'sum'; allowed: count, sum, min, max, avg,",
    ),
    ({"aggregates/a": "SUM(a)"}, "aggregates.a", "did you mean 'sum'"),
    ({"aggregates/a": "exec(a)"}, "aggregates.a", "unknown function 'exec'; allowed"),
    (
        {"aggregates/a": "stddev()"},
        "aggregates.a",
        "'stddev()' needs exactly one column, as in stddev(delay)",
    ),
    (
        {"aggregates/a": "count(a)"},
        "aggregates.a",
        "'count(a)' has an argument, but count() counts rows and takes no column",
    ),
    (
        {"aggregates/a": "sum()"},
        "aggregates.a",
        "'sum()' needs exactly one column, as in sum(delay)",
    ),
    ({"aggregates/a": "sum(a, b)"}, "aggregates.a", "'sum(a, b)' needs exactly one column"),
    ({"aggregates/a": "sum(a+b)"}, "aggregates.a", "'a+b' in 'sum(a+b)' is not a column"),
    ({"aggregates/a": "sum(5)"}, "aggregates.a", "'5' in 'sum(5)' is not a column"),
    (
        {"aggregates/a": "quantile(a)"},
        "aggregates.a",
        "'quantile(a)' needs a column and a number from 0 to 1",
    ),
    (
        {"aggregates/a": "quantile(a, 1.1)"},
        "aggregates.a",
        "'1.1' in 'quantile(a, 1.1)' is not a number from 0 to 1",
    ),
    ({"aggregates/a": "quantile(a, -0.1)"}, "aggregates.a", "is not a number from 0 to 1"),
    (
        {"aggregates/a": "quantile(a, nan)"},
        "aggregates.a",
        "'nan' in 'quantile(a, nan)' is not a number",
    ),
    (
        {"aggregates/a": "quantile(0.5, a)"},
        "aggregates.a",
        "'0.5' in 'quantile(0.5, a)' is not a column",
    ),
    ({"aggregates/a": {"call": "nope()"}}, "aggregates.a.call", "unknown function 'nope'"),
    (
        {W + "aggregates": ["flights", "wors"]},
        "windows.hourly.aggregates[1]",
        "'wors' is not defined under aggregates, did you mean 'worst'",
    ),
    (
        {W + "aggregates": ["flights", "flights"]},
        "windows.hourly.aggregates",
        "'flights' is given twice",
    ),
    ({W + "aggregates": []}, "windows.hourly.aggregates", "[] is empty; write at least one"),
    ({W + "aggregates": "flights"}, "windows.hourly.aggregates", "'flights' is not a list"),
    # output columns
    *[
        (
            {f"aggregates/{n}": "count()"},
            f"aggregates.{n}",
            f"'{n}' is reserved; not allowed are window_start, window_end,",
        )
        for n in RESERVED
    ],
    *[
        ({"source/key": ["a", n]}, "source.key[1]", f"'{n}' is reserved; not allowed are")
        for n in (*RESERVED, *STATE)
    ],
    ({"aggregates/a b": "count()"}, "aggregates.a b", "'a b' can't be an output column"),
    ({"aggregates/": "count()"}, "aggregates.", "'' can't be an output column"),
    (
        {"aggregates/Origin": "count()"},
        "aggregates.Origin",
        "'Origin' is already an output column (source.key[0])",
    ),
    (
        {"aggregates/FLIGHTS": "count()"},
        "aggregates.FLIGHTS",
        "'FLIGHTS' is already an output column (aggregates.flights)",
    ),
    (
        {"source/key": ["a", "a"]},
        "source.key[1]",
        "'a' is already an output column (source.key[0])",
    ),
    *[
        (
            {f"windows/{n}": SESSION, "windows/partial": SESSION},
            "windows.partial",
            f"beside the window '{n}': the ledger counts rows of both as 'partial.{n}'; give one",
        )
        for n in ("inserted", "updated", "deleted", "restated", "overflow", "empty")
    ],
    *[
        ({f"windows/{n}": SESSION}, f"windows.{n}", f"'{n}' is the end of the names under which")
        for n in ("first_start", "last_start")
    ],
    *[
        ({field: zone}, field.replace("/", "."), f"'{zone}' is not a zone such as")
        for field, zone in (("windows/rolling/zone", "localtime"), ("source/zone", "Factory"))
    ],
    (
        {"windows/published": SESSION},
        "windows.published",
        "'published' is the directory of the published tables; give the window another name",
    ),
    (
        {"source/columns": {"Judged_By": "a"}},
        "source.columns.Judged_By",
        "'Judged_By' is reserved; not allowed are judged_by and names that begin with '__'",
    ),
    (
        {"source/columns": {"_change_type": "a"}, "source/changes": "feed"},
        "source.columns._change_type",
        "'_change_type' is reserved; not allowed are judged_by, _change_type, _commit_version,",
    ),
    # source
    (
        {"source/event_time": {"column": "ts"}},
        "source.event_time.unit",
        "is missing; write the unit of the numbers",
    ),
    (
        {"source/event_time": {"column": "ts", "unit": "ns"}},
        "source.event_time.unit",
        "'ns' is not allowed; it is 'ms', 's' or 'us'",
    ),
    (
        {"source/event_time": {"column": 3, "unit": "s"}},
        "source.event_time.column",
        "3 is not the name of a column",
    ),
    (
        {"source/on_bad_value": "drop"},
        "source.on_bad_value",
        "'drop' is not allowed; it is 'quarantine' or 'null'",
    ),
    ({"source/event_time": True}, "source.event_time", "true is not the name of a column"),
    (
        {"source/changes": "ignore"},
        "source.changes",
        "'ignore' is not allowed; it is 'refuse' or 'feed'",
    ),
    (
        {"source/table": "../flights"},
        "source.table",
        "'../flights' is a relative path, but a mapping has no file to start from",
    ),
    (
        {"source/table": "my table"},
        "source.table",
        "'my table' is neither a path with a slash nor a catalog name",
    ),
    ({"source/table": "."}, "source.table", "'.' is neither a path"),
    (
        {"source/table": "/data/lake/departures/hourly"},
        "source.table",
        "lies among this pipeline's own tables in /data/lake/departures",
    ),
    ({"lake": "lake"}, "lake", "'lake' is a relative path"),
    (
        {"lake": "abfss://c@a.net/lake"},
        "lake",
        "'abfss://c@a.net/lake' lies in abfss:, which is not supported yet; use a path, or a URI "
        "with file:, s3: or hdfs:",
    ),
    ({"lake": "s3://bucket"}, "lake", "'s3://bucket' is a whole bucket; name a directory in it"),
    ({"lake": "s3a://bucket//"}, "lake", "'s3a://bucket//' is a whole bucket"),
    ({"lake": "s3:///lake"}, "lake", "names no bucket of S3: '' is not 3 to 63 small letters"),
    ({"lake": "s3://My_Lake/l"}, "lake", "names no bucket of S3: 'My_Lake'"),
    ({"lake": "hdfs:///lake"}, "lake", "names no cluster of HDFS: '' is no host and port of a"),
    ({"lake": "hdfs://node:0/lake"}, "lake", "names no cluster of HDFS: 'node:0'"),
    ({"lake": "hdfs://node:65536/lake"}, "lake", "names no cluster of HDFS: 'node:65536'"),
    ({"lake": "hdfs://me@node/lake"}, "lake", "names no cluster of HDFS: 'me@node'"),
    ({"lake": "hdfs://node:8020/"}, "lake", "is a whole cluster; name a directory in it"),
    ({"source/table": "hdfs://node/a/../b"}, "source.table", "holds '..' as the name of a dir"),
    ({"source/table": "hdfs://node/a/b:c"}, "source.table", "holds ':', which the path of a table"),
    ({"lake": "hdfs://node/my lake"}, "lake", "holds ' ', which the path of a table on HDFS"),
    ({"source/table": "s3://bucket/a/../b"}, "source.table", "holds '..' as the name of a dir"),
    ({"lake": "s3://bucket/a|b"}, "lake", "'s3://bucket/a|b' holds '|', which the path of a lake"),
    (
        {"source/table": "gs://bucket/t"},
        "source.table",
        "'gs://bucket/t' lies in gs:, which is not supported yet",
    ),
    # A mistyped name of a place is no directory of this machine.
    ({"lake": "raw_zone:/orders"}, "lake", "'raw_zone:/orders' lies in raw_zone:, which is not"),
    ({"lake": "Lake://orders"}, "lake", "'Lake://orders' lies in Lake:, which is not supported"),
    ({"lake": "A:/x"}, "lake", "'A:/x' lies in A:, which is not supported yet"),
    ({"lake": "file:lake"}, "lake", "'file:lake' is not a file: URI of this machine"),
    ({"lake": "file://host/lake"}, "lake", "'file://host/lake' is not a file: URI of this machine"),
    ({"lake": "/a[b]/c"}, "lake", "'/a[b]/c' holds '[', which the path of a lake can't; use"),
    ({"lake": "/a|b"}, "lake", "'/a|b' holds '|', which the path of a lake can't"),
    ({"lake": "/a%20b"}, "lake", "'/a%20b' holds '%20', which the path of a lake can't"),
    (
        {"source/table": "/a/%41/t"},
        "source.table",
        "'/a/%41/t' holds '%41', which the path of a table can't, because only some programs "
        "decode it; use a directory without it",
    ),
    ({"source/table": "s3://bucket/a%20b"}, "source.table", "holds '%20', which the path of a t"),
    ({"source/table": "file:///a/%2541/t"}, "source.table", "'/a/%41/t' holds '%41'"),
    ({"lake": "/a\0b"}, "lake", "'/a\\x00b' holds '\\x00', which a path of a table can't"),
    ({"lake": "/la`ke"}, "lake", "holds '`'"),
    ({"lake": "/la\nke"}, "lake", "holds '\\n'"),
    ({"lake": "/la\ud800ke"}, "lake", "holds '\\ud800'"),
    ({"source/table": "file:/a%60b/c"}, "source.table", "holds '`'"),
    ({"lake": "${LAKE}"}, "lake", f"holds '${{LAKE}}', but {UNEXPANDED}; write the path"),
    ({"lake": "$LAKE/flights"}, "lake", "can hold os.environ['LAKE']"),
    ({"lake": "s3a://${BUCKET}/lake"}, "lake", "holds '${BUCKET}'"),
    ({"source/table": "${LAKE:-/d}/t"}, "source.table", f"holds '${{LAKE:-/d}}', but {UNEXPANDED}"),
    ({"source/table": "$TABLE"}, "source.table", f"'$TABLE' holds '$TABLE', but {UNEXPANDED}"),
    (
        {"schedule": "0 0 30 2 *"},
        "schedule",
        "'0 0 30 2 *' never comes: no month of '2' has a day of '30'",
    ),
    ({"schedule": "0 0 31 apr,jun *"}, "schedule", "never comes"),
    ({"schedule": "*/99 * * * *"}, "schedule", "has '*/99' as its minute"),
    # schedule
    (
        {"schedule": "* * * *"},
        "schedule",
        "'* * * *' has 4 fields, but cron has 5: minute, hour, day of month, month, day of week",
    ),
    (
        {"schedule": "@houly"},
        "schedule",
        "'@houly' is not a preset, did you mean '@hourly'; allowed: @hourly",
    ),
    ({"schedule": "61 * * * *"}, "schedule", "has '61' as its minute, which is 0 to 59"),
    ({"schedule": "* * 0 * *"}, "schedule", "has '0' as its day of month, which is 1 to 31"),
    ({"schedule": "* * * foo *"}, "schedule", "has 'foo' as its month"),
    ({"schedule": "*/0 * * * *"}, "schedule", "has '*/0' as its minute"),
    ({"schedule": "9-5 * * * *"}, "schedule", "has '9-5' as its minute"),
    ({"schedule": "1,,2 * * * *"}, "schedule", "has '1,,2' as its minute"),
    # state
    (
        {"retention/state": "1 day"},
        "retention.state",
        "'1 day' is given, but allowed_lateness: forever needs state: forever",
    ),
    ({"retention/refused": "0 days"}, "retention.refused", "'0 days' is not longer than 0"),
    ({"retention/output": "-1 year"}, "retention.output", "'-1 year' is not longer than 0"),
    ({"retention/output": "soon"}, "retention.output", "'soon' is not a duration"),
    ({"freshness": "soon"}, "freshness", "'soon' is not a duration"),
    ({"freshness": 30}, "freshness", "30 is not a duration"),
    ({"freshness": "0 seconds"}, "freshness", "'0 seconds' is not longer than 0"),
    (
        {"freshness": "10 minutes"},
        "freshness",
        "'10 minutes' is not longer than watermark.delay, 10 minutes; the watermark stays",
    ),
    ({"alarms": {"quarantined": 1.01}}, "alarms.quarantined", "1.01 is not a share of the rows"),
    ({"alarms": {"quarantined": "10%"}}, "alarms.quarantined", "'10%' is not a share of the rows"),
    ({"alarms": {"lost_values": True}}, "alarms.lost_values", "such as 0.1 for a tenth"),
    ({"alarms": {"max_age": "0 days"}}, "alarms.max_age", "'0 days' is not longer than 0"),
    ({"alarms": {"rows_factor": 0.5}}, "alarms.rows_factor", "0.5 is not a number from 1 to"),
    ({"alarms": {"rows_factor": float("nan")}}, "alarms.rows_factor", "is not a number from 1"),
    ({"source/batch": {}}, "source.batch", "has neither rows nor bytes; give one of them"),
    ({"source/batch": 1000}, "source.batch", "1000 is not a mapping"),
    ({"source/batch": {"rows": 0}}, "source.batch.rows", "0 is not a number of rows from 1 on"),
    ({"source/batch": {"rows": True}}, "source.batch.rows", "true is not a number of rows"),
    ({"source/batch": {"rows": "1 million"}}, "source.batch.rows", "such as 5000000"),
    ({"source/batch": {"bytes": 0}}, "source.batch.bytes", "0 is not a number of bytes from 1"),
    ({"source/batch": {"bytes": "0 GB"}}, "source.batch.bytes", "'0 GB' is not a number of bytes"),
    ({"source/batch": {"bytes": "2 gigs"}}, "source.batch.bytes", "a size such as '512 MB'"),
    ({"source/batch": {"bytes": 1.5}}, "source.batch.bytes", "1.5 is not a number of bytes"),
    (
        {"source/batch": {"rows": 1}, "windows/hourly/empty": True},
        "source.batch",
        "can't be given with windows.hourly.empty, because empty_limit is for all empty windows",
    ),
]


@pytest.mark.parametrize(
    ("paths", "field", "sentence"), CASES, ids=[f"{i}-{c[1]}"[:40] for i, c in enumerate(CASES)]
)
def test_wrong_specs(paths: dict[str, Any], field: str, sentence: str) -> None:
    error = refused(changed(**paths))
    assert error.field == field
    assert sentence in error.message


AND_SO_ON = "and, or, not, in, between, like, is null, case, cast"
FUNCTIONS = (
    "abs, floor, ceil, lower, upper, trim, length, year, month, day, hour, "
    "minute, second, date_trunc, convert_timezone, to_timestamp, get_json_object, "
    "regexp_like, regexp_extract, regexp_replace, "
    "coalesce, concat, least, greatest, round, nullif, substring, if, replace"
)
MADE_OF = (
    "; an expression is made of columns, literals, comparisons, arithmetic, "
    f"{AND_SO_ON} and {FUNCTIONS}"
)
BESIDE = "its name is not empty and has no space and none of , . ; { } ( ) = `"
EXPRESSIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"source/where": "a >"}, "source.where", f"'a >' can't be read near '>'{MADE_OF}"),
    ({"source/where": ""}, "source.where", "'' is not an expression such as 'distance > 0'"),
    ({"source/where": True}, "source.where", "true is not an expression such as 'distance > 0'"),
    (
        {"source/where": "a in (select b)"},
        "source.where",
        "'a in (select b)' has a subquery; an expression looks at one row of the source",
    ),
    (
        {"source/where": "sum(a) > 3"},
        "source.where",
        "'sum(a) > 3' calls 'sum', an aggregate, but an expression looks at one row; "
        f"the functions are {FUNCTIONS}, cast",
    ),
    (
        {"source/where": "__t > 3"},
        "source.where",
        "'__t > 3' names '__t', but names that begin with '__' are reserved; rename the column",
    ),
    (
        {"source/columns": ["a"]},
        "source.columns",
        "['a'] is not a mapping; write columns computed from others",
    ),
    (
        {"source/columns": {"late": 5}},
        "source.columns.late",
        "5 is not an expression such as 'distance > 0'",
    ),
    (
        {"source/columns": {"late": "rand()"}},
        "source.columns.late",
        f"'rand()' calls 'rand', did you mean 'round'; the functions are {FUNCTIONS}, cast",
    ),
    (
        {"source/columns": {"late": "a; b"}},
        "source.columns.late",
        f"'a; b' has ';', a second statement{MADE_OF}",
    ),
    (
        {"source/columns": {7: "a"}},
        "source.columns.7",
        "7 is not a name; quote it if it is meant as text",
    ),
    ({"source/columns": {"": "a"}}, "source.columns.", f"'' can't be a column; {BESIDE}"),
    ({"source/columns": {"a b": "a"}}, "source.columns.a b", f"'a b' can't be a column; {BESIDE}"),
    (
        {"source/columns": {"__late": "a"}},
        "source.columns.__late",
        "'__late' is reserved; not allowed are names that begin with '__'",
    ),
    (
        {"source/columns": {"late": "a", "Late": "b"}},
        "source.columns.Late",
        "'Late' differs from 'late' by case alone; give it another name",
    ),
    (
        {"aggregates/bad": {"call": "count()", "where": "x = "}},
        "aggregates.bad.where",
        f"'x = ' can't be read near '='{MADE_OF}",
    ),
    (
        {"aggregates/bad": {"call": "count()", "where": 5}},
        "aggregates.bad.where",
        "5 is not an expression such as 'distance > 0'",
    ),
    (
        {"aggregates/bad": {"where": "x > 1"}},
        "aggregates.bad.call",
        "is missing; write a call such as count(), sum(delay) or quantile(delay, 0.95)",
    ),
    (
        {"source/changes": "feed", "source/event_time": "arrival"},
        "source.changes",
        "'feed' counts events again, which can't be done with event_time: arrival; use refuse",
    ),
]


@pytest.mark.parametrize(
    ("paths", "field", "sentence"),
    EXPRESSIONS,
    ids=[f"{i}-{c[1]}" for i, c in enumerate(EXPRESSIONS)],
)
def test_wrong_expressions(paths: dict[str, Any], field: str, sentence: str) -> None:
    error = refused(changed(**paths))
    assert (error.field, error.message) == (field, sentence)
