"""Python code of pages uses the public names alone."""

import ast
import re
import sys
from pathlib import Path

import pytest

import tidemark

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}-{number}")
    for page in PAGES
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    )
]
DAGS = ast.parse((ROOT / "tidemark" / "dags.py").read_text())
INTERNAL = re.compile(r"\b(?:from|import) (?:dags|expectations|jobs|windowing)\b")
OTHERS = {
    *sys.stdlib_module_names,
    "airflow",
    "deltalake",
    "psycopg",
    "pyarrow",
    "pyiceberg",
    "pyspark",
}


def imported_from(code: str) -> dict[str, set[str]]:
    """Module -> the names that are taken from it."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.setdefault(alias.name, set())
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            found.setdefault(node.module or "", set()).update(names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "tidemark":
            found.setdefault("tidemark", set()).add(node.attr)
    return found


def test_there_is_code() -> None:
    assert len(CODE) >= 6


@pytest.mark.parametrize("code", CODE)
def test_code_imports_public_names(code: str) -> None:
    found = imported_from(code)
    assert found.pop("tidemark", set()) <= set(tidemark.__all__)
    assert found.pop("tidemark.dags", set()) <= public_names(DAGS)
    assert {module.partition(".")[0] for module in found} <= OTHERS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_import_public_names(page: Path) -> None:
    assert not INTERNAL.search(page.read_text())


def public_names(module: ast.Module) -> set[str]:
    """The names in `__all__`; Airflow's environment alone can import the module itself."""
    (listed,) = (
        node.value
        for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return set(ast.literal_eval(listed))


def test_other_code_is_found() -> None:
    found = imported_from("import jobs.run\nfrom tidemark import a\ntidemark.b()\n")
    assert found == {"jobs.run": set(), "tidemark": {"a", "b"}}
