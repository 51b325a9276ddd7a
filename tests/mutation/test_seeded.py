"""The bugs that `make seeded` puts into the project still fit it."""

from pathlib import Path

import pytest

from tests.mutation.seeded import BUGS, ROOT, Bug


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_text_of_a_bug_is_there_once_and_the_files_of_its_tests_are_there(bug: Bug) -> None:
    assert (ROOT / bug.file).read_text().count(bug.right) == 1
    assert [
        name
        for name in bug.tests
        if name.startswith("tests/") and not (ROOT / Path(name.partition("::")[0])).is_file()
    ] == []
