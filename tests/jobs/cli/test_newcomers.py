"""Mistakes of a newcomer in specs, commands and files: each is one sentence that leads to the fix.

A table for each place. Every row is played by the command line in this process, in a folder that is
right but for the one mistake. No JVM is started: what needs one is not in these tables.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import main

SPEC = """\
name: orders
lake: lake
source:
  table: lake/bronze/orders
  files: {folder: drop}
  event_time: ordered_at
  zone: UTC
  key: [shop]
  event_id: order_id
watermark:
  delay: 10 minutes
  allowed_lateness: 1 hour
aggregates:
  orders: count()
  revenue: sum(price)
windows:
  hourly: {kind: tumbling, size: 1 hour}
schedule: "*/15 * * * *"
"""
PLACELESS = SPEC.replace("lake: lake\n", "").replace("lake/bronze", "lake://bronze")
PROJECT = 'pipelines = "."\n[targets.dev]\nlake = "lake"\n'
HOURLY = "{kind: tumbling, size: 1 hour}"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; whoever starts a session in it fails."""

    def refuse(_: object) -> None:
        pytest.fail("a session was started")

    for module in ("spark", "ingest"):
        monkeypatch.setattr(f"jobs.cli.{module}.start_session", refuse)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEMARK_TARGET", raising=False)
    return tmp_path


