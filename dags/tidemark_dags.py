"""Three Airflow DAGs for each pipeline spec of a checkout.

`{name}` runs on the spec's schedule, `{name}_backfill` by hand and `{name}_maintain` once a day.
"""

import os

from dags.checkout import read_settings
from dags.factory import make_dags

settings = read_settings(os.environ)
make_dags(settings.pipelines, settings.cli, reports_url=settings.reports_url)
