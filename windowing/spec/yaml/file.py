"""A YAML file -> plain values: YAML 1.2 without repeated fields, anchors, tags or directives."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from windowing.errors import SpecError
from windowing.spec.words import in_quotes, quote_value, suggest_name

LIMIT = 256 * 1024
"""Bytes a spec may have."""

_JOINED = re.compile(r"\s*([A-Za-z_]\w*):([^\s:/\\].*)")
"""A field and its value without a space between them."""
_CORE = "tag:yaml.org,2002:"
_TEXTS = {_CORE + name for name in ("str", "timestamp", "merge", "value")}
_TYPED = {_CORE + name for name in ("int", "float", "bool", "null")}


def document(path: str) -> Any:
    """The plain values in the file: dict, list, str, int, float, bool and None.

    SpecError, which names the file, for anything else.
    """
    with _named(path):
        return _parse_values(_decode(_read_content(path)))


def parse_content(path: str, content: bytes) -> Any:
    """The same of what the file at `path` is to contain."""
    with _named(path):
        return _parse_values(_decode(content))


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Names the file in a SpecError."""
    try:
        yield
    except SpecError as error:
        if error.field:
            raise SpecError(error.field, error.message, path) from None
        raise SpecError("", f"{path}: {error.message}") from None


def find_lines(path: str, field: str) -> list[int]:
    """The line on which each item of the top-level list `field` begins.

    The file has to be one that `document` can read.
    """
    root = YAML(typ="safe", pure=True).compose(_decode(_read_content(path)))
    found = []
    for key, value in root.value:
        if key.value == field:
            for item in value.value:
                found.append(item.start_mark.line + 1)
    return found


def _read_content(path: str) -> bytes:
    """The content of a file, or as much of a larger one as shows that it is too large."""
    try:
        with open(path, "rb") as file:
            return file.read(LIMIT + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        meant = _suggest_file(path) if isinstance(error, FileNotFoundError) else ""
        advice = f"give the path of a YAML file{meant}"
        raise SpecError("", f"can't be read ({reason}); {advice}") from None


def _decode(content: bytes) -> str:
    if len(content) > LIMIT:
        raise SpecError("", f"is larger than {LIMIT // 1024} KB, which no spec needs")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise SpecError(f"line {line}", "is not UTF-8 text; save the file as UTF-8") from None


def _suggest_file(path: str) -> str:
    """A file of the same folder with a name like that of `path`, where there is one."""
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or os.curdir)
    except OSError:
        return ""
    return suggest_name(name, [n for n in names if n.endswith((".yaml", ".yml"))])


def _parse_values(text: str) -> Any:
    directive = re.search(r"^%.*", text, re.MULTILINE)
    if directive:
        line = text[: directive.start()].count("\n") + 1
        raise SpecError(
            f"line {line}",
            f"{quote_value(directive[0])} is a directive; leave it out, specs are YAML 1.2",
        )
    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(text)
        if root is None:
            return None
        return _plain_value(root, "", yaml)
    except MarkedYAMLError as error:
        raise _syntax_error(error, text) from None
    except YAMLError as error:
        raise SpecError("", f"is not YAML ({_first_line(str(error))})") from None
    except RecursionError:
        raise SpecError("", "is nested too deeply; a pipeline needs four levels") from None


def _syntax_error(error: MarkedYAMLError, text: str) -> SpecError:
    mark = error.problem_mark or error.context_mark
    what = _first_line(error.problem or error.context or "a syntax error")
    lines = text.splitlines()[: mark.line + 1] if mark else []
    where = f"line {mark.line + 1}" if mark else ""
    return SpecError(where, f"is not YAML ({what}); {_advise_syntax(error, what, lines)}")