def play(words: str, files: Mapping[str, str | bytes]) -> Result:
    """A command line, typed where these files and an empty folder drop/ are."""
    Path("drop").mkdir()
    for name, content in files.items():
        file = Path(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return CliRunner().invoke(main, words.split(), prog_name="tidemark")


def check(result: Result, fix: str) -> str:
    """The one sentence, which contains the fix."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (sentence,) = result.stderr.splitlines()
    assert sentence.startswith("tidemark: ")
    assert "Traceback" not in sentence
    assert fix in sentence
    return sentence


IN_SPECS = [
    # what is right, what was written, where that is, what leads to the fix
    ("size: 1 hour", "size: 60", "windows.hourly.size", "write its unit, as in '60 minutes'"),
    ("size: 1 hour", "size: 1h", "windows.hourly.size", "write '1 hour'"),
    ("size: 1 hour", "size: PT1H", "windows.hourly.size", "write '1 hour'"),
    ("size: 1 hour", "size: hourly", "windows.hourly.size", "such as '15 minutes', '1 hour"),
    ("size: 1 hour", "size:1 hour", "windows.hourly.size:1 hour", "as in size: 1 hour"),
    ("size: 1 hour", "length: 1 hour", "windows.hourly.length", "did you mean 'size'"),
    (HOURLY, "tumbling", "windows.hourly", "write kind (tumbling, sliding, "),
    (HOURLY, "{size: 1 hour}", "windows.hourly.kind", "write one of tumbling, sliding"),
    ("kind: tumbling", "kind: hopping", "windows.hourly.kind", "did you mean 'sliding'"),
    (HOURLY, "{kind: session, timeout: 1 hour}", "windows.hourly.timeout", "did you mean 'gap'"),
    (
        "size: 1 hour",
        "size: 1 hour, slide: 5 minutes",
        "windows.hourly.slide",
        "it belongs to sliding windows",
    ),
    (
        HOURLY,
        "{kind: sliding, size: 5 minutes, slide: 1 hour}",
        "windows.hourly.slide",
        "make it at most as long",
    ),
    ("zone: UTC", "zone: Berlin", "source.zone", "did you mean 'Europe/Berlin'"),
    ("zone: UTC", "zone: CEST", "source.zone", "write the zone of a city"),
    ("zone: UTC", "zone: +02:00", "source.zone", "write the zone of a city"),
    ("zone: UTC", "timezone: UTC", "source.timezone", "did you mean 'zone'"),
    ("zone: UTC\n", "zone: UTC\n  zone: UTC\n", "source.zone", "in line 8; keep one of them"),
    ("key: [shop]", "key: Shop", "source.key", "'Shop' is not a list; write [Shop]"),
    ("key: [shop]", "key: shop, day", "source.key", "write [shop, day]"),
    ("key: [shop]", "key: 7", "source.key", "such as [origin]"),
    ("key: [shop]", "key: []", "source.key", "write at least one"),
    ("  key: [shop]\n", "", "source.key", "write the columns that windows are grouped by"),
    ("key: [shop]", "group_by: [shop]", "source.group_by", "did you mean 'key'"),
    ("event_time: ordered_at", "timestamp: a", "source.timestamp", "did you mean 'event_time'"),
    (
        "event_time: ordered_at",
        "event_time: {column: ts, unit: seconds}",
        "source.event_time.unit",
        "it is 'ms', 's' or 'us'",
    ),
    ("delay: 10 minutes", "delay: 10 mins", "watermark.delay", "write '10 minutes'"),
    ("delay: 10 minutes", "delay: -10 minutes", "watermark.delay", "must be '0 seconds' or longer"),
    (
        "allowed_lateness: 1 hour",
        "allowed_lateness: never",
        "watermark.allowed_lateness",
        "or write forever, or 0 seconds",
    ),
    (
        "allowed_lateness: 1 hour",
        "lateness: 1 hour",
        "watermark.lateness",
        "did you mean 'allowed_lateness'",
    ),
    ("count()", "count(*)", "aggregates.orders", "write count()"),
    ("count()", "count", "aggregates.orders", "'count' is not a call; write count()"),
    ("sum(price)", "sum", "aggregates.revenue", "'sum' is not a call; write it as in sum(delay)"),
    ("count()", "count(distinct shop)", "aggregates.orders", "write count_distinct(shop)"),
    ("sum(price)", "price", "aggregates.revenue", "a call such as count(), sum(delay)"),
    ("sum(price)", "sum(Total Amount)", "aggregates.revenue", "sum(`Total Amount`)"),
    (
        "sum(price)",
        "sum(price * amount)",
        "aggregates.revenue",
        'columns: {price_amount: "price * amount"}, and is used by it: sum(price_amount)',
    ),
    (
        "revenue: sum(price)",
        "window_start: min(price)",
        "aggregates.window_start",
        "give it another name",
    ),
    (
        "sum(price)",
        '{call: sum(price), where: "price > 0 && price < 9"}',
        "aggregates.revenue.where",
        "has '&&'; write and",
    ),
    (
        "sum(price)",
        "{call: sum(price), filter: price > 0}",
        "aggregates.revenue.filter",
        "did you mean 'where'",
    ),
    ("name: orders", "name: My Orders", "name", "as in my_orders"),
    ("lake: lake\n", "", "lake", "write the directory that holds the pipeline's tables"),
    ("lake: lake", "lake: $HOME/lake", "lake", "are not expanded here; write the path itself"),
    ("lake: lake", "lake: ~/lake", "lake", "are not expanded here; write the path itself"),
    ("lake/bronze/orders", "lake/orders", "source.table", "use another table or name"),
    ("lake/bronze/orders", "orders", "source.files", "give source.table as a path"),
    ("lake/bronze/orders", "bronze://orders", "source.table", "this spec has lake; use one of"),
    ("windows:", "window:", "window", "did you mean 'windows'"),
    ("  zone: UTC", "\tzone: UTC", "line 7", "indent with spaces, not with tabs"),
    ("zone: UTC", "zone:UTC", "line 8", "a space belongs behind a colon, as in zone: UTC"),
    ("  key: [shop]", " key: [shop]", "line 8", "indent the fields of one mapping equally"),
    ("key: [shop]", "key: [shop", "line 9", "close what is open before with ]"),
    ('"*/15 * * * *"', "*/15 * * * *", "line 18", "begins with * needs quotes around it"),
    ('"*/15 * * * *"', "every 15 minutes", "schedule", "cron has 5: minute, hour, day of month"),
    ("windows:", "expectations: orders\nwindows:", "expectations", "write {suite: orders}"),
    (
        "windows:",
        "expectations: {suite: departurs}\nwindows:",
        "expectations.suite",
        "did you mean 'departures'; name one of them, or write that file",
    ),
    (
        "windows:",
        "freshness: 5 minutes\nwindows:",
        "freshness",
        "is not longer than watermark.delay, 10 minutes",
    ),
    ("{folder: drop}", "drop", "source.files", "write {folder: drop}"),
    ("{folder: drop}", "{folder: drop, format: xlsx}", "source.files.format", "'csv', 'json' or"),
    ("{folder: drop}", "{folder: drop, sep: ;}", "source.files.sep", "did you mean 'delimiter'"),
    (
        "{folder: drop}",
        "{folder: drop, delimiter: tab}",
        "source.files.delimiter",
        'a tab is written "\\t"',
    ),
]


@pytest.mark.parametrize(
    ("right", "written", "field", "fix"),
    IN_SPECS,
    ids=[written or right for right, written, *_ in IN_SPECS],
)
def test_a_mistake_in_a_spec(right: str, written: str, field: str, fix: str) -> None:
    assert right in SPEC
    result = play("run orders.yaml", {"orders.yaml": SPEC.replace(right, written, 1)})
    assert check(result, fix).startswith(f"tidemark: orders.yaml: {field}: ")


IN_COMMANDS = [
    ("orders.yaml", "the command comes first, as in `tidemark run orders.yaml`"),
    ("run", "write it as in `tidemark run orders.yaml`"),
    ("run orders.yml", "did you mean 'orders.yaml'"),
    ("run orders", "give the path of a spec, such as orders.yaml, or write tidemark.toml"),
    ("run orders.yaml flights.yaml", "write it as in `tidemark run orders.yaml`"),
    ("validat orders.yaml", "did you mean 'validate'"),
    ("help", "see `tidemark --help`"),
    ("engine run", "there are start, stop, status"),
    ("run orders.yaml --json=true", "leave out what stands behind ="),
    ("show orders.yaml", "as in `tidemark show orders.yaml hourly"),
    ("show orders.yaml houry", "did you mean 'hourly'"),
    (
        "show orders.yaml hourly --key region=eu",
        "'region' is not a key column of orders; it has shop",
    ),
    ("show orders.yaml hourly --from 31/12/2025", "is not a time such as 2013-03-10T05:00Z"),
    ("show orders.yaml hourly --limit all", "'all' is not a whole number"),
    ("backfill orders.yaml", "such as --from 2013-03-10 --to 2013-03-11"),
    ("backfill orders.yaml 2026-03-02 2026-03-03", "--from 2026-03-02 --to 2026-03-03"),
    ("backfill orders.yaml --from 2026-03-03 --to 2026-03-02", "must be before --to"),
    ("publish orders.yaml --accept", "'--accept' needs a value behind it"),
    ("late orders.yaml --outcome lost", "is not one of 'late', 'partial', 'duplicate'"),
    ("erase orders.yaml", "takes one value for each key column of orders: --key COLUMN=VALUE"),
    ("state orders.yaml --key north", "need --window, which names the window to show"),
    ("test orders.yaml", "a transcript has spec and steps"),
    (
        "init new --from orders.xlsx",
        "there is no such file or folder; name a file, or a Delta table",
    ),
    ("init new --from drop", "there is no Delta table; name a file, or a Delta table"),
    ("init new --from gs://bucket/events", "use a path, or a URI with file:, s3: or hdfs:"),
    ("init .", "name a folder that does not exist yet"),
    ("status drop", "drop has no *.yaml or *.yml file; name a spec, or its folder"),
]


@pytest.mark.parametrize(("words", "fix"), IN_COMMANDS, ids=[words for words, _ in IN_COMMANDS])
def test_a_mistake_on_the_command_line(words: str, fix: str) -> None:
    check(play(words, {"orders.yaml": SPEC}), fix)


IN_FILES: list[tuple[str, Mapping[str, str | bytes], str]] = [
    ("run o.csv", {"o.csv": "order_id,shop\n"}, "name the spec of the pipeline"),
    ("run orders.yaml", {"orders.yaml": b"\xff\xfen\0"}, "save the file as UTF-8"),
    ("run orders.yaml", {"orders.yaml": ""}, "write a mapping that begins with name and source"),
    ("run t.yaml", {"t.yaml": "spec: orders.yaml\nsteps: []"}, "which `tidemark test` plays"),
    (
        "ingest orders.yaml",
        {"orders.yaml": SPEC.replace("drop", "land")},
        "is no directory; make it",
    ),
    (
        "ingest orders.yaml",
        {"orders.yaml": SPEC.replace("  files: {folder: drop}\n", "")},
        "write there in which folder files land, as in files: {folder: ../drop}",
    ),
    (
        "init new --from a.xlsx",
        {"a.xlsx": "PK"},
        "its name ends in none of .csv, .tsv, .txt, .json",
    ),
    (
        "test t.yaml",
        {"t.yaml": "spec: ordres.yaml\nsteps: [{input: []}]"},
        "ordres.yaml: can't be read (No such file or directory); give the path of a YAML file, did "
        "you mean 'orders.yaml'",
    ),
    (
        "test t.yaml",
        {"t.yaml": "spec: orders.yaml\nsteps: [{input: [{shp: north}]}]"},
        "did you mean 'shop'",
    ),
    ("run tidemark.toml", {"tidemark.toml": PROJECT}, "name a pipeline, or the path of a spec"),
    ("run ordres", {"tidemark.toml": PROJECT}, "there are orders, did you mean 'orders'"),
    ("run orders --target prod", {"tidemark.toml": PROJECT}, "or write [targets.prod] there"),
    ("run orders", {"tidemark.toml": PROJECT.replace('"lake"', "lake")}, "texts stand in quotes"),
    ("run orders", {"tidemark.toml": 'lake = "lake"'}, "write it under [targets.dev]"),
    ("run orders", {"tidemark.toml": f"[tidemark]\n{PROJECT}"}, "stand at the top"),
    ("run orders", {"tidemark.toml": PROJECT.replace("lake =", "lak =")}, "did you mean 'lake'"),
    (
        "run orders",
        {"tidemark.toml": f'{PROJECT}[targets.prod]\nlake = "s3://bucket/lake"'},
        'as in target = "dev"',
    ),
    (
        "run orders",
        {"tidemark.toml": PROJECT.replace('"."', '"specs"')},
        "name the folder of the specs, or make it",
    ),
    (
        "run orders",
        {"tidemark.toml": 'pipelines = "."\n[targets.dev]\n', "orders.yaml": PLACELESS},
        "write it as lake under [targets.dev]",
    ),
    (
        "run orders",
        {"tidemark.toml": PROJECT, "copy.yaml": PLACELESS},
        "give one of them another name",
    ),
]


@pytest.mark.parametrize(
    ("words", "files", "fix"), IN_FILES, ids=[f"{words}-{fix}" for words, _, fix in IN_FILES]
)
def test_a_mistake_in_files(words: str, files: Mapping[str, str | bytes], fix: str) -> None:
    check(play(words, {"orders.yaml": SPEC, **files}), fix)


def test_the_tables_have_enough_mistakes_and_none_twice() -> None:
    written = [row[1] or row[0] for row in IN_SPECS]
    commands = [words for words, _ in IN_COMMANDS]
    files = [(words, tuple(given.items())) for words, given, _ in IN_FILES]
    assert all(len(set(rows)) == len(rows) for rows in (written, commands, files))
    assert len(written) + len(commands) + len(files) >= 60


def test_what_the_mistakes_are_made_in_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    class Started(Exception):
        pass

    def start(_: object) -> None:
        raise Started

    monkeypatch.setattr("jobs.cli.spark.start_session", start)
    result = play("explain orders.yaml", {"orders.yaml": SPEC, "tidemark.toml": PROJECT})
    assert "unexpected Started" in result.stderr
    Path("orders.yaml").write_text(PLACELESS)
    assert "unexpected Started" in CliRunner().invoke(main, ["explain", "orders"]).stderr
