"""What a target of a project sets for the process of a command: variables of the environment.

command line -> folder of the spec or the current one -> file of the project -> its target
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from windowing.errors import SpecError
from windowing.spec.project.file import TARGET, find_project_file, read_table

_MASTER, _ENGINE = "SPARK_MASTER", "TIDEMARK_ENGINE"
_ENGINES = ("auto", "off")
"""What a target may say of the engine; of anything else the command says what is wrong."""
_SUFFIXES = (".yaml", ".yml")


def target_variables(
    words: Sequence[str], environ: Mapping[str, str], directory: str
) -> dict[str, str]:
    """The variables that the target of a command line sets; those that are set already stay.

    Nothing is checked here. What is wrong with the project is said by the command itself.
    """
    try:
        file = find_project_file(_find_folder(words, directory))
        target = None if file is None else _choose(read_table(file), words, environ)
    except (OSError, SpecError):
        return {}
    if not isinstance(target, dict):
        return {}
    engine = target.get("engine")
    found = {_MASTER: target.get("master"), _ENGINE: engine if engine in _ENGINES else None}
    return {n: v for n, v in found.items() if isinstance(v, str) and v and not environ.get(n)}


def _find_folder(words: Sequence[str], directory: str) -> str:
    """The folder of the first word that is the path of a spec, else the current one."""
    for word in words:
        path = os.path.join(directory, word)
        if word.endswith(_SUFFIXES) and os.path.isfile(path):
            return os.path.dirname(path)
    return directory


def _choose(values: Mapping[str, Any], words: Sequence[str], environ: Mapping[str, str]) -> Any:
    targets = values.get("targets")
    if not isinstance(targets, dict):
        return None
    only = next(iter(targets)) if len(targets) == 1 else None
    name = _named(words) or environ.get(TARGET) or values.get("target") or only
    return targets.get(name) if isinstance(name, str) else None


def _named(words: Sequence[str]) -> str | None:
    """What --target names; the last one counts."""
    named = None
    for n, word in enumerate(words):
        if word == "--target" and n + 1 < len(words):
            named = words[n + 1]
        elif word.startswith("--target="):
            named = word.removeprefix("--target=")
    return named
