"""Where quotes of CSV end: random files are open where a reader that goes by characters says so."""

from random import Random

import pytest

from windowing.ingest.header import BOM
from windowing.ingest.quotes import is_left_open
from windowing.spec.pipeline import CsvForm

DOUBLED = CsvForm()
ESCAPED = CsvForm(delimiter=";", quote="'", escape="\\")


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("", "closed"),
        ('id,place\n1,"a"\n', "closed"),
        ('id,place\n1,"a\nb"\n2,c\n', "closed"),
        ('id,place\n1,"a\n2,b\n3,c\n', "open"),
        ('id,place\n1,"a', "open"),
        ('id,place\r\n1, "a\r\n2,b\r\n', "open"),
        ('id,place\n1,"a ""b\n\n""c"" d"\n', "closed"),
        ('id,place\n1,"a""\n2,b\n', "open"),
        ('id,place\n1,"\n"",\n"\n', "closed"),
        ('id,place\n1,5" nail\n2,b\n', "closed"),
        ('id,place\n1,"a" b\n2,5" nail\n', "closed"),
        ('"id\n', "open"),
        (f'{BOM}"id\n', "open"),
        (f'{BOM}"id","place"\n1,2\n', "closed"),
    ],
)
def test_a_file_is_open_where_nothing_closes_its_last_quote(text: str, ends: str) -> None:
    assert is_left_open(text.splitlines(keepends=True), DOUBLED) is (ends == "open")


def read_plainly(text: str, form: CsvForm) -> bool:
    """Whether the text ends inside of quotes, character by character."""
    begins, inside, at = True, False, 0
    while at < len(text):
        character = text[at]
        follows = text[at + 1 : at + 2]
        at += 1
        if inside:
            if character == form.escape or (
                form.escape is None and character == form.quote == follows
            ):
                at += 1
            elif character == form.quote:
                inside = begins = False
        elif begins and character == form.quote:
            inside = True
        else:
            begins = character in (form.delimiter, "\n") or (begins and character == " ")
    return inside


@pytest.mark.parametrize("form", [DOUBLED, ESCAPED], ids=["doubled", "escaped"])
def test_files_are_open_as_a_plain_reader_says(form: CsvForm) -> None:
    rng = Random(3)
    escape = form.escape or form.quote
    found = set()
    for _ in range(5000):
        characters = [form.quote, form.quote, form.delimiter, escape, "\n", " ", "a"]
        text = "".join(rng.choices(characters, k=rng.randrange(14)))
        is_open = read_plainly(text, form)
        assert is_left_open(text.splitlines(keepends=True), form) is is_open, text
        found.add(is_open)
    assert found == {True, False}
