"""What of a spec decides its numbers, as short texts: two specs with the same ones share state.

    Spec -> parts, one digest for each thing that can be added and removed by itself
         -> fingerprint, one digest of all parts

Digests are kept in the ledger for as long as a pipeline lives, so they depend on stored names alone
(stored_form.py). Those that release 0.1 has left there are still understood (fingerprint_0_1.py).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from windowing.spec.fingerprint_0_1 import digest_0_1
from windowing.spec.pipeline import Pipeline
from windowing.spec.stored_form import Part, described_parts

FORM = "2:"
"""What every digest of today's form begins with; those of release 0.1 have no such mark."""
AGGREGATE = " aggregate "
"""Between the name of a window and that of its aggregate in the name of a part."""


def fingerprint(pipeline: Pipeline) -> str:
    """A digest of every part of the spec that state and outputs depend on.

    Where tables lie is no part of it.
    """
    return _digest(parts(pipeline))


def parts(pipeline: Pipeline) -> dict[str, str]:
    """A digest of each part.

    Parts are `source`, `watermark`, `windows.{name}` and `windows.{name} aggregate {name}`.
    """
    return {_name(part): _digest(part.described) for part in described_parts(pipeline)}


def parts_like(stored: Mapping[str, str], pipeline: Pipeline) -> dict[str, str]:
    """The parts of `pipeline` in the form that the `stored` ones have, so that they compare."""
    if all(digest.startswith(FORM) for digest in stored.values()):
        return parts(pipeline)
    return {_name(part): digest_0_1(part) for part in described_parts(pipeline)}


@dataclass(frozen=True)
class Evolution:
    """How one spec differs from another: names of the parts added, removed and changed."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def evolution(before: Mapping[str, str], after: Mapping[str, str]) -> Evolution:
    """From the parts of one spec to those of another, both in the same form."""
    return Evolution(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=tuple(name for name in after if before.get(name, after[name]) != after[name]),
    )


def _name(part: Part) -> str:
    """The name under which the digest of `part` is stored."""
    if part.window is None:
        return part.kind
    place = f"windows.{part.window}"
    return place if part.aggregate is None else f"{place}{AGGREGATE}{part.aggregate}"


def _digest(described: Mapping[str, Any]) -> str:
    text = json.dumps(described, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return FORM + hashlib.sha256(text.encode()).hexdigest()[:16]
