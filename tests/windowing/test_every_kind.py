"""Each window kind is where its meaning is shown, tested and told, so that none is left out."""

import re
from typing import Any, get_args

import pytest

from tests.expectations import planted
from tests.support.python_code import ROOT
from tests.windowing.spec.specs import with_window
from tests.windowing.windows.test_windows_reach import BOUNDED
from tests.windowing.windows.test_windows_together import WINDOWS
from windowing.spec.kinds import Aligned, Window
from windowing.spec.load import load_pipeline
from windowing.spec.yaml.window_document import KINDS


@pytest.mark.parametrize("page", ["docs/windows.md", "docs/concepts.md", "docs/glossary.md"])
def test_a_page_names_every_kind(page: str) -> None:
    text = (ROOT / page).read_text().lower()
    spelled = {kind: kind.replace("_", "[ _-]") for kind in KINDS}
    assert [kind for kind, words in spelled.items() if not re.search(rf"\b{words}", text)] == []


def test_every_kind_has_a_transcript() -> None:
    specs = (ROOT / "tests/transcripts").rglob("*.yaml")
    played = " ".join(spec.read_text() for spec in specs)
    assert [kind for kind in KINDS if not re.search(rf"\bkind: {kind}\b", played)] == []


def test_a_wrong_row_of_every_kind_is_planted() -> None:
    assert {type(window) for window in planted.WINDOWS} == set(get_args(Window))


def test_the_reach_of_every_kind_on_a_grid_is_known() -> None:
    windows = [find_window(kind, fields) for kind, fields, *_ in BOUNDED]
    assert {type(window) for window in windows} >= set(get_args(Aligned))


def test_every_kind_on_a_grid_is_computed_beside_others() -> None:
    assert {type(window) for window in WINDOWS} == set(get_args(Aligned))


def find_window(kind: str, fields: dict[str, Any]) -> Window:
    return load_pipeline(with_window(kind, **fields)).windows[0]
