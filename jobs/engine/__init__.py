"""The warm engine: one process of this user that keeps a JVM and runs their command lines."""
