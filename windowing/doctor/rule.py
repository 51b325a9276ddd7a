"""What a checkpoint, a ledger and tables say beside each other, and what that means. No Spark, no files.

Stream (the checkpoint's files) + Story (the ledger) + versions of tables -> findings, each with its repair
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from json import JSONDecodeError, loads

from windowing.ledger.rule import Story
from windowing.spec.pipeline import Pipeline

RECOVER, RESET, MOVE = "recover", "reset", "move"
DOES = {
    RECOVER: "makes the checkpoint anew from the ledger",
    RESET: "starts the pipeline over from its source",
}
REPAIRS = {
    "CHECKPOINT_LOST": RECOVER,
    "CHECKPOINT_OLDER": RECOVER,
    "CHECKPOINT_FOREIGN": RECOVER,
    "CHECKPOINT_DAMAGED": RECOVER,
    "LEDGER_LOST": RESET,
    "LEDGER_OLDER": RESET,
    "TABLE_LOST": RESET,
    "TABLE_OLDER": RESET,
    "TABLE_CHANGED": RESET,
    "TABLE_FOREIGN": MOVE,
}
"""Every finding, and the command that repairs it; `move` is for whoever put it there."""


def advice(pipeline: Pipeline, repair: str = RESET) -> str:
    """The command that repairs, and what it does."""
    if repair == MOVE:
        return "take them away, or give the pipeline another name"
    return f"`tidemark {repair} {pipeline.file or pipeline.name}` {DOES[repair]}"


@dataclass(frozen=True)
class Finding:
    """Something that does not fit: its name, what was found, and the command that repairs it."""

    code: str
    found: str

    @property
    def repair(self) -> str:
        """The command."""
        return REPAIRS[self.code]


@dataclass(frozen=True)
class Stream:
    """What lies in a checkpoint: the query's id, and by batch the offsets and the commits. `damaged` are files that can't be read."""

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


def of_stream(stream: Stream, past: Story) -> tuple[Finding, ...]:
    """What of the checkpoint does not fit the ledger; nothing where the next run can go on, or repeat what a killed one began."""
    last, began = past.last_batch, past.open_batch
    if not stream.there:
        text = f"there is none, and the ledger has begun batch {last if began is None else began}"
        return (Finding("CHECKPOINT_LOST", text),) if last >= 0 or began is not None else ()
    if stream.damaged:
        return (Finding("CHECKPOINT_DAMAGED", f"{', '.join(stream.damaged)} can't be read"),)
    if stream.commit >= 0 and last < 0:
        return (
            Finding(
                "LEDGER_LOST",
                f"the stream has committed batch {stream.commit}, and the ledger has none",
            ),
        )
    if past.query is not None and stream.query is not None and stream.query != past.query:
        return (
            Finding(
                "CHECKPOINT_FOREIGN",
                f"it is that of query {stream.query}, and state was made by {past.query}",
            ),
        )
    if stream.commit > last:
        return (
            Finding(
                "LEDGER_OLDER",
                f"the stream has committed batch {stream.commit}, and the ledger ends with {last}",
            ),
        )
    if stream.query is None and stream.offset >= 0:
        return (Finding("CHECKPOINT_DAMAGED", "metadata is missing"),)
    return tuple(_positions(stream, past, last, began))


def _positions(stream: Stream, past: Story, last: int, began: int | None) -> Iterator[Finding]:
    """Whether the stream stands where the ledger says, and cut its batches as the ledger has them."""
    if stream.offset < last or stream.commit < last - 1:
        where = (
            f"the stream is at batch {max(stream.offset, stream.commit)}"
            if stream.offset >= 0
            else "the stream is at its beginning"
        )
        yield Finding("CHECKPOINT_OLDER", f"{where}, and the ledger ends with {last}")
    elif began is not None and stream.offset < began:
        yield Finding(
            "CHECKPOINT_OLDER",
            f"the stream is at batch {stream.offset}, and the ledger has begun {began}",
        )
    elif stream.offset > last + 1 or stream.offset > stream.commit + 1:
        yield Finding(
            "CHECKPOINT_DAMAGED",
            f"it has offsets of batch {stream.offset}, and committed {stream.commit}",
        )
    else:
        for batch in (last, began):
            if batch is not None and not same_cut(stream.offsets.get(batch), past.offsets(batch)):
                yield Finding(
                    "CHECKPOINT_FOREIGN",
                    f"its batch {batch} ends elsewhere than the one of the ledger",
                )


def same_cut(ours: str | None, theirs: str | None) -> bool:
    """Whether two offset files end at the same place of the source; what can't be compared is taken for the same."""
    if ours is None or theirs is None:
        return True
    return ours.splitlines()[-1:] == theirs.splitlines()[-1:]


def readable(text: str, lines: int) -> bool:
    """Whether the text of a file of a checkpoint is whole: at least `lines` lines, JSON but for the version at their head."""
    parts = text.splitlines()
    if len(parts) < lines:
        return False
    try:
        return all(isinstance(loads(part), dict) for part in parts if part not in {"v1", "-"})
    except JSONDecodeError:
        return False


def of_tables(
    recorded: Mapping[str, int], there: Mapping[str, int | None], foreign: Mapping[str, str]
) -> Iterable[Finding]:
    """What of the tables does not fit the versions the ledger recorded.

    `there` are their newest versions, None where there is no table; `foreign` are operations nobody here did, by table.
    """
    for name in sorted(recorded):
        now = there.get(name)
        if now is None:
            yield Finding("TABLE_LOST", f"{name} is gone")
        elif now < recorded[name]:
            yield Finding(
                "TABLE_OLDER",
                f"{name} is at version {now}, and the ledger has seen {recorded[name]}",
            )
        elif name in foreign:
            yield Finding("TABLE_CHANGED", f"{name} was changed from outside: {foreign[name]}")
