"""The layout as a test: what a folder and a file name promise about privileges, sizes and words.

Each test looks at all files that a rule is about, and its message names every place that breaks it.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRODUCT = ("tidemark", "windowing", "jobs", "expectations", "dags", "docker")
LONGEST_MODULE, LONGEST_TEST, LONGEST_FUNCTION = 400, 600, 60
PURE = {"pyspark", "delta", "pyarrow", "os", "time", "random", "pathlib", "io", "subprocess"}
ACTIONS = {
    "cache",
    "checkpoint",
    "collect",
    "count",
    "first",
    "foreach",
    "foreachBatch",
    "head",
    "isEmpty",
    "localCheckpoint",
    "persist",
    "save",
    "saveAsTable",
    "show",
    "start",
    "tail",
    "take",
    "toArrow",
    "toLocalIterator",
    "toPandas",
}
WRITERS = {"write", "writeStream", "writeTo"}
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
    "windowing/expressions/times.py",
    "windowing/expressions/values.py",
    "windowing/ingest/fit.py",
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
    "windowing/advise/advice.py",
    "windowing/advise/analysis.py",
    "windowing/advise/boundaries.py",
    "windowing/advise/cost.py",
    "windowing/advise/ends.py",
    "windowing/advise/groups.py",
    "windowing/advise/history.py",
    "windowing/advise/keys.py",
    "windowing/advise/local_times.py",
    "windowing/advise/open_windows.py",
    "windowing/advise/reading.py",
    "windowing/advise/share.py",
    "windowing/columns.py",
    "windowing/crash.py",
    "windowing/errors.py",
    "windowing/grid/placing.py",
    "windowing/grid/range.py",
    "windowing/grid/zone.py",
    "windowing/ingest/columns.py",
    "windowing/ingest/example.py",
    "windowing/ingest/header.py",
    "windowing/ingest/inference.py",
    "windowing/ingest/names.py",
    "windowing/ingest/project.py",
    "windowing/ingest/proposal.py",
    "windowing/ingest/sniff.py",
    "windowing/ledger/acceptance.py",
    "windowing/ledger/counts.py",
    "windowing/ledger/erased.py",
    "windowing/ledger/evolved.py",
    "windowing/ledger/history.py",
    "windowing/report/alarms.py",
    "windowing/report/places.py",
    "windowing/report/publications.py",
    "windowing/report/status.py",
    "windowing/ledger/nulls.py",
    "windowing/ledger/offsets.py",
    "windowing/location.py",
    "windowing/report/ages.py",
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
    "windowing/source/names.py",
    "windowing/source/rewrites.py",
    "windowing/storage/file_figures.py",
    "windowing/windows/reach.py",
)
# Rows leave Spark as plain values here, by one collect.
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
# How Python reaches the JVM behind PySpark's back.
PRIVATE = ("_jvm", "_jsparkSession", "_jdf", "_jsc", "_gateway", "_active_spark_context")
# Only these ask Spark and Delta by names that neither of them promises.
INTERNALS = ("windowing/storage/delta_log.py", "windowing/storage/spark_internals.py")
# Only these look at the directory of a lake themselves: one that Great Expectations writes, one to
# lock, one to rename, and one that messages of others name.
DIRECTORIES = (
    "jobs/foreign_errors/control_errors.py",
    "jobs/locking/lock_file.py",
    "jobs/reset.py",
)
# The public names are functions of the package itself, so that they are found where they are read.
NAMES_IN_INIT = ("tidemark/__init__.py",)
# One referee of every law stays one file.
WHOLE = ("tests/test_oracle.py",)

# Files of jobs/ that act on Delta themselves. All others ask windowing/ or one of these.
EFFECTS = (
    # Writes the source of the sample pipeline whose runs fill the class archive.
    "jobs/local/class_archive.py",
)
STATEMENTS = re.compile(
    r"\b(alter|create|delete|drop|insert|merge|optimize|replace|restore|truncate|update|vacuum)\b",
    re.IGNORECASE,
)

FORBIDDEN_WORDS = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b")
FORBIDDEN_PATHS = re.compile(r"(?<![\w.])/(work|root)/")
REGISTRIES = re.compile(
    r"pypi\.org|pythonhosted|maven\.(org|apache)|repo1\.|docker\.io|ghcr\.io|npmjs"
)


def files(*folders: str) -> list[Path]:
    """The Python files below the folders, as paths from the root."""
    return sorted(f.relative_to(ROOT) for folder in folders for f in (ROOT / folder).rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    """The module as syntax."""
    return ast.parse((ROOT / path).read_text())


def imported(module: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, name) of every import, wherever it stands; `from a import b` gives a and a.b."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def imported_from(path: Path, packages: Iterable[str]) -> Iterator[str]:
    """The places where a file imports one of the top-level packages."""
    for line, name in imported(tree(path)):
        if name.partition(".")[0] in packages:
            yield f"{path}:{line}: imports {name}"


def called_on(module: ast.Module) -> Iterator[tuple[str, str, int]]:
    """(what it is taken from, attribute, line) of every attribute."""
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node.value), node.attr, node.lineno


def called(module: ast.Module) -> set[int]:
    """The identities of all expressions that are called."""
    return {id(node.func) for node in ast.walk(module) if isinstance(node, ast.Call)}


def actions(module: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, expression) of whatever makes Spark work or write; functions of F are columns."""
    calls = called(module)
    for node in ast.walk(module):
        if not isinstance(node, ast.Attribute) or ast.unparse(node.value) == "F":
            continue
        if node.attr in WRITERS or (node.attr in ACTIONS and id(node) in calls):
            yield node.lineno, ast.unparse(node)


