"""Which files are new, and what a crash leaves: pure rules, and every crash of a small model."""

import random
from dataclasses import dataclass, field

import pytest

from windowing.ingest.rule import (
    LandedFile,
    Shape,
    Standing,
    compare_files,
    cut_batches,
    describe_names,
    fence_number,
    group_by_shape,
    judge_standing,
    rows_number,
)


def landed(name: str, size: int = 10, at: int = 0) -> LandedFile:
    return LandedFile(name, size, at)


def test_files_are_taken_in_the_order_in_which_they_were_written() -> None:
    files = [landed("b.csv", at=2), landed("a.csv", at=2), landed("z.csv", at=1)]
    assert [f.name for f in compare_files(files, {}, "csv").new] == ["z.csv", "a.csv", "b.csv"]


@pytest.mark.parametrize("name", [".a.csv", "_a.csv", "_tmp/a.csv", "day/.part/a.csv"])
def test_hidden_files_are_not_there_yet(name: str) -> None:
    found = compare_files([landed(name)], {}, "csv")
    assert (found.new, found.changed, found.others) == ((), (), ())


@pytest.mark.parametrize(
    ("form", "name", "times"),
    [
        ("csv", "a.csv", 1),
        ("csv", "a.tsv.gz", 1),
        ("csv", "a.CSV", 1),
        ("csv", "a.zip", 0),
        ("csv", "a.csv.GZ", 0),
        ("json", "a.jsonl", 1),
        ("json", "a.ndjson.gz", 1),
        ("json", "a.csv", 0),
        ("parquet", "a.parquet", 1),
        ("parquet", "a.parquet.gz", 0),
    ],
)
def test_files_of_another_format_are_named(form: str, name: str, times: int) -> None:
    found = compare_files([landed(name)], {}, form)
    assert [f.name for f in found.new] == [name] * times
    assert list(found.others) == [name] * (1 - times)


@pytest.mark.parametrize("now", [landed("a.csv", 11), landed("a.csv", 9), landed("a.csv", at=1)])
def test_a_file_that_is_not_as_it_was_taken_has_changed(now: LandedFile) -> None:
    found = compare_files([now], {"a.csv": landed("a.csv")}, "csv")
    assert (found.new, found.changed) == ((), (now,))


def test_a_file_without_bytes_is_not_there_yet() -> None:
    found = compare_files([landed("a.csv", 0), landed("b.csv", 1)], {}, "csv")
    assert (found.new, found.changed, found.others) == ((landed("b.csv", 1),), (), ())
    emptied = landed("a.csv", 0)
    assert compare_files([emptied], {"a.csv": landed("a.csv")}, "csv").changed == (emptied,)


def test_a_file_that_was_taken_is_nothing_new() -> None:
    found = compare_files([landed("a.csv")], {"a.csv": landed("a.csv")}, "csv")
    assert (found.new, found.changed) == ((), ())


def test_batches_have_an_end_in_bytes_and_files() -> None:
    files = [landed("a", 6), landed("b", 6), landed("c", 99), landed("d", 1), landed("e", 1)]
    batches = [[f.name for f in batch] for batch in cut_batches(files, 10, 2)]
    assert batches == [["a"], ["b"], ["c"], ["d", "e"]]
    assert [len(batch) for batch in cut_batches(files, 10_000, 2)] == [2, 2, 1]
    assert cut_batches([], 10, 2) == []


@pytest.mark.parametrize(
    ("recorded", "committed", "void", "standing"),
    [
        (0, 0, "", Standing.WHOLE),
        (1, 0, "", Standing.OPEN),
        (1, 2, "", Standing.WHOLE),
        (1, 3, "", Standing.FENCED),
        (1, 3, "void", Standing.WHOLE),
        (2, 3, "", Standing.OPEN),
        (2, 2, "", Standing.OPEN),
        (2, 4, "", Standing.WHOLE),
        (0, 2, "", Standing.RECORD_BEHIND),
        (0, 3, "", Standing.RECORD_BEHIND),
        (1, 4, "", Standing.RECORD_BEHIND),
        (2, 0, "", Standing.TABLE_BEHIND),
        (5, 4, "", Standing.TABLE_BEHIND),
    ],
)
def test_record_and_table_fit_or_are_told_apart(
    recorded: int, committed: int, void: str, standing: Standing
) -> None:
    assert judge_standing(recorded, committed, is_void=void == "void") is standing


class Crashed(Exception):
    """Ends an ingest of the model."""


@dataclass
class Model:
    """What an ingest leaves, as plain values: record, quarantine, rows and numbers of the source.

    Each file has one row and one broken record of its name.
    """

    rng: random.Random
    folder: list[str] = field(default_factory=list)
    recorded: list[tuple[int, str | None]] = field(default_factory=list)
    quarantine: list[tuple[int, str]] = field(default_factory=list)
    source: list[str] = field(default_factory=list)
    committed: int = 0

    def step(self) -> None:
        if self.rng.random() < 0.2:
            raise Crashed

    @property
    def batch(self) -> int:
        return max((batch for batch, _ in self.recorded), default=0)

    def standing(self) -> Standing:
        void = any(name is None for batch, name in self.recorded if batch == self.batch)
        return judge_standing(self.batch, self.committed, is_void=void)

    def commit(self, number: int, rows: list[str]) -> None:
        if number > self.committed:
            self.source += rows
            self.committed = number

    def ingest(self) -> None:
        """As jobs/ingest.py does it, with a crash before every effect."""
        batch, standing = self.batch, self.standing()
        if standing is not Standing.WHOLE:
            if standing is Standing.OPEN:
                self.step()
                self.commit(fence_number(batch), [])
            self.step()
            self.quarantine = [(b, name) for b, name in self.quarantine if b != batch]
            self.step()
            self.recorded = [(b, n) for b, n in self.recorded if b != batch] + [(batch, None)]
            self.step()
        taken = {name for _, name in self.recorded}
        new = [name for name in self.folder if name not in taken]
        if not new:
            return
        batch += 1
        self.step()
        self.recorded += [(batch, name) for name in new]
        self.step()
        self.quarantine += [(batch, name) for name in new]
        self.step()
        self.commit(rows_number(batch), new)
        self.step()


@pytest.mark.parametrize("seed", range(200))
def test_every_file_is_taken_once_wherever_ingests_end(seed: int) -> None:
    model = Model(random.Random(seed))
    for n in range(30):
        model.folder.append(f"{n}")
        try:
            model.ingest()
        except Crashed:
            assert model.standing() in (Standing.WHOLE, Standing.OPEN, Standing.FENCED)
    while True:
        try:
            model.ingest()
            break
        except Crashed:
            continue
    assert sorted(model.source) == sorted(model.folder)
    assert sorted(name for _, name in model.quarantine) == sorted(model.folder)
    assert sorted(n for _, n in model.recorded if n is not None) == sorted(model.folder)


def test_files_with_equal_columns_are_one_group() -> None:
    shapes = {"1": Shape(("a", "b")), "2": Shape(("b", "a")), "3": Shape(("a", "b"))}
    shapes["4"] = Shape(("a", "b"), "int")
    groups = group_by_shape(shapes)
    assert groups == [(("a", "b"), ("1", "3")), (("a", "b"), ("4",)), (("b", "a"), ("2",))]


def test_many_names_are_told_by_some() -> None:
    assert describe_names(["a"]) == "a"
    assert describe_names([f"f{n}" for n in range(2003)]) == "f0, f1, f2 and 2,000 more"
