"""The layout as a test: what a folder and a file name promise about privileges, sizes and words.

Each test looks at all files that a rule is about, and its message names every place that breaks it.
"""

import ast
import re
from pathlib import Path

from tests.support.python_code import (
    ROOT,
    actions,
    assert_none,
    called_on,
    effects,
    files,
    functions,
    imported,
    imported_from,
    length,
    modules_of,
    private_of_others,
    public,
    texts,
    tree,
)

PRODUCT = ("tidemark", "windowing", "jobs", "expectations", "dags", "docker")
LONGEST_MODULE, LONGEST_TEST, LONGEST_FUNCTION = 400, 600, 60
PURE = {"pyspark", "delta", "pyarrow", "os", "time", "random", "pathlib", "io", "subprocess"}
CLOCKS = {"now", "today", "utcnow"}

# Files whose stage keeps its frames under other names.
FRAMES = (
    "windowing/admit/again.py",
    "windowing/admit/digest.py",
    "windowing/admit/erased.py",
    "windowing/aggregates/algebra.py",
    "windowing/aggregates/catalog.py",
    "windowing/aggregates/decimals.py",
    "windowing/aggregates/picks.py",
    "windowing/aggregates/sketches.py",
    "windowing/aggregates/sums.py",
    "windowing/expressions/arithmetic.py",
    "windowing/expressions/compile.py",
    "windowing/expressions/exact_decimals.py",
    "windowing/expressions/nested.py",
    "windowing/expressions/regex.py",
    "windowing/expressions/times.py",
    "windowing/expressions/values.py",
    "windowing/ingest/fit.py",
    "windowing/ingest/kinds.py",
    "windowing/ingest/json_values.py",
    "windowing/ingest/scalars.py",
    "windowing/ingest/values.py",
    "windowing/panes/events.py",
    "windowing/source/stream.py",
    "windowing/source/widening.py",
    "windowing/rows.py",
    "windowing/windows/aligned.py",
    "windowing/windows/change_points.py",
    "windowing/windows/cumulate.py",
    "windowing/windows/finality.py",
    "windowing/windows/fold.py",
    "windowing/windows/gaps.py",
    "windowing/windows/grid_kind.py",
    "windowing/windows/keyed_rows.py",
    "windowing/windows/merge_by_block.py",
    "windowing/windows/merge_by_change.py",
    "windowing/windows/merge_by_point.py",
    "windowing/windows/merge_by_window.py",
    "windowing/windows/merging.py",
    "windowing/windows/neighbours.py",
    "windowing/windows/ordered.py",
    "windowing/windows/record.py",
    "windowing/windows/region.py",
    "windowing/windows/session.py",
    "windowing/windows/sliding.py",
    "windowing/windows/together.py",
    "windowing/windows/whole.py",
)
# Pure files that need no stage of their own.
RULES = (
    "windowing/admit/outcomes.py",
    "windowing/advise/advice.py",
    "windowing/advise/analysis.py",
    "windowing/advise/cost.py",
    "windowing/advise/ends.py",
    "windowing/advise/groups.py",
    "windowing/advise/history.py",
    "windowing/advise/keys.py",
    "windowing/advise/open_windows.py",
    "windowing/advise/reading.py",
    "windowing/advise/share.py",
    "windowing/columns.py",
    "windowing/crash.py",
    "windowing/errors.py",
    "windowing/grid/boundaries.py",
    "windowing/grid/days.py",
    "windowing/grid/placing.py",
    "windowing/grid/range.py",
    "windowing/grid/zone.py",
    "windowing/ingest/candidates.py",
    "windowing/ingest/columns.py",
    "windowing/ingest/disorder.py",
    "windowing/ingest/example.py",
    "windowing/ingest/header.py",
    "windowing/ingest/inference.py",
    "windowing/ingest/names.py",
    "windowing/ingest/project.py",
    "windowing/ingest/proposal.py",
    "windowing/ingest/quotes.py",
    "windowing/ingest/sniff.py",
    "windowing/ingest/times.py",
    "windowing/ingest/type_names.py",
    "windowing/ledger/acceptance.py",
    "windowing/ledger/changed.py",
    "windowing/ledger/counts.py",
    "windowing/ledger/erased.py",
    "windowing/ledger/evolved.py",
    "windowing/ledger/history.py",
    "windowing/report/alarms.py",
    "windowing/report/places.py",
    "windowing/report/publications.py",
    "windowing/report/status.py",
    "windowing/ledger/nulls.py",
    "windowing/ledger/period.py",
    "windowing/location.py",
    "windowing/report/ages.py",
    "windowing/report/periods.py",
    "windowing/revisions/evidence.py",
    "windowing/report/charts.py",
    "windowing/report/compared.py",
    "windowing/report/facts.py",
    "windowing/report/rows.py",
    "windowing/report/section.py",
    "windowing/report/view.py",
    "windowing/report/view_quality.py",
    "windowing/report/view_rows.py",
    "windowing/report/view_runs.py",
    "windowing/source/arrivals.py",
    "windowing/source/backlog.py",
    "windowing/source/commits.py",
    "windowing/source/managed.py",
    "windowing/source/names.py",
    "windowing/source/rewrites.py",
    "windowing/storage/file_figures.py",
    "windowing/storage/log_lines.py",
    "windowing/storage/logged_commit.py",
    "windowing/storage/stream_offsets.py",
    "windowing/values.py",
    "windowing/windows/reach.py",
)
# Rows leave Spark as plain values here, by one toArrow.
LEAVES_SPARK = ("windowing/report/frame.py",)
# The spec is read from a file, and tables lie in directories, so these may look at paths.
READS_FILES = (
    "windowing/location.py",
    "windowing/spec/yaml/file.py",
    "windowing/spec/load.py",
    "windowing/spec/places.py",
    "windowing/spec/project/file.py",
    "windowing/spec/project/load.py",
    "windowing/spec/project/placing.py",
    "windowing/spec/project/specs.py",
    "windowing/transcripts/load.py",
)
# Rows that are values of Arrow are selected before plain values are made of them.
ARROW = ("windowing/advise/arrow_rows.py", "windowing/ledger/selection.py")
# Files of the source are read here without Spark: to see that nothing is wrong with those of a
# batch, and to see when the events of its history happened.
READS_PARQUET = ("windowing/advise/files.py", "windowing/source/clean_files.py")
# Whether a source is a table of another pipeline is known by what lies beside it.
LOOKS_BESIDE = ("windowing/source/upstream.py",)
# The one door to tables and files.
STORAGE = "windowing/storage"
# Only these ask Spark, Delta and py4j by names that none of them promises: the last one has two
# variables apart, because a client of the engine imports little.
INTERNALS = (
    "windowing/storage/delta_log.py",
    "windowing/storage/spark_internals.py",
    "windowing/storage/gateway_variables.py",
)
# The modules that PySpark, Delta and delta-rs document, as far as they are used.
DOCUMENTED_MODULES = {
    *("pyspark", "pyspark.errors", "pyspark.sql", "pyspark.sql.functions", "pyspark.sql.types"),
    *("pyspark.sql.window", "pyspark.storagelevel", "delta.tables"),
    *("deltalake", "deltalake.exceptions"),
}
# Classes of the JVM, and what Spark and Delta call things among themselves.
JVM_NAMES = re.compile(r"\b(org\.apache\.|java_gateway|PYSPARK_GATEWAY|reservoirVersion|Tahoe)")
# Delta's manual has every session name two of its classes.
NAMES_CLASSES = ("jobs/sessions/profiles.py",)
# All files outside of storage that know how a lake is stored: one that is locked, and two that read
# Parquet files of a source, to see that nothing is wrong with them, and when their rows happened.
KNOW_STORAGE = (
    "jobs/locking/lock_file.py",
    "windowing/advise/files.py",
    "windowing/source/clean_files.py",
)
# The modules of storage that show what is in the files of a table and of its log.
LAYOUT = ("footers", "file_statistics", "log_lines", "deletion_marks")
# The public names are functions of the package itself, so that they are found where they are read.
NAMES_IN_INIT = ("tidemark/__init__.py",)
# One referee of every law stays one file.
WHOLE = ("tests/test_oracle.py",)

