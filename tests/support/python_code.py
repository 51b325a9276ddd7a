"""The project's code as syntax: what a file imports, asks for, and does."""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
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
STATEMENTS = re.compile(
    r"\b(alter|create|delete|drop|insert|merge|optimize|replace|restore|truncate|update|vacuum)\b",
    re.IGNORECASE,
)
# Python documents these, although their names begin with an underscore.
DOCUMENTED_NAMES = {"os._exit"}


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


def private_of_others(module: ast.Module) -> Iterator[tuple[str, str, int]]:
    """The attributes that begin with an underscore, of anything but a method's own object."""
    for owner, name, line in called_on(module):
        is_private = name.startswith("_") and not name.startswith("__")
        if (
            is_private
            and owner not in ("self", "cls")
            and f"{owner}.{name}" not in DOCUMENTED_NAMES
        ):
            yield owner, name, line


def modules_of(module: ast.Module, packages: set[str]) -> Iterator[tuple[int, str]]:
    """(line, module) of what is imported of the packages; a private name stands for its module."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            private = [alias.name for alias in node.names if alias.name.startswith("_")]
            names = [node.module, *(f"{node.module}.{name}" for name in private)]
        else:
            continue
        for name in names:
            if name.partition(".")[0] in packages:
                yield node.lineno, name


def texts(module: ast.Module) -> Iterator[tuple[str, int]]:
    """(text, line) of every text but docstrings, parts of f-strings included."""
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(module)
        if isinstance(node, described) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(module):
        if not isinstance(node, ast.Constant) or id(node) in docstrings:
            continue
        if isinstance(node.value, str):
            yield node.value, node.lineno


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


def assert_none(offences: Iterable[str]) -> None:
    """Fails with one line for each place that breaks a rule."""
    found = sorted(set(offences))
    assert not found, f"{len(found)} places break the rule:\n" + "\n".join(found)
