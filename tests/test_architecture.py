"""The layout as a test: what a folder and a file name promise about privileges, sizes and words."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCT = ("windowing", "jobs", "expectations", "dags", "docker")
LONGEST_MODULE, LONGEST_TEST, LONGEST_FUNCTION = 400, 600, 60
PURE = ("pyspark", "delta", "pyarrow", "os", "time", "random", "pathlib", "io", "subprocess")
ACTIONS = {
    "collect", "count", "first", "foreach", "foreachBatch", "head", "isEmpty", "localCheckpoint", "checkpoint", "persist", "cache", "save",
    "saveAsTable", "show", "start", "take", "tail", "toLocalIterator", "toPandas", "toArrow",
}  # fmt: skip
WRITERS = {"write", "writeStream", "writeTo"}
CLOCKS = {"now", "today", "utcnow"}

# Files whose stage keeps its frames under other names.
FRAMES = (
    "windowing/admit/again.py",
    "windowing/admit/digest.py",
    "windowing/aggregates/algebra.py",
    "windowing/aggregates/catalog.py",
    "windowing/aggregates/decimals.py",
    "windowing/aggregates/picks.py",
    "windowing/aggregates/sketches.py",
    "windowing/aggregates/sums.py",
    "windowing/expressions/arithmetic.py",
    "windowing/expressions/compile.py",
    "windowing/expressions/exact_decimals.py",
    "windowing/expressions/values.py",
    "windowing/panes/events.py",
    "windowing/source/widening.py",
    "windowing/windows/aligned.py",
    "windowing/windows/cumulate.py",
    "windowing/windows/finality.py",
    "windowing/windows/gaps.py",
    "windowing/windows/ordered.py",
    "windowing/windows/record.py",
    "windowing/windows/region.py",
    "windowing/windows/session.py",
    "windowing/windows/sliding.py",
    "windowing/windows/whole.py",
)
# Pure files that need no stage of their own.
RULES = (
    "windowing/columns.py",
    "windowing/crash.py",
    "windowing/errors.py",
    "windowing/grid/zone.py",
    "windowing/ledger/nulls.py",
    "windowing/report/curve.py",
    "windowing/report/rows.py",
    "windowing/source/commits.py",
    "windowing/source/names.py",
    "windowing/windows/reach.py",
)
# Rows leave Spark as plain values here, by one collect.
LEAVES_SPARK = ("windowing/report/frame.py",)
# The spec is read from a file, so these may look at paths.
READS_FILES = (
    "windowing/spec/yaml/file.py",
    "windowing/spec/load.py",
    "windowing/spec/places.py",
    "windowing/transcripts/load.py",
)
# Delta itself, which no stage but its tables knows.
DELTA = ("windowing/delta.py", "windowing/table_retention.py")
# One referee of every law stays one file.
WHOLE = ("tests/test_oracle.py",)

FORBIDDEN_WORDS = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b")
FORBIDDEN_PATHS = re.compile(r"(?<![\w.])/(work|root)/")
REGISTRIES = re.compile(
    r"pypi\.org|pythonhosted|maven\.(org|apache)|repo1\.|docker\.io|ghcr\.io|npmjs"
)


def files(*folders: str) -> list[Path]:
    """The Python files below the folders, as paths from the root."""
    return sorted(f.relative_to(ROOT) for folder in folders for f in (ROOT / folder).rglob("*.py"))


def tree(path: Path) -> ast.Module:
    """The module as syntax."""
    return ast.parse((ROOT / path).read_text())


def imported(module: ast.Module) -> Iterator[str]:
    """Every module some statement imports, wherever it stands; `from a import b` gives a and a.b."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def roots(path: Path) -> set[str]:
    """The top-level packages a file imports."""
    return {name.partition(".")[0] for name in imported(tree(path))}


def called_on(module: ast.Module) -> Iterator[tuple[str, str, int]]:
    """(what it is taken from, attribute, line) of every attribute."""
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node.value), node.attr, node.lineno


