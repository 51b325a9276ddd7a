"""Whether ledger, tables and pointer are consistent. No Spark, no files.

ledger + versions of tables, and the batches and runs that they contain + the pointer's step
-> findings, each with its repair
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from windowing.ledger.rule import LedgerExcerpt
from windowing.spec.pipeline import Pipeline

RECOVER = "recover"
RESET = "reset"
MOVE = "move"
DOES = {
    RECOVER: "rebuilds it from the ledger",
    RESET: "starts the pipeline over from its source",
}
REPAIRS = {
    "POINTER_NEWER": RECOVER,
    "POINTER_CHANGED": RECOVER,
    "LEDGER_LOST": RESET,
    "LEDGER_OLDER": RESET,
    "TABLE_LOST": RESET,
    "TABLE_OLDER": RESET,
    "TABLE_CHANGED": RESET,
    "TABLE_FOREIGN": MOVE,
}
"""Every finding, and the command that repairs it.

`move` is no command: whoever put the tables there has to move them.
"""


def advice(pipeline: Pipeline, repair: str = RESET) -> str:
    """The command that repairs, and what it does."""
    if repair == MOVE:
        return "move them away, or give the pipeline another name"
    return f"{name_command(pipeline, repair)} {DOES[repair]}"


def advise_on(pipeline: Pipeline, finding: "Finding") -> str:
    """What to do about a finding; what loses nothing comes first."""
    repair = advice(pipeline, finding.repair)
    if finding.repair == RESET:
        return f"restore {pipeline.root} as a whole from a backup, or {repair}"
    return repair


def name_command(pipeline: Pipeline, *words: str) -> str:
    """A command on the pipeline as a user types it; `words` are its name and its options."""
    command, *options = words
    if pipeline.placed_by is not None:
        options = [*pipeline.placed_by.options, *options]
    return f"`{' '.join(['tidemark', command, pipeline.file or pipeline.name, *options])}`"


@dataclass(frozen=True)
class Finding:
    """An inconsistency: its name, what was found, and the command that repairs it."""

    code: str
    found: str

    @property
    def repair(self) -> str:
        """The command."""
        return REPAIRS[self.code]


def of_batches(stored: Mapping[str, int], past: LedgerExcerpt) -> Iterator[Finding]:
    """Where tables contain batches that the ledger has not begun.

    A batch of that number would be taken for one that is stored already, and its rows would be
    lost. `stored` is the newest batch by table.
    """
    begun = past.last_batch if past.open_batch is None else past.open_batch
    newer = {name: batch for name, batch in sorted(stored.items()) if batch > begun}
    if newer:
        named = ", ".join(f"{name} contains batch {batch}" for name, batch in newer.items())
        yield Finding("LEDGER_OLDER", f"{named}, and the ledger ends with batch {begun}")


def of_runs(stored: Mapping[str, int], past: LedgerExcerpt) -> Iterator[Finding]:
    """Where outputs contain rows of runs that the ledger has not begun.

    `stored` is the newest run by table.
    """
    newer = {name: run for name, run in sorted(stored.items()) if run > past.last_run}
    if newer:
        named = ", ".join(f"{name} contains rows of run {run}" for name, run in newer.items())
        yield Finding("LEDGER_OLDER", f"{named}, and the ledger ends with run {past.last_run}")


def of_pointer(
    step: int | None, versions: Mapping[str, int], past: LedgerExcerpt
) -> Iterator[Finding]:
    """Where the pointer is newer than the ledger, whose publish entry it copies, or no copy of it.

    Readers would follow it to versions that the tables do not have, or that were not published. It
    may be older: publishing writes the ledger first. `versions` are by output those that it names.
    """
    published = -1 if past.published is None else past.published.seq
    if step is not None and step > published:
        last = "none" if past.published is None else f"step {published} as the last one"
        found = f"it copies step {step} of the ledger, which has published {last}"
        yield Finding("POINTER_NEWER", found)
    if past.published is None or step != published:
        return
    noted = past.published.versions
    for name in sorted(versions):
        if versions[name] != noted.get(name):
            found = f"it names version {versions[name]} of {name}, and step {step} of the ledger "
            told = "none" if name not in noted else f"version {noted[name]}"
            yield Finding("POINTER_CHANGED", f"{found}has published {told}")
            return


def of_tables(
    recorded: Mapping[str, int], there: Mapping[str, int | None], foreign: Mapping[str, str]
) -> Iterable[Finding]:
    """Where tables are inconsistent with the versions that the ledger recorded.

    `there` are their newest versions, None where there is no table; `foreign` are by table the
    operations that no run of this pipeline did.
    """
    for name in sorted(recorded):
        now = there.get(name)
        if now is None:
            yield Finding("TABLE_LOST", f"{name} does not exist any more")
        elif now < recorded[name]:
            found = f"{name} is at version {now}, and the ledger has recorded {recorded[name]}"
            yield Finding("TABLE_OLDER", found)
        elif name in foreign:
            yield Finding("TABLE_CHANGED", f"{name} was changed from outside: {foreign[name]}")
