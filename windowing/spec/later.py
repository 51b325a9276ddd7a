"""What the spec language has but this version doesn't carry out: refused by name, never ignored."""

from windowing.errors import SpecError
from windowing.spec.document import PipelineDocument


def refuse_what_comes_later(written: PipelineDocument) -> None:
    """Raises for the first field that asks for something not supported yet."""
    if written.source.changes == "feed":
        raise SpecError("source.changes", "'feed' is not supported yet; use refuse")