def effects(module: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, expression) of whatever acts on Delta; `write(...)` writes to a file, not to Delta."""
    calls = called(module)
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and node.id == "DeltaTable":
            yield node.lineno, node.id
        elif isinstance(node, ast.ImportFrom) and node.module == "delta.tables":
            yield node.lineno, "from delta.tables import"
        elif isinstance(node, ast.Attribute) and node.attr in ("write", "writeTo"):
            if node.attr == "writeTo" or id(node) not in calls:
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("spark.sql"):
            statement = ast.unparse(node)
            if STATEMENTS.search(statement):
                yield node.lineno, statement


def public(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """The public classes and functions of a module, and the public methods of those classes."""
    for node in module.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if node.name.startswith("_"):
            continue
        yield node
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    yield member


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a file, nested ones included."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring and its decorators."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return lines
    docstring = function.body[0]
    return lines - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


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


def assert_none(offences: Iterable[str]) -> None:
    """Fails with one line for each place that breaks a rule."""
    found = sorted(set(offences))
    assert not found, f"{len(found)} places break the rule:\n" + "\n".join(found)


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
        expected = ["collect"] if path.as_posix() in LEAVES_SPARK else []
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


def test_storage_is_the_one_door_to_tables_and_to_the_jvm() -> None:
    assert_none(
        f"{path}:{line}: {name} is for {STORAGE} alone"
        for path in files(*PRODUCT)
        if path not in files(STORAGE)
        for line, name in imported(tree(path))
        if name in ("deltalake", "delta.tables")
    )


def test_what_nobody_promises_is_asked_in_two_files() -> None:
    assert_none(
        f"{path}:{line}: {owner}.{name} is for {' and '.join(INTERNALS)} alone"
        for path in files(*PRODUCT)
        if path.as_posix() not in INTERNALS
        for owner, name, line in called_on(tree(path))
        if name in PRIVATE
    )
    assert_none(
        offence
        for path in files(*PRODUCT)
        if path.as_posix() not in INTERNALS
        for offence in imported_from(path, {"py4j"})
    )


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


def test_the_files_of_a_lake_are_asked_of_storage() -> None:
    known = {*map(Path, DIRECTORIES), *files(STORAGE), Path("windowing/location.py")}
    offences: list[str] = []
    for path in files("windowing", "jobs", "expectations", "dags"):
        if path in known:
            continue
        for owner, name, line in called_on(tree(path)):
            if name == "local":
                offences.append(f"{path}:{line}: {owner}.local is a path; ask a store or storage")
    assert_none(offences)
    assert all(".local" in (ROOT / path).read_text() for path in DIRECTORIES)


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


def test_the_lint_finds_effects_on_delta() -> None:
    sample = ast.parse(
        "DeltaTable.forPath(spark, p)\n"
        "file.write(text)\n"
        "rows.write.save(p)\n"
        "spark.sql('select 1')\n"
        "batch.spark.sql(f'alter table {p} add columns (x int)')\n"
    )
    assert sorted(line for line, _ in effects(sample)) == [1, 3, 5]
