"""The shape of a project's file as a user writes it."""

from typing import Annotated, Literal

from pydantic import Field

from windowing.spec.yaml.document import Loc
from windowing.spec.yaml.fields import Document, Place, require_text


class TargetDocument(Document):
    """Where the places of a project's pipelines lie, and where commands compute."""

    lake: Place | None = Field(
        None,
        description="the directory that holds the tables of pipelines whose spec has no lake, "
        "relative to this file",
        examples=["lake", "s3://bucket/lake"],
    )
    places: dict[str, Place] = Field(
        default={},
        description="further directories by the names that paths of specs begin with, "
        "as in bronze://orders",
        examples=[{"bronze": "s3://bucket/bronze"}],
    )
    master: Annotated[str, require_text("a master such as spark://host:7077")] | None = Field(
        None,
        description="Spark's master, unless SPARK_MASTER is set",
        examples=["spark://host:7077"],
    )
    engine: Literal["auto", "off"] | None = Field(
        None,
        description="whether commands start a warm engine (auto) or use none (off), "
        "unless TIDEMARK_ENGINE is set",
    )


class ProjectDocument(Document):
    """A Tidemark project: where its specs are, and its targets."""

    pipelines: Place = Field(
        "pipelines", description="the folder of the specs, relative to this file"
    )
    target: Annotated[str, require_text("the name of a target")] | None = Field(
        None, description="the target that is meant where none is named"
    )
    targets: dict[str, TargetDocument] = Field(
        default={}, description="places by the names of targets, such as dev and prod"
    )


def model_at(loc: Loc) -> type[Document] | None:
    """The model of the table at pydantic's location `loc`, if it is one."""
    match loc:
        case ():
            return ProjectDocument
        case ("targets", str()):
            return TargetDocument
    return None
