"""Pipelines in a running Airflow, driven over its REST API; `make test-airflow-live`."""
