"""What `make` starts on this machine: the demo, Airflow's page, the JARs and the class archive."""
