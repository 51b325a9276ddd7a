"""Examples in docstrings are true."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHOWN = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("windowing", "expectations")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("module", SHOWN)
def test_examples_in_docstrings_are_true(module: str) -> None:
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0
