"""Starting over: state, outputs, ledger, checkpoint and pointer of a pipeline go at once, its source stays.

lock -> one rename takes everything away -> files are deleted
"""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from jobs.preflight import lock
from jobs.preflight.checkpoint import CHECKPOINT
from windowing.crash import crashpoint
from windowing.delta import aside, local_path
from windowing.errors import UsageError
from windowing.spec.pipeline import Pipeline
from windowing.spec.words import listed

_OWN = re.compile(r"_(lock|checkpoint(\..+)?|published\.(json|draft)|report\.html|docs|check)")
"""What lies beside tables in a pipeline's directory."""


@dataclass(frozen=True)
class Holding:
    """What lies in a pipeline's directory: tables, and entries that no run makes."""

    path: Path
    tables: tuple[str, ...]
    others: tuple[str, ...]
    size: int

    def as_json(self) -> dict[str, object]:
        """The same as plain JSON values."""
        return {
            "path": str(self.path),
            "tables": list(self.tables),
            "others": list(self.others),
            "bytes": self.size,
        }


def holding(pipeline: Pipeline) -> Holding:
    """What `reset` would delete: the tables, whatever else lies there, and the bytes of all files.

    UsageError where nothing there shows that a run has made it.
    """
    root = local_path(pipeline.root)
    if root.is_symlink():
        raise UsageError(
            f"{root} is a link to {root.resolve()}; reset takes away directories alone: put the directory in its place"
        )
    tables = {log.parent.name for log in root.glob("*/_delta_log")}
    others = {entry.name for entry in root.glob("*") if not _OWN.fullmatch(entry.name)} - tables
    made = any(name.startswith("_") for name in tables) or (root / CHECKPOINT).is_dir()
    if tables | others and not made:
        found = listed(sorted(tables | others)[:5])
        why = f"no ledger, state or checkpoint of {pipeline.name} is in {root}, but {found}"
        raise UsageError(
            f"{why}; reset deletes what runs have made, so it leaves this alone: delete it by hand if nobody needs it"
        )
    size = sum(f.stat().st_size for f in root.rglob("*") if f.is_file())
    return Holding(root, tuple(sorted(tables)), tuple(sorted(others)), size)


def reset(pipeline: Pipeline) -> Holding:
    """Deletes the pipeline's directory; the next run is the first one. Killed half-way, either nothing has gone or nothing is left to see.

    Raises Busy while another writer holds the pipeline, and as `holding` does.
    """
    root = local_path(pipeline.root)
    _sweep(root)
    if not root.is_dir():
        return holding(pipeline)
    holding(pipeline)
    with lock.writable(pipeline), lock.held_here(pipeline):
        found = holding(pipeline)
        os.replace(root, aside(root, f".{root.name}.reset-{{n}}"))
        crashpoint("reset.taken")
    _sweep(root)
    return found


def _sweep(root: Path) -> None:
    """Deletes what this or a killed reset took away."""
    for taken in root.parent.glob(f".{root.name}.reset-*"):
        taken.unlink() if taken.is_symlink() else shutil.rmtree(taken)
