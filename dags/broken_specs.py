"""Fails to import while a spec is broken, so that Airflow shows the reason.

It is a file without DAGs, because Airflow starts no DAG of a file that has an import error.
"""

import os

from dags.checkout import read_settings
from dags.factory import check_specs

check_specs(read_settings(os.environ).pipelines)
