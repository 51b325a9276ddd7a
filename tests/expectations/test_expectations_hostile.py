"""Suite files that nobody meant to write, or that someone did.

Each is refused in one short sentence that names the file.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from expectations.suite import load_suite
from tests.expectations.planted import PIPELINE
from windowing.errors import SpecError
from windowing.spec.yaml.file import LIMIT

SUITED = replace(PIPELINE, suite="odd")
HUGE = "0x" + "f" * 4000
"""A number that Python writes out to nobody."""
EXISTS = "type: expect_column_to_exist, kwargs: {column: flights}"


def refused(folder: Path, text: str | bytes) -> str:
    """What is said after the name of the file."""
    file = folder / "odd.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SpecError) as caught:
        load_suite(SUITED, folder)
    sentence = str(caught.value)
    assert sentence.startswith(f"{file}: ")
    assert "\n" not in sentence
    assert len(sentence) < len(str(file)) + 300
    return sentence.removeprefix(f"{file}: ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "hourly: []\n# café\n".encode("latin-1"),
            "line 2: is not UTF-8 text; save the file as UTF-8",
        ),
        (b"\xff\xfeh\x00", "line 1: is not UTF-8 text"),
        (b"\x00", "is not YAML"),
        ("hourly: " + "[" * 1000, "is nested too deeply"),
        ("hourly: " + "[" * 1000 + "]" * 1000, "is nested too deeply"),
        ("hourly: " + "{a: " * 3000 + "}" * 3000, "is nested too deeply"),
        (
            "hourly: &all []\nzoned: *all",
            "hourly: anchors such as &all and aliases are not allowed; write the value out",
        ),
        (
            f"hourly: [&one {{{EXISTS}}}, *one]",
            "hourly[0]: anchors such as &one and aliases are not allowed",
        ),
        ("hourly: *all", "line 1: is not YAML (found undefined alias"),
        ("hourly: []\nhourly: []", "hourly: is given twice, again in line 2; keep one of them"),
        (
            f"hourly:\n  - {{{EXISTS}, severity: warning, severity: critical}}",
            "hourly[0].severity: is given twice, again in line 2",
        ),
        ("hourly: !!python/object/apply:os.getcwd []", "hourly: the tag '"),
        ("%YAML 1.1\n---\nhourly: []", "line 1: '%YAML 1.1' is a directive"),
        ("hourly: []\n#" + "x" * LIMIT, f"is larger than {LIMIT // 1024} KB"),
    ],
)
def test_a_file_that_is_no_suite_is_named(tmp_path: Path, text: str | bytes, sentence: str) -> None:
    assert refused(tmp_path, text).startswith(sentence)


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    begun = "hourly: []\n#"
    (tmp_path / "odd.yaml").write_text(begun + "x" * (LIMIT - len(begun)))
    assert load_suite(SUITED, tmp_path) == {"hourly": []}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (HUGE, "has to be a mapping from window names to lists of expectations"),
        (
            f"hourly: {HUGE}",
            "hourly: has to be a list of expectations, not a number of thousands of digits",
        ),
        (
            f"hourly: [{HUGE}]",
            "hourly[0]: has to be a mapping with a type, not a number of thousands of digits",
        ),
        (
            f"hourly: [{{type: expect_column_to_exist, kwargs: {HUGE}}}]",
            "hourly[0].kwargs: has to be a mapping of arguments, not a number",
        ),
        (
            f"hourly: [{{{EXISTS}, severity: {HUGE}}}]",
            "hourly[0].severity: a number of thousands of digits is not a severity",
        ),
        (
            f"hourly: [{{{EXISTS}, description: {HUGE}}}]",
            "hourly[0].description: a number of thousands of digits is not text",
        ),
        (f"hourly: {'z' * 100_000}", "hourly: has to be a list of expectations, not 'zzz"),
    ],
)
def test_a_value_too_long_to_write_out_is_refused_all_the_same(
    tmp_path: Path, text: str, sentence: str
) -> None:
    assert refused(tmp_path, text).startswith(sentence)
