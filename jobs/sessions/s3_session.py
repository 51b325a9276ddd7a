"""What a session needs for tables on S3."""

from collections.abc import Mapping

from jobs.sessions.profiles import Profile
from windowing.errors import UsageError
from windowing.location import Location
from windowing.storage.s3_settings import read_s3_settings

# Another listing of logs, which Delta's own log store of S3 has. Whatever log store a session gets,
# versions are listed as the tests list them.
_LISTING = {"spark.hadoop.delta.enableFastS3AListFrom": "false"}
_KEYS = (
    *("fs.s3.awsAccessKeyId", "fs.s3.awsSecretAccessKey"),
    *("fs.s3n.awsAccessKeyId", "fs.s3n.awsSecretAccessKey"),
    *("fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.session.token"),
)
# Spark copies the keys of its environment there, and sends its settings to every executor. Here
# nobody reads them.
_NO_KEYS = dict.fromkeys((f"spark.hadoop.{name}" for name in _KEYS), "")
# Delta would write a checksum beside each commit, by some 20 requests.
ON_S3: Profile = {"spark.databricks.delta.writeChecksumFile.enabled": "false"}
"""Settings of a session that writes to tables on S3, besides those of every session."""
_SCHEMES = ("s3://", "s3a://")


def describe_s3(environ: Mapping[str, str]) -> Mapping[str, str]:
    """The settings by which every session reads and writes tables on S3, as the environment says.

    Where that is contradictory, commands that need S3 have said so before they start a session, and
    all others need not care.
    """
    always = {**_LISTING, **_NO_KEYS}
    try:
        return {**always, **read_s3_settings(environ).for_hadoop()}
    except UsageError:
        return always


def describe_store(lake: Location) -> Profile:
    """The settings of a session that writes to the lake, by where that lies."""
    return ON_S3 if lake.text.startswith(_SCHEMES) else {}
