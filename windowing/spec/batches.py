"""`source.batch`: how much one batch of a run reads."""

import re
from collections.abc import Iterator

from windowing.errors import SpecError
from windowing.spec.kinds import Window
from windowing.spec.pipeline import BatchBound, Pipeline
from windowing.spec.words import quote_value
from windowing.spec.yaml.document import BatchDocument
from windowing.spec.yaml.fields import BYTES

DEFAULT = BatchBound(rows=50_000_000, bytes=8_000_000_000)
"""The bound where a spec names none: as many rows as one batch was measured to read in 4 GiB."""
_UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"([0-9]{1,15}) ?(B|kB|KB|MB|GB|TB)", re.ASCII)


def build_bound(written: BatchDocument) -> BatchBound:
    """The bound that a spec names; SpecError where it names none."""
    if written.rows is None and written.bytes is None:
        raise SpecError(
            "source.batch",
            "has neither rows nor bytes; give one of them, such as rows: 5000000, or leave it out",
        )
    size = None if written.bytes is None else _parse_bytes(written.bytes)
    return BatchBound(written.rows, size)


def _parse_bytes(given: int | str) -> int:
    """The number of bytes, where one kB is 1,000 bytes."""
    size = given
    if isinstance(given, str):
        found = _SIZE.fullmatch(given.strip())
        size = 0 if found is None else int(found[1]) * _UNITS[found[2]]
    if not isinstance(size, int) or size < 1:
        raise SpecError("source.batch.bytes", f"{quote_value(given)} is not {BYTES}")
    return size


def check_bound(pipeline: Pipeline) -> None:
    """SpecError where a bound is named that the pipeline's windows can't have."""
    if pipeline.source.batch is None:
        return
    for window in list_filled(pipeline):
        raise SpecError(
            "source.batch",
            f"can't be given with windows.{window.name}.empty, because empty_limit is for all "
            "empty windows of a run; leave one of them out",
        )


def list_filled(pipeline: Pipeline) -> Iterator[Window]:
    """The windows that also show windows without events."""
    return (window for window in pipeline.windows if window.shown.empty_limit is not None)
