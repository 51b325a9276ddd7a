"""Whether checkpoint, ledger and tables are consistent. No Spark, no files.

Stream (the checkpoint's files) + Story (the ledger) + versions of tables
-> findings, each with its repair
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from json import JSONDecodeError, loads

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
    "CHECKPOINT_LOST": RECOVER,
    "CHECKPOINT_OLDER": RECOVER,
    "CHECKPOINT_FOREIGN": RECOVER,
    "CHECKPOINT_DAMAGED": RECOVER,
    "POINTER_NEWER": RECOVER,
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


@dataclass(frozen=True)
class Stream:
    """The content of a checkpoint: the query's id, the offsets by batch, and the committed batches.

    `damaged` are files that can't be read, and `there` is whether there is a checkpoint at all.
    """

    query: str | None = None
    offsets: Mapping[int, str] = field(default_factory=dict)
    commits: frozenset[int] = frozenset()
    damaged: tuple[str, ...] = ()
    there: bool = True

    @property
    def offset(self) -> int:
        """The newest batch that has offsets; -1 for none."""
        return max(self.offsets, default=-1)

    @property
    def commit(self) -> int:
        """The newest batch that was committed; -1 for none."""
        return max(self.commits, default=-1)


def of_stream(stream: Stream, past: LedgerExcerpt) -> tuple[Finding, ...]:
    """Where the checkpoint is inconsistent with the ledger.

    There is no finding where the next run can continue, or retry what an interrupted one began.
    """
    if not stream.there:
        return _lost_checkpoint(past)
    finding = _unusable_checkpoint(stream, past)
    if finding is not None:
        return (finding,)
    return tuple(_compare_positions(stream, past))


def _lost_checkpoint(past: LedgerExcerpt) -> tuple[Finding, ...]:
    last, began = past.last_batch, past.open_batch
    if last < 0 and began is None:
        return ()
    batch = last if began is None else began
    found = f"there is no checkpoint, and the ledger has begun batch {batch}"
    return (Finding("CHECKPOINT_LOST", found),)


def _unusable_checkpoint(stream: Stream, past: LedgerExcerpt) -> Finding | None:
    """The finding that makes it needless to compare batches, if there is one."""
    last = past.last_batch
    if stream.damaged:
        return Finding("CHECKPOINT_DAMAGED", f"{', '.join(stream.damaged)} can't be read")
    committed = f"the stream has committed batch {stream.commit}"
    if stream.commit >= 0 and last < 0:
        return Finding("LEDGER_LOST", f"{committed}, and the ledger has none")
    if past.query is not None and stream.query is not None and stream.query != past.query:
        found = f"it is that of query {stream.query}, and state was written by {past.query}"
        return Finding("CHECKPOINT_FOREIGN", found)
    if stream.commit > last:
        return Finding("LEDGER_OLDER", f"{committed}, and the ledger ends with {last}")
    if stream.query is None and stream.offset >= 0:
        return Finding("CHECKPOINT_DAMAGED", "metadata is missing")
    return None


def _compare_positions(stream: Stream, past: LedgerExcerpt) -> Iterator[Finding]:
    """Whether the stream stands where the ledger does, and its batches end at the same offsets."""
    last, began = past.last_batch, past.open_batch
    # Spark writes the commit of a batch after the ledger's done entry, so it may lack the last one.
    if stream.offset < last or stream.commit < last - 1:
        where = "the stream is at its beginning"
        if stream.offset >= 0:
            where = f"the stream is at batch {max(stream.offset, stream.commit)}"
        yield Finding("CHECKPOINT_OLDER", f"{where}, and the ledger ends with {last}")
    elif began is not None and stream.offset < began:
        found = f"the stream is at batch {stream.offset}, and the ledger has begun {began}"
        yield Finding("CHECKPOINT_OLDER", found)
    elif stream.offset > last + 1 or stream.offset > stream.commit + 1:
        found = f"it has offsets of batch {stream.offset}, and committed {stream.commit}"
        yield Finding("CHECKPOINT_DAMAGED", found)
    else:
        batches = [last] if began is None else [last, began]
        for batch in batches:
            if not same_cut(stream.offsets.get(batch), past.offsets(batch)):
                found = f"its batch {batch} ends at other offsets than that of the ledger"
                yield Finding("CHECKPOINT_FOREIGN", found)


def same_cut(ours: str | None, theirs: str | None) -> bool:
    """Whether two offset files end at the same place of the source.

    Where one of them is missing, they are taken for the same.
    """
    if ours is None or theirs is None:
        return True
    # The lines before the last one are about the query; the last one is the source's offset.
    return ours.splitlines()[-1:] == theirs.splitlines()[-1:]


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


def of_pointer(step: int | None, past: LedgerExcerpt) -> Iterator[Finding]:
    """Where the pointer is newer than the ledger, whose publish entry it copies.

    Readers would follow it to versions that the tables do not have, or have not any more. It may be
    older: publishing writes the ledger first.
    """
    published = -1 if past.published is None else past.published.seq
    if step is not None and step > published:
        last = "none" if past.published is None else f"step {published} as the last one"
        found = f"it copies step {step} of the ledger, which has published {last}"
        yield Finding("POINTER_NEWER", found)


def readable(text: str, lines: int) -> bool:
    """Whether the text of a file of a checkpoint is complete.

    It has at least `lines` lines, all of them JSON except for the version at their head.
    """
    parts = text.splitlines()
    if len(parts) < lines:
        return False
    for part in parts:
        # "-" stands for a source without an offset.
        if part in {"v1", "-"}:
            continue
        try:
            content = loads(part)
        except JSONDecodeError:
            return False
        if not isinstance(content, dict):
            return False
    return True


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