# Files of jobs/ that act on Delta themselves. All others ask windowing/ or one of these.
EFFECTS = (
    # Writes the source of the sample pipeline whose runs fill the class archive.
    "jobs/local/class_archive.py",
)

FORBIDDEN_WORDS = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b")
FORBIDDEN_PATHS = re.compile(r"(?<![\w.])/(work|root)/")
REGISTRIES = re.compile(
    r"pypi\.org|pythonhosted|maven\.(org|apache)|repo1\.|docker\.io|ghcr\.io|npmjs"
)


def is_rule(path: Path) -> bool:
    """Whether a file of windowing/ has to be pure."""
    return (
        path.name == "rule.py"
        or path.as_posix() in RULES
        or path.parts[1] in ("spec", "transcripts")
    )


RULE_FILES = [f for f in files("windowing") if is_rule(f)]
FRAME_FILES = [f for f in files("windowing") if f.name == "frame.py" or f.as_posix() in FRAMES]
EVERY_FILE = files(*PRODUCT, "tests", "bench")


def test_there_are_files_to_look_at() -> None:
    for chosen in (RULE_FILES, FRAME_FILES, EVERY_FILE, files("dags"), files("jobs")):
        assert chosen


def test_rules_know_no_spark_no_clock_and_no_environment() -> None:
    offences: list[str] = []
    for path in RULE_FILES:
        # The schema of the spec is also a command, `python -m windowing.spec.yaml.json_schema`.
        allowed = {"os", "pathlib", "io"} if path.as_posix() in READS_FILES else set()
        offences += imported_from(path, PURE - allowed)
        for owner, name, line in called_on(tree(path)):
            if name in CLOCKS:
                offences.append(f"{path}:{line}: reads a clock by {owner}.{name}")
            if owner == "os" and name in ("environ", "getenv"):
                offences.append(f"{path}:{line}: reads the environment by os.{name}")
    assert_none(offences)


