"""Our own log stores, by which Delta commits to storage that machines share, as settings of Spark.

Any other one has no fence, and most lose commits on S3.
"""

from collections.abc import Mapping

ANY_SCHEME = "spark.delta.logStore.class"
"""The setting of one log store for everything. Delta refuses it beside those below."""
_CLASSES = {
    "s3a": "tidemark.ConditionalLogStore",
    # Delta's own, which commits by a rename that the name node refuses where the file is there.
    "hdfs": "tidemark.FencedLogStore",
}


def name_setting(scheme: str) -> str:
    """The setting that says by what Delta commits to places of a scheme."""
    return f"spark.delta.logStore.{scheme}.impl"


LOG_STORE_SETTINGS: Mapping[str, str] = {
    name_setting(scheme): name for scheme, name in _CLASSES.items()
}
"""The settings of every session. Where HDFS is, Hadoop reads in HADOOP_CONF_DIR."""