def actions(module: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, expression) of whatever makes Spark work or write; functions of F are columns."""
    called = {id(node.func) for node in ast.walk(module) if isinstance(node, ast.Call)}
    for node in ast.walk(module):
        if not isinstance(node, ast.Attribute) or ast.unparse(node.value) == "F":
            continue
        if node.attr in WRITERS or (node.attr in ACTIONS and id(node) in called):
            yield node.lineno, ast.unparse(node)


def public(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """The public classes and functions of a module, and the public methods of those classes."""
    for node in module.body:
        if isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        ) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from (
                    f
                    for f in node.body
                    if isinstance(f, ast.FunctionDef) and not f.name.startswith("_")
                )


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a file, nested ones included."""
    return (
        n for n in ast.walk(tree(path)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
    )


RULE_FILES = [
    f
    for f in files("windowing")
    if f.name == "rule.py" or f.as_posix() in RULES or f.parts[1] in ("spec", "transcripts")
]
FRAME_FILES = [f for f in files("windowing") if f.name == "frame.py" or f.as_posix() in FRAMES]
EVERY_FILE = files(*PRODUCT, "tests", "bench")


def named(path: Path) -> str:
    """The name of a case."""
    return path.as_posix()


@pytest.mark.parametrize("path", RULE_FILES, ids=named)
def test_rules_know_no_spark_no_clock_and_no_environment(path: Path) -> None:
    allowed = {"os", "pathlib", "io"} if path.as_posix() in READS_FILES else set()
    # The schema of the spec is also a command, `python -m windowing.spec.yaml.json_schema`.
    assert not roots(path) & (set(PURE) - allowed)
    attributes = list(called_on(tree(path)))
    assert not [(line, name) for _, name, line in attributes if name in CLOCKS]
    assert not [
        line for owner, name, line in attributes if owner == "os" and name in ("environ", "getenv")
    ]


@pytest.mark.parametrize("path", FRAME_FILES, ids=named)
def test_frames_are_lazy_and_know_no_delta(path: Path) -> None:
    assert not roots(path) & {"delta", "pyarrow", "os", "time"}
    assert not [
        name
        for name in imported(tree(path))
        if name.startswith("windowing.delta") or name.endswith(".table")
    ]
    found = [said for _, said in actions(tree(path))]
    assert [said.rpartition(".")[2] for said in found] == (
        ["collect"] if path.as_posix() in LEAVES_SPARK else []
    ), found


@pytest.mark.parametrize("path", [f for f in files("windowing") if f.name != "table.py"], ids=named)
def test_only_tables_touch_delta(path: Path) -> None:
    if path.as_posix() not in DELTA:
        assert not [
            name for name in imported(tree(path)) if name.startswith(("delta.", "windowing.delta"))
        ]


def test_every_stage_file_says_what_it_may_do() -> None:
    known = {*RULE_FILES, *FRAME_FILES, *map(Path, DELTA)}
    other = [
        f
        for f in files("windowing")
        if f not in known
        and f.name not in ("table.py", "__init__.py")
        and f.parent.name != "report"
    ]
    assert not other, "name them rule.py, frame.py or table.py, or list them above with a reason"


@pytest.mark.parametrize("path", [*FRAMES, *RULES, *LEAVES_SPARK, *READS_FILES, *DELTA, *WHOLE])
def test_files_with_a_reason_are_there(path: str) -> None:
    assert (ROOT / path).is_file()


@pytest.mark.parametrize(
    "path", [f for f in files(*PRODUCT, "tests") if f.name == "__init__.py"], ids=named
)
def test_an_init_is_one_docstring(path: Path) -> None:
    body = tree(path).body
    assert len(body) == 1
    assert ast.get_docstring(tree(path))


@pytest.mark.parametrize("path", EVERY_FILE, ids=named)
def test_modules_and_functions_stay_short(path: Path) -> None:
    lines = len((ROOT / path).read_text().splitlines())
    assert (
        lines <= (LONGEST_TEST if path.parts[0] == "tests" else LONGEST_MODULE)
        or path.as_posix() in WHOLE
    ), f"{lines} lines"
    assert not [(f.name, n) for f in functions(path) if (n := _length(f)) > LONGEST_FUNCTION]


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring and its decorators."""
    whole = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    has_docstring = ast.get_docstring(function, clean=False) is not None
    return whole - ((first.end_lineno or first.lineno) - first.lineno + 1 if has_docstring else 0)


@pytest.mark.parametrize("path", files(*PRODUCT), ids=named)
def test_product_code_raises_instead_of_asserting(path: Path) -> None:
    assert not [n.lineno for n in ast.walk(tree(path)) if isinstance(n, ast.Assert)]


@pytest.mark.parametrize("path", files(*PRODUCT), ids=named)
def test_public_names_say_what_they_promise(path: Path) -> None:
    assert ast.get_docstring(tree(path)), "the module"
    assert not [node.name for node in public(tree(path)) if not ast.get_docstring(node)]


@pytest.mark.parametrize("path", RULE_FILES, ids=named)
def test_rules_are_annotated(path: Path) -> None:
    assert not [f.name for f in functions(path) if f.returns is None]


@pytest.mark.parametrize(
    "path", [f for f in EVERY_FILE if f != Path("tests/test_architecture.py")], ids=named
)
def test_nothing_is_left_undone_and_no_machine_is_named(path: Path) -> None:
    text = (ROOT / path).read_text()
    for pattern in (FORBIDDEN_WORDS, FORBIDDEN_PATHS, REGISTRIES):
        assert not pattern.search(text), pattern.pattern


@pytest.mark.parametrize("path", files("dags"), ids=named)
def test_dags_know_the_spec_alone(path: Path) -> None:
    assert not roots(path) & {"pyspark", "delta", "pyarrow", "jobs", "expectations"}
    ours = {name for name in imported(tree(path)) if name.startswith("windowing")}
    assert all(name.startswith(("windowing.spec", "windowing.errors")) for name in ours)


def test_the_lint_finds_what_it_forbids() -> None:
    sample = ast.parse(
        "def f(x, run):\n    import pyspark.sql\n    return x.collect(), F.count('*'), run.first, x.write.save('t')\n"
    )
    assert "pyspark.sql" in set(imported(sample))
    assert {said for _, said in actions(sample)} == {"x.collect", "x.write", "x.write.save"}
    assert list(called_on(ast.parse("datetime.now(UTC)"))) == [("datetime", "now", 1)]
