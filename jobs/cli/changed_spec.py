"""Tells who reads outputs that the spec is not the one that made them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from windowing.doctor.rule import name_command
from windowing.spec.words import join_names

if TYPE_CHECKING:
    from windowing.spec.pipeline import Pipeline


def tell_changed_spec(pipeline: "Pipeline", changed: Sequence[str]) -> None:
    """Prints a sentence on stderr where something has a name in the spec that was another thing's.

    The rows are right by the spec that made them, so the command that shows them goes on.
    """
    if changed:
        click.echo(
            f"tidemark: {pipeline.file or pipeline.name}: {join_names(changed)} differ from what "
            "made these rows, and the next run is refused; see "
            f"{name_command(pipeline, 'explain')}",
            err=True,
        )
