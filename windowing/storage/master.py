"""Where a Spark session computes, by the name of its master. No Spark."""


def is_local(master: str) -> bool:
    """Whether a session with this master works in a JVM of this machine alone."""
    # Spark's own test cluster, whose executors are other processes, is called local-cluster.
    return master.startswith("local") and not master.startswith("local-cluster")
