"""Airflow DAGs made from pipeline specs: `factory` for a DAG folder of your own, the other files for a checkout's."""
