"""The public names for a DAG folder of Airflow: specs of a directory -> DAGs.

It is imported in Airflow's environment, which has no Spark.
"""

from dags.factory import Specs, check_specs, dags_of, make_dags, read_specs

__all__ = ["Specs", "check_specs", "dags_of", "make_dags", "read_specs"]
