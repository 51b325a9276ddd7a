"""The public names for a DAG folder of Airflow: specs of a directory -> DAGs.

It is imported in Airflow's environment, which has no Spark.
"""

from dags.factory import Specs, dags_of, read_specs

__all__ = ["Specs", "dags_of", "read_specs"]
