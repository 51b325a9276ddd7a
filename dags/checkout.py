"""The settings of a checkout's DAG folder, from variables of the environment."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Settings:
    """Where the specs lie, what the tasks run, and the address at which the lake is shown."""

    pipelines: Path
    cli: str
    reports_url: str | None


def read_settings(environ: Mapping[str, str]) -> Settings:
    """What the variables say; one that is empty says as little as one that is not there.

    TIDEMARK_PIPELINES is the directory of the specs (default: pipelines/), and TIDEMARK_BIN the
    command (default: .venv/bin/tidemark). TIDEMARK_REPORTS_URL is the address of a web server that
    shows the lake, if there is one.
    """
    return Settings(
        Path(environ.get("TIDEMARK_PIPELINES") or ROOT / "pipelines"),
        environ.get("TIDEMARK_BIN") or str(ROOT / ".venv/bin/tidemark"),
        environ.get("TIDEMARK_REPORTS_URL") or None,
    )
