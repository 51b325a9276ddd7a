"""The variables by which PySpark finds a JVM that runs already. It is read before every command."""

PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""`spark-submit` sets them, too, for the process that it starts."""
