"""The public names for a DAG folder of Airflow: specs of a directory -> DAGs.

It is imported in Airflow's environment, which has no Spark.
"""

from importlib import metadata

try:
    from airflow.sdk import RetryPolicy  # noqa: F401
except ImportError as error:
    airflows = metadata.distributions(name="apache-airflow")
    found = next((f"Airflow {airflow.version}" for airflow in airflows), "no Airflow")
    message = (
        f"tidemark.dags needs Airflow 3.3 or newer, and this environment has {found}; "
        "run `pip install 'apache-airflow>=3.3'` in it"
    )
    raise ImportError(message) from error

from dags.factory import Specs, check_specs, dags_of, make_dags, read_specs

__all__ = ["Specs", "check_specs", "dags_of", "make_dags", "read_specs"]