def test_frames_are_lazy_and_know_no_delta() -> None:
    offences: list[str] = []
    for path in FRAME_FILES:
        offences += imported_from(path, {"delta", "pyarrow", "os", "time"})
        for line, name in imported(tree(path)):
            if name.startswith("windowing.storage.delta") or name.endswith(".table"):
                offences.append(f"{path}:{line}: imports {name}")
        found = list(actions(tree(path)))
        expected = ["toArrow"] if path.as_posix() in LEAVES_SPARK else []
        if [said.rpartition(".")[2] for _, said in found] != expected:
            offences += [f"{path}:{line}: {said} is an action" for line, said in found]
            offences.append(f"{path}:1: has to have exactly these actions: {expected}")
    assert_none(offences)


def test_only_tables_touch_delta() -> None:
    by_spark = tuple(f"windowing.storage.{name}" for name in ("delta", "own_tables"))
    assert_none(
        f"{path}:{line}: imports {name}"
        for path in files("windowing")
        if path.name != "table.py" and path not in files(STORAGE)
        for line, name in imported(tree(path))
        if name.startswith(("delta.", *by_spark))
    )


def test_what_nobody_promises_is_asked_in_internals_alone() -> None:
    """What a new version of Spark, Delta or py4j calls differently is met in these files."""
    only = f"is for {', '.join(INTERNALS)} alone"
    offences: list[str] = []
    storage = set(files(STORAGE))
    for path in files(*PRODUCT):
        if path.as_posix() in INTERNALS:
            continue
        for owner, name, line in private_of_others(tree(path)):
            offences.append(f"{path}:{line}: {owner}.{name} {only}")
        for line, module in modules_of(tree(path), {"pyspark", "delta", "deltalake", "py4j"}):
            if path not in storage and module.startswith("delta"):
                offences.append(f"{path}:{line}: {module} is for {STORAGE} alone")
            elif module not in DOCUMENTED_MODULES:
                offences.append(f"{path}:{line}: {module} is not documented, and {only}")
        for text, line in texts(tree(path)):
            is_known = path in storage or path.as_posix() in NAMES_CLASSES
            if JVM_NAMES.search(text) and not is_known:
                offences.append(f"{path}:{line}: {text!r} {only}")
    assert_none(offences)


