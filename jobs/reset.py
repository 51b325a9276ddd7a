"""Starting over: state, outputs, ledger, checkpoint and pointer of a pipeline go at once, its source stays.

    lock -> one rename takes everything away -> files are deleted
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from jobs import lock
from windowing.crash import crashpoint
from windowing.delta import aside, local_path
from windowing.spec.pipeline import Pipeline


@dataclass(frozen=True)
class Holding:
    """What lies in a pipeline's directory."""

    path: Path
    tables: tuple[str, ...]
    size: int

    def as_json(self) -> dict[str, object]:
        """The same as plain JSON values."""
        return {"path": str(self.path), "tables": list(self.tables), "bytes": self.size}


def holding(pipeline: Pipeline) -> Holding:
    """What `reset` would delete: the tables, and the bytes of all files."""
    root = local_path(pipeline.root)
    tables = sorted(log.parent.name for log in root.glob("*/_delta_log"))
    return Holding(root, tuple(tables), sum(f.stat().st_size for f in root.rglob("*") if f.is_file()))


def reset(pipeline: Pipeline) -> Holding:
    """Deletes all that runs have made; the next run is the first one. Killed half-way, either nothing has gone or nothing is left to see.

    Raises Busy while another writer holds the pipeline.
    """
    root = local_path(pipeline.root)
    _sweep(root)
    if not root.is_dir():
        return Holding(root, (), 0)
    with lock.held_here(pipeline):
        found = holding(pipeline)
        os.replace(root, aside(root, f".{root.name}.reset-{{n}}"))
        crashpoint("reset.taken")
    _sweep(root)
    return found


def _sweep(root: Path) -> None:
    """Deletes what this or a killed reset took away."""
    for taken in root.parent.glob(f".{root.name}.reset-*"):
        shutil.rmtree(taken)
