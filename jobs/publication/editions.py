"""The published tables of a pipeline: each shows the version of its output that was published.

The ledger's publish entry is what they follow, and its number is that of the edition they show.

versions of an entry -> their files, read before anything is recorded -> one commit for each table
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from jobs.microbatch.parallel import run_parallel
from windowing.errors import StateRefused
from windowing.merge.rule import identity, published_name
from windowing.spec.pipeline import Pipeline
from windowing.spec.reserved import PUBLISHED
from windowing.storage import control
from windowing.storage.catalog_managed import tells_of_catalog
from windowing.storage.control import TableError
from windowing.storage.files import list_tables
from windowing.storage.kept_open import delete_table, has_commit, newest_version
from windowing.storage.mirror import Mirror, has_rows, share_layout, show_version
from windowing.storage.store import store_of
from windowing.storage.version_files import VersionFiles, list_version

Editions = Mapping[str, VersionFiles]
"""By window the version of its output that the published table is to show."""


def find_mirror(pipeline: Pipeline, window: str) -> Mirror:
    """The published table of a window, also of one that the spec has no more.

    Nothing tells rows of such a one apart but all of their columns.
    """
    windows = {each.name: each for each in pipeline.windows}
    columns = identity(windows[window], pipeline.source.key) if window in windows else ()
    home = pipeline.table(published_name(window))
    return Mirror(home, f"{pipeline.name}:{PUBLISHED}", columns)


def list_published(pipeline: Pipeline) -> tuple[str, ...]:
    """The names of all published tables, those of windows of earlier specs among them."""
    return tuple(map(published_name, list_tables(pipeline.table(PUBLISHED))))


def refuse_managed(pipeline: Pipeline) -> None:
    """Raises TableError where a catalog manages a published table, so none of it may be deleted."""
    for name in list_published(pipeline):
        try:
            control.read_version(pipeline.table(name))
        except TableError as error:
            # One that is damaged is told by what reads it.
            if tells_of_catalog(error.reason):
                raise


def list_editions(pipeline: Pipeline, versions: Mapping[str, int]) -> Editions:
    """The files of the outputs whose versions are named, for windows that the spec has."""
    names = [window.name for window in pipeline.windows if window.name in versions]
    steps = [partial(list_version, pipeline.table(name), versions[name]) for name in names]
    return dict(zip(names, run_parallel(steps), strict=True))


def list_newest_of_left(pipeline: Pipeline) -> Editions:
    """The newest versions of outputs that the spec has no more and that have a published table."""
    left = [name for name in _list_left(pipeline) if _follows_output(pipeline, name)]
    newest = {name: newest_version(pipeline.table(name)) for name in left}
    return {name: list_version(pipeline.table(name), version) for name, version in newest.items()}


def drop_outdated_of_left(pipeline: Pipeline) -> tuple[str, ...]:
    """Deletes published tables of left windows that can't show what is left there; which ones.

    That is one whose output was deleted, and one that shows other rows than the newest ones of its
    output: nothing judges these any more. Nothing may have been deleted from outputs yet.
    """
    dropped = tuple(name for name in _list_left(pipeline) if not _shows_newest(pipeline, name))
    for name in dropped:
        delete_table(pipeline.table(published_name(name)))
    return dropped


def _list_left(pipeline: Pipeline) -> list[str]:
    """What the directory of published tables has beside those of the spec, in order.

    A directory without a log may have files of a table, and is deleted with what it has.
    """
    home = pipeline.table(PUBLISHED)
    store = store_of(home)
    names = {*store.list_names(home)} - {window.name for window in pipeline.windows}
    return sorted(name for name in names if any(store.list_names(home / name)))


def _follows_output(pipeline: Pipeline, name: str) -> bool:
    is_table = has_commit(pipeline.table(published_name(name)))
    return is_table and has_commit(pipeline.table(name))


def _shows_newest(pipeline: Pipeline, name: str) -> bool:
    if not _follows_output(pipeline, name):
        return False
    output, shown = pipeline.table(name), find_mirror(pipeline, name)
    newest = list_version(output, newest_version(output))
    try:
        return has_rows(shown, newest)
    except TableError as error:
        if error.path == output:
            raise
        # Others have damaged it, and nothing makes it again.
        return False


def show_editions(pipeline: Pipeline, editions: Editions, number: int) -> None:
    """Makes the published tables show what the publication of that number says.

    Each changes in one commit, and one that shows it already does not. So this can be repeated
    wherever it has failed.
    """
    steps = [
        partial(show_version, find_mirror(pipeline, name), edition, number)
        for name, edition in editions.items()
    ]
    with _damage_explained(pipeline, editions):
        run_parallel(steps)


def share_layouts(pipeline: Pipeline, editions: Editions) -> None:
    """Makes published tables have the files of these versions where no row differs."""
    with _damage_explained(pipeline, editions):
        for name, edition in editions.items():
            share_layout(find_mirror(pipeline, name), edition)


@contextmanager
def _damage_explained(pipeline: Pipeline, windows: Iterable[str]) -> Iterator[None]:
    """StateRefused, with what to do, where a published table can't be read or written."""
    places = {find_mirror(pipeline, name).home for name in windows}
    try:
        yield
    except TableError as error:
        if error.path not in places:
            raise
        raise StateRefused(
            "TABLE_CHANGED",
            f"{error.path} was changed by others, or is damaged; move it out of {pipeline.root}, "
            "and `tidemark publish` makes it again",
        ) from error