def test_rows_of_this_process_travel_as_arrow() -> None:
    """Storage makes frames, from Arrow: else executors would start a Python for them."""
    # It has a table of Arrow.
    known = {*files(STORAGE), Path("expectations/boundaries.py")}
    found = [
        f"{path}:{line}"
        for path in {*files("tidemark", "windowing", "jobs", "expectations")} - known
        for _, name, line in called_on(tree(path))
        if name == "createDataFrame" and not path.is_relative_to("jobs/local")
    ]
    assert not found


def test_few_files_know_how_a_lake_is_stored() -> None:
    """All others ask storage, whatever a lake lies on."""
    layout = {f"windowing.storage.{name}" for name in LAYOUT}
    found = set()
    known = {*files(STORAGE), Path("windowing/location.py")}
    for path in {*files("tidemark", "windowing", "jobs", "expectations", "dags")} - known:
        names = {name for _, name, _ in called_on(tree(path))}
        modules = {name for _, name in imported(tree(path))}
        says = any("_delta_log" in text for text, _ in texts(tree(path)))
        if "local" in names or layout & modules or says:
            found.add(path.as_posix())
    assert sorted(found) == sorted(KNOW_STORAGE)


def test_rows_are_pinned_in_one_way() -> None:
    pins = Path("windowing/storage/pinned_rows.py")
    offences = [
        f"{path}:{line}: {owner}.{name} is for {pins} alone"
        for path in files(*PRODUCT)
        if path != pins
        for owner, name, line in called_on(tree(path))
        if name == "localCheckpoint" or (name == "checkpoint" and owner.endswith("rows"))
    ]
    assert_none(offences)
    assert_none(
        f"{path}:{line}: imports {name}"
        for path in FRAME_FILES
        for line, name in imported(tree(path))
        if name.startswith(pins.with_suffix("").as_posix().replace("/", "."))
    )


def test_only_named_files_of_jobs_act_on_delta() -> None:
    offences: list[str] = []
    for path in files("jobs"):
        found = list(effects(tree(path)))
        if path.as_posix() not in EFFECTS:
            offences += [f"{path}:{line}: {said}" for line, said in found]
        elif not found:
            offences.append(f"{path}:1: is listed in EFFECTS and acts on Delta no more")
    assert_none(offences)


def test_every_stage_file_says_what_it_may_do() -> None:
    known = {*RULE_FILES, *FRAME_FILES}
    known |= set(map(Path, (*ARROW, *READS_PARQUET, *LOOKS_BESIDE)))
    known |= set(files(STORAGE))
    assert_none(
        f"{path}:1: name it rule.py, frame.py or table.py, or list it above with a reason"
        for path in files("windowing")
        if path not in known
        and path.name not in ("table.py", "__init__.py")
        and path.parent.name != "report"
    )


def test_files_with_a_reason_are_there() -> None:
    places = (
        FRAMES,
        RULES,
        LEAVES_SPARK,
        READS_FILES,
        ARROW,
        READS_PARQUET,
        LOOKS_BESIDE,
        INTERNALS,
        KNOW_STORAGE,
        NAMES_CLASSES,
        NAMES_IN_INIT,
        WHOLE,
        EFFECTS,
    )
    listed = [path for paths in places for path in paths]
    assert_none(
        f"{path}:1: is listed above, and is no file"
        for path in listed
        if not (ROOT / path).is_file()
    )


def test_an_init_is_one_docstring() -> None:
    assert_none(
        f"{path}:1: has to be one docstring and nothing else"
        for path in files(*PRODUCT, "tests")
        if path.name == "__init__.py"
        and path.as_posix() not in NAMES_IN_INIT
        and (len(tree(path).body) != 1 or not ast.get_docstring(tree(path)))
    )


