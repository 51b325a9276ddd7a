"""Where a pipeline's tables lie, and which file says so: in a sentence, and as JSON."""

from windowing.spec.pipeline import Pipeline


def describe_places(pipeline: Pipeline) -> str:
    """The directory of the tables, and the spec or the target of a project that names it."""
    by = pipeline.placed_by
    if by is None:
        return f"tables in {pipeline.root}, by {pipeline.file or 'a mapping'}"
    return f"tables in {pipeline.root}, by target {by.target} of {by.project}"


def places_as_json(pipeline: Pipeline) -> dict[str, str | None]:
    """The directory of the lake, and the project and target; null where the spec alone says it."""
    by = pipeline.placed_by
    return {
        "lake": pipeline.lake.text,
        "project": None if by is None else by.project,
        "target": None if by is None else by.target,
    }
