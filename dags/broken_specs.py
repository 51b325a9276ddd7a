"""Fails to import while a spec is broken, so that Airflow shows the reason.

It is a file without DAGs, because the DAGs of the other specs have to run on.
"""

import os
from pathlib import Path

from dags.factory import read_specs

ROOT = Path(__file__).resolve().parents[1]

specs = read_specs(Path(os.environ.get("TIDEMARK_PIPELINES", ROOT / "pipelines")))
if specs.broken:
    raise ValueError("\n".join(specs.broken))
