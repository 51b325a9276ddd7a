"""What is wrong with a document's shape, as (field, one sentence), from pydantic's findings."""

import re
from collections.abc import Callable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from windowing.spec import dialects
from windowing.spec.words import join_names, quote_value, suggest_name
from windowing.spec.yaml.document import Loc, PipelineDocument, model_at
from windowing.spec.yaml.fields import Document
from windowing.spec.yaml.window_document import KINDS

Models = Callable[[Loc], type[Document] | None]
"""The model of the mapping at a location of a document."""


def first_sentence(error: ValidationError, models: Models = model_at) -> tuple[str, str]:
    """The field and the sentence of one finding.

    Unknown fields come first, because a misspelt field explains why another one is missing.
    """
    findings = error.errors(include_url=False)
    unknown = [finding for finding in findings if finding["type"] == "extra_forbidden"]
    chosen = unknown[0] if unknown else findings[0]
    field = _join_path(chosen["loc"], chosen["type"])
    if chosen["type"] == "union_tag_not_found" and isinstance(chosen["input"], dict):
        field += ".kind"
    return field, _describe_finding(chosen, models)


def _join_path(loc: Loc, finding: str) -> str:
    """The field as a user writes it: `windows.hourly.size`, `source.key[1]`."""
    # pydantic puts the tag of a union, such as `:tumbling`, between a name and its fields.
    has_tag = loc[:2] == ("source", "event_time") or loc[:1] in {("windows",), ("aggregates",)}
    # A number is the index of a list, unless it is the wrong name of a field.
    is_index = finding != "invalid_key" and "[key]" not in loc
    path = ""
    for i, step in enumerate(loc):
        is_tag = has_tag and i == 2 and str(step).startswith(":")
        if step == "[key]" or is_tag:
            continue
        if isinstance(step, int) and is_index:
            path += f"[{step}]"
        else:
            path += f".{step}"
    return path.removeprefix(".")


def _describe_finding(error: ErrorDetails, models: Models) -> str:
    given = quote_value(error["input"])
    if error["loc"][-1:] == ("[key]",):
        return f"{given} is not a name; quote it if it is meant as text"
    match error["type"]:
        case "sentence":
            return error["msg"]
        case "extra_forbidden" | "invalid_key":
            return _describe_unknown_field(error["loc"], given, models)
        case "missing":
            return f"is missing; write {_describe_field(error['loc'], models)}"
        case "union_tag_not_found":
            return _describe_wrong_kind(error["input"])
        case "literal_error":
            return f"{given} is not allowed; it is {error['ctx']['expected']}"
        case "bool_type":
            return f"{given} is not true or false"
        case "int_type":
            return f"{given} is not a whole number"
        case "too_short":
            return f"{given} is empty; write at least one: {_describe_field(error['loc'], models)}"
        case "list_type" if _is_of_one_line(error["input"]):
            return f"{given} is not a list; write [{error['input']}]"
        case "list_type":
            return f"{given} is not a list; write {_describe_field(error['loc'], models)}"
    meant = _find_only_field(error["input"], models(error["loc"]))
    if meant is not None:
        return f"{given} is not a mapping; write {{{meant}: {error['input']}}}"
    return f"{given} is not a mapping; write {_describe_mapping(error['loc'], models)}"


def _is_of_one_line(given: object) -> bool:
    """Whether it is a text such as `shop` or `shop, day`, which lacks only the brackets."""
    return isinstance(given, str) and re.fullmatch(r"[\w. ]+(, *[\w. ]+)*", given) is not None


def _find_only_field(given: object, model: type[Document] | None) -> str | None:
    """The field that a text is meant as where a mapping has only that one, or needs only that."""
    if not isinstance(given, str) or model is None:
        return None
    names = [*model.model_fields]
    needed = [name for name in names if model.model_fields[name].is_required()]
    found = needed if len(needed) == 1 else names
    return found[0] if len(found) == 1 else None


def _describe_unknown_field(loc: Loc, given: str, models: Models) -> str:
    model = models(loc[:-1]) or PipelineDocument
    name = str(loc[-1])
    kinds: list[str] = []
    if issubclass(model, tuple(KINDS.values())):
        kinds = [kind for kind, other in KINDS.items() if name in other.model_fields]
    if kinds:
        hint = f", it belongs to {_join_with_and(kinds)} windows"
    elif ":" in name:
        field, _, value = name.partition(":")
        hint = f"; a space belongs behind a colon, as in {field}: {value}"
    else:
        ours = {
            other: name for other, name in dialects.FIELDS.items() if name in model.model_fields
        }
        hint = suggest_name(name, model.model_fields, ours)
    return f"is not a field here (given {given}){hint}; allowed: {join_names(model.model_fields)}"


def _join_with_and(names: list[str]) -> str:
    *others, last = names
    if not others:
        return last
    return f"{join_names(others)} and {last}"


def _describe_wrong_kind(window: object) -> str:
    """Why a window has no kind that is known."""
    if not isinstance(window, dict):
        return (
            f"{quote_value(window)} is not a mapping; "
            f"write kind ({join_names(KINDS)}) and its fields"
        )
    if "kind" not in window:
        return f"is missing; write one of {join_names(KINDS)}"
    kind = window["kind"]
    name = kind if isinstance(kind, str) else quote_value(kind)
    hint = suggest_name(name, KINDS, dialects.KINDS)
    return f"{quote_value(kind)} is not a kind of window{hint}; allowed: {join_names(KINDS)}"


def _describe_field(loc: Loc, models: Models) -> str:
    model = models(loc[:-1])
    if model is None:
        return "it"
    field = model.model_fields.get(str(loc[-1]))
    if field is None or not field.description:
        return "it"
    return field.description


def _describe_mapping(loc: Loc, models: Models) -> str:
    model = models(loc)
    if model is None:
        return _describe_field(loc, models)
    return f"fields among {join_names(model.model_fields)}"
