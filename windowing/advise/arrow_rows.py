"""Rows of commits as they are read, and the same rows as numbers. Values of Arrow, no files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowing.advise.history import Events
from windowing.grid.boundaries import Flags, Instants
from windowing.grid.zone import FIRST_US, LAST_US

Names = list[tuple[str, ...]]
"""By number the values of a key or of a group, as text."""


@dataclass
class CollectedRows:
    """Rows that were read one part after the other, and how many were `invalid`.

    `keys`, `by` and `event_id` are the columns that are read beside the event time, whose clock is
    that of `zone`.
    """

    keys: tuple[str, ...]
    by: tuple[str, ...]
    event_id: str | None
    zone: str | None = None
    invalid: int = 0
    _batches: list[Instants] = field(default_factory=list)
    _times: list[Instants] = field(default_factory=list)
    _texts: dict[str, list[pa.Array]] = field(default_factory=dict)

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns beside the event time, each once."""
        ids = (self.event_id,) if self.event_id else ()
        return tuple(dict.fromkeys((*self.keys, *self.by, *ids)))

    def add(
        self,
        batch: Instants,
        time: Instants,
        known: Flags,
        values: Mapping[str, pa.ChunkedArray],
    ) -> None:
        """Adds rows with their batches, event times, which of these are `known`, and columns.

        Those without a known event time on the calendar or without a key are counted as invalid.
        """
        sound = known & (time >= FIRST_US) & (time <= LAST_US)
        for name in self.keys:
            sound &= ~find_nulls(values[name])
        self.invalid += int(len(sound) - sound.sum())
        self._times.append(time[sound])
        self._batches.append(batch[sound])
        for name in self.texts:
            text = values[name].cast(pa.string()).filter(pa.array(sound)).combine_chunks()
            self._texts.setdefault(name, []).append(pc.dictionary_encode(text, "mask"))

    def number_rows(self) -> tuple[Events, Names, Names]:
        """The events, and by number the values of their keys and of their groups."""
        empty = np.zeros(0, np.int64)
        keys, key_names = self._number(self.keys)
        groups, group_names = self._number(self.by) if self.by else (keys, key_names)
        ids = None
        if self.event_id is not None:
            ids, _ = _find_codes(self._texts.get(self.event_id, []))
        events = Events(
            np.concatenate([empty, *self._batches]),
            np.concatenate([empty, *self._times]),
            keys,
            groups,
            ids,
        )
        return events, key_names, group_names

    def _number(self, names: Sequence[str]) -> tuple[Instants, Names]:
        """By event the number of its values in some columns, and these values by number."""
        code = np.zeros(sum(map(len, self._times)), np.int64)
        values: Names = [()]
        for name in names:
            codes, texts = _find_codes(self._texts.get(name, []))
            # A null of a group is a value of its own.
            texts.append("-")
            codes = np.where(codes < 0, len(texts) - 1, codes)
            combined, inverse = np.unique(code * len(texts) + codes, return_inverse=True)
            code = inverse.astype(np.int64)
            places = [divmod(place, len(texts)) for place in combined.tolist()]
            values = [(*values[before], texts[own]) for before, own in places]
        return code, values


def to_numpy(values: pa.Array | pa.ChunkedArray) -> Instants:
    """The values as an array that may be changed; there are no nulls."""
    return np.array(values)


def find_nulls(values: pa.ChunkedArray) -> Flags:
    """Which of the values are null."""
    found: Flags = to_numpy(pc.is_null(values)).astype(bool)
    return found


def _find_codes(parts: Iterable[pa.Array]) -> tuple[Instants, list[str]]:
    """The number of each text, -1 for none, and the texts by number."""
    chunks = pa.chunked_array(parts, pa.dictionary(pa.int32(), pa.string())).unify_dictionaries()
    empty = np.zeros(0, np.int64)
    codes = [to_numpy(pc.fill_null(c.indices.cast(pa.int64()), -1)) for c in chunks.chunks]
    texts = chunks.chunk(0).dictionary.to_pylist() if chunks.num_chunks else []
    return np.concatenate([empty, *codes]), texts
