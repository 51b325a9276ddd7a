"""Which tables of a pipeline are fenced by whoever takes its lock over.

The ledger comes first. Every step begins with an entry there, so behind that fence no new step can
be begun. If none is open then, nothing else of the pipeline can be written under the old lock.

What an ingest keeps has no ledger. Its record of files comes first there, for the same reason.
"""

from contextlib import suppress

from windowing.admit.outcomes import REFUSED
from windowing.closed.rule import restated_name
from windowing.ingest.rule import FILES, HOME, QUARANTINE
from windowing.ledger.rule import LedgerExcerpt
from windowing.ledger.table import LEDGER, QUALITY, WATERMARKS, read_excerpt
from windowing.merge.rule import REVISIONS, complete_table, output_table, published_name
from windowing.panes.rule import state_names
from windowing.spec.pipeline import Pipeline
from windowing.storage.control import TableError
from windowing.storage.fence import fence_tables


def fence_pipeline(pipeline: Pipeline) -> None:
    """Fences all tables to which an earlier holder of the lock may still commit.

    It can be repeated, by the same or the next holder. A table that others have put there is none.
    """
    if pipeline.name == HOME:
        fence_tables(map(pipeline.table, (FILES, QUARANTINE)))
        return
    fence_tables([pipeline.table(LEDGER)])
    names = (WATERMARKS, QUALITY, *_list_open_tables(pipeline))
    fence_tables(map(pipeline.table, names))


def _list_open_tables(pipeline: Pipeline) -> list[str]:
    """The names of all tables of a step that is open; none where no step is."""
    past = LedgerExcerpt()
    with suppress(TableError):
        past = read_excerpt(pipeline)
    if not past.is_open:
        return []
    names = {REVISIONS, *state_names(pipeline), *REFUSED, *past.recorded_tables}
    for window in pipeline.windows:
        names |= {output_table(pipeline, window).path.name}
        names |= {complete_table(pipeline, window).path.name}
        names |= {published_name(window.name), restated_name(window.name)}
    return sorted(names)
