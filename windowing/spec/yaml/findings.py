"""What is wrong with a document's shape, as (field, one sentence), from pydantic's findings."""

from collections.abc import Callable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from windowing.spec import dialects
from windowing.spec.words import listed, near, shown
from windowing.spec.yaml.document import Loc, PipelineDocument, model_at
from windowing.spec.yaml.fields import Document
from windowing.spec.yaml.window_document import KINDS

Models = Callable[[Loc], type[Document] | None]
"""The model of the mapping at a location of a document."""


def first_sentence(error: ValidationError, models: Models = model_at) -> tuple[str, str]:
    """The field and the sentence of one finding; unknown fields first, since a typo there explains a missing field."""
    found = error.errors(include_url=False)
    unknown = [e for e in found if e["type"] == "extra_forbidden"]
    chosen = (unknown or found)[0]
    kindless = chosen["type"] == "union_tag_not_found" and isinstance(chosen["input"], dict)
    return _path(chosen["loc"], chosen["type"]) + (".kind" if kindless else ""), _sentence(
        chosen, models
    )


def _path(loc: Loc, finding: str) -> str:
    """The field as a user writes it: `windows.hourly.size`, `source.key[1]`."""
    tagged = loc[:2] == ("source", "event_time") or loc[:1] in {("windows",), ("aggregates",)}
    indexed = finding != "invalid_key" and "[key]" not in loc
    steps = [
        p
        for i, p in enumerate(loc)
        if p != "[key]" and not (tagged and i == 2 and str(p).startswith(":"))
    ]
    return "".join(
        f"[{p}]" if isinstance(p, int) and indexed else f".{p}" for i, p in enumerate(steps)
    ).removeprefix(".")


def _sentence(error: ErrorDetails, models: Models) -> str:
    given = shown(error["input"])
    if error["loc"][-1:] == ("[key]",):
        return f"{given} is not a name; quote it if it is meant as text"
    match error["type"]:
        case "sentence":
            return error["msg"]
        case "extra_forbidden" | "invalid_key":
            return _unknown(error["loc"], given, models)
        case "missing":
            return f"is missing; write {_described(error['loc'], models)}"
        case "union_tag_not_found":
            return _kind(error["input"])
        case "literal_error":
            return f"{given} is not allowed; it is {error['ctx']['expected']}"
        case "bool_type":
            return f"{given} is not true or false"
        case "int_type":
            return f"{given} is not a whole number"
        case "too_short":
            return f"{given} is empty; write at least one: {_described(error['loc'], models)}"
        case "list_type":
            return f"{given} is not a list; write {_described(error['loc'], models)}"
    return f"{given} is not a mapping; write {_mapping(error['loc'], models)}"


def _unknown(loc: Loc, given: str, models: Models) -> str:
    model, name = models(loc[:-1]) or PipelineDocument, str(loc[-1])
    others = [
        kind
        for kind, other in KINDS.items()
        if name in other.model_fields and issubclass(model, tuple(KINDS.values()))
    ]
    hint = f", it belongs to {_both(others)} windows" if others else near(name, model.model_fields)
    return f"is not a field here (given {given}){hint}; allowed: {listed(model.model_fields)}"


def _both(names: list[str]) -> str:
    return " and ".join(part for part in (listed(names[:-1]), names[-1]) if part)


def _kind(window: object) -> str:
    """Why no kind could be told."""
    if not isinstance(window, dict):
        return f"{shown(window)} is not a mapping; write kind ({listed(KINDS)}) and its fields"
    if "kind" not in window:
        return f"is missing; write one of {listed(KINDS)}"
    kind = window["kind"]
    hint = near(kind if isinstance(kind, str) else shown(kind), KINDS, dialects.KINDS)
    return f"{shown(kind)} is not a kind of window{hint}; allowed: {listed(KINDS)}"


def _described(loc: Loc, models: Models) -> str:
    model = models(loc[:-1])
    field = model.model_fields.get(str(loc[-1])) if model else None
    return field.description or "it" if field else "it"


def _mapping(loc: Loc, models: Models) -> str:
    model = models(loc)
    return f"fields among {listed(model.model_fields)}" if model else _described(loc, models)
