"""`source.files`: where files land, and how they are read."""

from windowing.errors import SpecError
from windowing.location import Location
from windowing.spec.pipeline import CsvForm, Files
from windowing.spec.places import Base, resolve_directory
from windowing.spec.words import quote_value
from windowing.spec.yaml.document import FilesDocument

_OF_CSV = ("header", "delimiter", "quote", "escape", "encoding", "decimal", "thousands", "nulls")


def build_files(written: FilesDocument, name: str, base: Base) -> Files:
    """The files that land for the pipeline called `name`; SpecError for what can't be read so.

    The file of columns is `columns/{name}.yaml` beside the spec unless the spec names another one.
    """
    _check_format(written)
    return Files(
        folder=Location(resolve_directory("source.files.folder", written.folder, base)),
        columns=Location(_resolve_columns(written, name, base)),
        format=written.format,
        on_new_column=written.on_new_column,
        on_unfit_value=written.on_unfit_value,
        multiline=written.multiline or written.records is not None,
        records=_split_path(written.records),
        csv=_build_csv(written),
    )


def check_apart(files: Files, table: Location, root: Location) -> None:
    """Raises SpecError unless files can land outside the source table and the pipeline's `root`."""
    if table.is_in_catalog:
        raise SpecError(
            "source.files",
            f"can't be appended to {quote_value(table.text)}, which is a name of a catalog; "
            "give source.table as a path",
        )
    if files.folder.contains(table) or table.contains(files.folder):
        raise SpecError(
            "source.files.folder",
            f"{quote_value(files.folder.text)} and source.table lie in each other; "
            "let files land in a directory of their own, such as ../drop",
        )
    for name, place in (("folder", files.folder), ("columns", files.columns)):
        if root.contains(place):
            raise SpecError(
                f"source.files.{name}",
                f"{quote_value(place.text)} lies among this pipeline's own tables in {root}, which "
                "`tidemark reset` deletes; move it elsewhere, and name that place",
            )


def _resolve_columns(written: FilesDocument, name: str, base: Base) -> str:
    given = written.columns
    if given is None and base.directory is None:
        raise SpecError(
            "source.files.columns",
            "is missing: a mapping has no file beside which columns could be pinned; "
            "give an absolute path",
        )
    path = resolve_directory("source.files.columns", given or f"columns/{name}.yaml", base)
    if not Location(path).is_local:
        raise SpecError(
            "source.files.columns",
            f"{quote_value(path)} is not on this machine; the file belongs beside the spec",
        )
    return path


def _check_format(written: FilesDocument) -> None:
    """Raises for a field that says nothing of files of this format."""
    fields = FilesDocument.model_fields
    formats = {**dict.fromkeys(_OF_CSV, ("csv",)), "multiline": ("csv", "json")}
    formats["records"] = ("json",)
    for name, allowed in formats.items():
        if getattr(written, name) == fields[name].default or written.format in allowed:
            continue
        only = " and ".join(allowed)
        raise SpecError(
            f"source.files.{name}",
            f"is for format {only}, and the format is {written.format}; leave it out",
        )


def _split_path(written: str | None) -> tuple[str, ...]:
    """The names of `records`, from the outermost one; SpecError where one of them is empty."""
    path = () if written is None else tuple(written.split("."))
    if not all(path) or "`" in "".join(path):
        raise SpecError(
            "source.files.records",
            f"{quote_value(written)} names no field of JSON; write it as features or data.items",
        )
    return path


def _build_csv(written: FilesDocument) -> CsvForm:
    for name in ("delimiter", "quote", "escape", "thousands"):
        _check_character(name, getattr(written, name))
    if written.quote == written.delimiter:
        raise SpecError("source.files.quote", "is the delimiter, too; give one of them another")
    if written.escape == written.delimiter:
        raise SpecError("source.files.escape", "is the delimiter, too; give one of them another")
    if written.thousands == written.decimal:
        raise SpecError(
            "source.files.thousands",
            f"{quote_value(written.thousands)} stands before decimals, too; "
            "set source.files.decimal to the other one",
        )
    return CsvForm(
        header=written.header,
        delimiter=written.delimiter,
        quote=written.quote,
        # Spark calls doubled quotes an escape that is the quote.
        escape=None if written.escape == written.quote else written.escape,
        encoding=written.encoding,
        decimal=written.decimal,
        thousands=written.thousands,
        nulls=tuple(written.nulls),
    )


def _check_character(name: str, given: str | None) -> None:
    if given is not None and (len(given) != 1 or given in "\r\n\0"):
        raise SpecError(
            f"source.files.{name}",
            f'{quote_value(given)} is not one character; a tab is written "\\t"',
        )