def _advise_syntax(error: MarkedYAMLError, what: str, lines: list[str]) -> str:
    """What is most likely meant by the `lines`, of which the last one has the error."""
    if "'\\t'" in what:
        return "indent with spaces, not with tabs"
    if "undefined alias" in what:
        return "a text that begins with * needs quotes around it"
    joined = next(filter(None, map(_JOINED.match, reversed(lines[-2:]))), None)
    if joined:
        return f"a space belongs behind a colon, as in {joined[1]}: {joined[2]}"
    if "<block end>" in what:
        return "its indentation fits no line above; indent the fields of one mapping equally"
    if "',' or ']'" in what or "',' or '}'" in what:
        close = "]" if "]" in what else "}"
        return (
            f"close what is open before with {close}; inside braces and brackets a text that holds "
            "a comma needs quotes around it"
        )
    advice = "check indentation, quotes and colons"
    if "flow" in str(error.context):
        advice += "; inside braces and brackets a text that holds a comma needs quotes around it"
    return advice


def _first_line(text: str) -> str:
    if not text.strip():
        return "a syntax error"
    return text.strip().splitlines()[0].rstrip(".")


def _plain_value(node: Node, field: str, yaml: YAML) -> Any:
    where = field or f"line {node.start_mark.line + 1}"
    if node.anchor:
        raise SpecError(
            where,
            f"anchors such as &{node.anchor} and aliases are not allowed; write the value out",
        )
    match node:
        case MappingNode() if node.tag == _CORE + "map":
            return _plain_mapping(node, field, yaml)
        case SequenceNode() if node.tag == _CORE + "seq":
            return [_plain_value(item, f"{field}[{i}]", yaml) for i, item in enumerate(node.value)]
        case ScalarNode() if node.tag in _TEXTS:
            return node.value
        case ScalarNode() if node.tag in _TYPED:
            return _plain_scalar(node, where, yaml)
    raise SpecError(
        where,
        f"the tag {quote_value(str(node.tag))} is not allowed; "
        "a spec is plain text, numbers, lists and mappings",
    )


def _plain_mapping(node: MappingNode, field: str, yaml: YAML) -> dict[Any, Any]:
    if node.flow_style:
        _check_commas(node, field)
    values: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        line = f"line {key_node.start_mark.line + 1}"
        if not isinstance(key_node, ScalarNode):
            raise SpecError(
                field or line,
                f"has a list or mapping as a field's name in {line}; "
                "quote it if it is meant as text",
            )
        key = _plain_value(key_node, field, yaml)
        path = f"{field}.{key_node.value}" if field else str(key_node.value)
        if key in values:
            raise SpecError(path, f"is given twice, again in {line}; keep one of them")
        values[key] = _plain_value(value_node, path, yaml)
    return values


def _check_commas(node: MappingNode, field: str) -> None:
    """Raises where a comma cuts a text without quotes in two: {p95: quantile(x, 0.95)}."""
    for n, (key, value) in enumerate(node.value):
        whole = _whole_text(value, node.value[n + 1 :])
        if whole is None:
            continue
        where = f"{field}.{key.value}" if field else str(key.value)
        why = "an unquoted text inside braces ends at a comma"
        right = f"{key.value}: {in_quotes(whole)}"
        raise SpecError(where, f"{quote_value(value.value)} lacks quotes: {why}; write {right}")


def _whole_text(value: Node, rest: list[tuple[Node, Node]]) -> str | None:
    """The text that begins as `value`, if fields without values close its parenthesis."""
    if not _is_unquoted(value) or _open_parentheses(value.value) <= 0:
        return None
    text = str(value.value)
    for key, nothing in rest:
        if not _is_unquoted(key) or not _is_unquoted(nothing) or nothing.value:
            return None
        text += f", {key.value}"
        if _open_parentheses(text) <= 0:
            return text
    return None


def _is_unquoted(node: Node) -> bool:
    """Whether the node is a text, number or nothing, written without quotes."""
    return isinstance(node, ScalarNode) and node.style is None


def _open_parentheses(text: str) -> int:
    """How many parentheses are open at the end of `text`."""
    return text.count("(") - text.count(")")


def _plain_scalar(node: ScalarNode, where: str, yaml: YAML) -> Any:
    try:
        return yaml.constructor.construct_object(node)
    except (ValueError, KeyError, YAMLError):
        kind = str(node.tag).removeprefix(_CORE)
        raise SpecError(
            where,
            f"{quote_value(node.value)} can't be read as {kind}; quote it if it is meant as text",
        ) from None
