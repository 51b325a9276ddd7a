"""What a session needs for tables on HDFS."""

from collections.abc import Mapping

COMMITS_ON_HDFS: Mapping[str, str] = {"spark.delta.logStore.hdfs.impl": "tidemark.FencedLogStore"}
"""Delta commits by a rename that the name node refuses where the file is there. We add the fence.

Where HDFS is, Hadoop reads in HADOOP_CONF_DIR, as this process does.
"""
