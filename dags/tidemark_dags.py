"""Three Airflow DAGs for each pipeline spec of a checkout.

`{name}` runs on the spec's schedule, `{name}_backfill` by hand and `{name}_maintain` once a day.
TIDEMARK_PIPELINES is the directory of the specs (default: pipelines/), and TIDEMARK_BIN the command
(default: .venv/bin/tidemark). TIDEMARK_REPORTS_URL is the address of a web server that shows the
lake, if there is one.
"""

import os
from pathlib import Path

from dags.factory import dags_of, read_specs

ROOT = Path(__file__).resolve().parents[1]

specs = read_specs(Path(os.environ.get("TIDEMARK_PIPELINES", ROOT / "pipelines")))
cli = os.environ.get("TIDEMARK_BIN", str(ROOT / ".venv/bin/tidemark"))
reports_url = os.environ.get("TIDEMARK_REPORTS_URL") or None
made = []
for pipeline in specs.pipelines:
    made.extend(dags_of(pipeline, cli, reports_url=reports_url))
# Airflow finds the DAGs among the global names of a file. They are added last, because a pipeline
# may have one of the names above.
globals().update({dag.dag_id: dag for dag in made})
