"""Airflow DAGs of pipeline specs: `factory` is for any DAG folder, the rest for a checkout's."""