def test_modules_and_functions_stay_short() -> None:
    offences: list[str] = []
    for path in EVERY_FILE:
        lines = len((ROOT / path).read_text().splitlines())
        longest = LONGEST_TEST if path.parts[0] == "tests" else LONGEST_MODULE
        if lines > longest and path.as_posix() not in WHOLE:
            offences.append(f"{path}:1: has {lines} lines, at most {longest} are allowed")
        for function in functions(path):
            if length(function) > LONGEST_FUNCTION:
                offences.append(
                    f"{path}:{function.lineno}: {function.name} has {length(function)} lines, "
                    f"at most {LONGEST_FUNCTION} are allowed"
                )
    assert_none(offences)


def test_product_code_raises_instead_of_asserting() -> None:
    assert_none(
        f"{path}:{node.lineno}: asserts"
        for path in files(*PRODUCT)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Assert)
    )


def test_public_names_say_what_they_promise() -> None:
    offences: list[str] = []
    for path in files(*PRODUCT):
        if not ast.get_docstring(tree(path)):
            offences.append(f"{path}:1: the module has no docstring")
        for node in public(tree(path)):
            if not ast.get_docstring(node):
                offences.append(f"{path}:{node.lineno}: {node.name} has no docstring")
    assert_none(offences)


def test_rules_are_annotated() -> None:
    assert_none(
        f"{path}:{function.lineno}: {function.name} does not say what it returns"
        for path in RULE_FILES
        for function in functions(path)
        if function.returns is None
    )


def test_nothing_is_left_undone_and_no_machine_is_named() -> None:
    offences: list[str] = []
    for path in EVERY_FILE:
        # This file holds the words that it forbids.
        if path == Path("tests/test_architecture.py"):
            continue
        text = (ROOT / path).read_text()
        for pattern in (FORBIDDEN_WORDS, FORBIDDEN_PATHS, REGISTRIES):
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                offences.append(f"{path}:{line}: holds {match[0]!r}")
    assert_none(offences)


def test_dags_know_the_spec_alone() -> None:
    offences: list[str] = []
    for path in files("dags"):
        offences += imported_from(path, {"pyspark", "delta", "pyarrow", "jobs", "expectations"})
        for line, name in imported(tree(path)):
            allowed = name.startswith(("windowing.spec", "windowing.errors"))
            if name.startswith("windowing") and not allowed:
                offences.append(f"{path}:{line}: imports {name}")
    assert_none(offences)


def test_the_lint_finds_what_it_forbids() -> None:
    sample = ast.parse(
        "def f(x, run):\n"
        "    import pyspark.sql\n"
        "    return x.collect(), F.count('*'), run.first, x.write.save('t')\n"
    )
    assert "pyspark.sql" in {name for _, name in imported(sample)}
    assert {said for _, said in actions(sample)} == {"x.collect", "x.write", "x.write.save"}
    assert list(called_on(ast.parse("datetime.now(UTC)"))) == [("datetime", "now", 1)]


def test_the_lint_finds_what_nobody_promises() -> None:
    sample = ast.parse(
        "from pyspark.java_gateway import launch_gateway\n"
        "from pyspark.sql import _hidden\n"
        "spark._jvm.f(self._own, os._exit)\n"
        "name = f'org.apache.{x}'\n"
    )
    assert list(private_of_others(sample)) == [("spark", "_jvm", 3)]
    asked = [name for _, name in modules_of(sample, {"pyspark"})]
    assert asked == ["pyspark.java_gateway", "pyspark.sql", "pyspark.sql._hidden"]
    assert [text for text, _ in texts(sample)] == ["org.apache."]


def test_the_lint_finds_effects_on_delta() -> None:
    sample = ast.parse(
        "DeltaTable.forPath(spark, p)\n"
        "file.write(text)\n"
        "rows.write.save(p)\n"
        "spark.sql('select 1')\n"
        "batch.spark.sql(f'alter table {p} add columns (x int)')\n"
    )
    assert sorted(line for line, _ in effects(sample)) == [1, 3, 5]
