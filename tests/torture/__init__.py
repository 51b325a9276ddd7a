"""Kills, races and long lives by the hour: what `make torture` does.

__main__ (plays two lanes, shows figures) -> rounds (starts processes and counts) -> worker (one
process, which may be killed) -> family. Beside them plan (what is done in a round), tally (what
was done so far), on_shared_storage (rounds on S3 or HDFS, whose server is killed as well), soak
(one pipeline that is never killed), and killed_load (a first load that is killed again and again).
"""
