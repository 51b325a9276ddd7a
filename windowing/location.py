"""Where a table or a file is: one value, with every spelling that others ask for."""

from dataclasses import dataclass
from pathlib import Path

from windowing.columns import quote_name

S3 = "s3://"
"""How the text of a location on S3 begins."""
HDFS = "hdfs://"
"""How the text of one on HDFS begins."""


@dataclass(frozen=True)
class Location:
    """A table or a file by its absolute path, or a table by its name in Spark's catalog.

    A path is one of this machine, `s3://BUCKET/KEY` or `hdfs://HOST:PORT/PATH`. `text` is what a
    spec is resolved to, and what delta-rs and messages take.

    >>> lake = Location("/lake/shop")
    >>> (lake / "hourly").sql, (lake / "hourly").uri
    ('delta.`/lake/shop/hourly`', 'file:///lake/shop/hourly')
    >>> (Location("s3://bucket/shop") / "hourly").sql
    'delta.`s3a://bucket/shop/hourly`'
    >>> Location("shop.orders").sql
    '`shop`.`orders`'
    """

    text: str

    def __str__(self) -> str:
        return self.text

    def __truediv__(self, name: str) -> "Location":
        """The table or file called `name` in this directory."""
        return Location(f"{self.text.rstrip('/')}/{name}")

    @property
    def is_in_catalog(self) -> bool:
        """Whether this is a name that only Spark can look up."""
        return "/" not in self.text

    @property
    def is_local(self) -> bool:
        """Whether this is a path of this machine."""
        return self.text.startswith("/")

    @property
    def name(self) -> str:
        """The last part of a path."""
        return self.text.rpartition("/")[2]

    @property
    def parent(self) -> "Location":
        """The directory that this path lies in."""
        return Location(self.text.rpartition("/")[0] or "/")

    @property
    def local(self) -> Path:
        """The same path, for the file system of this machine; ValueError for any other."""
        if not self.is_local:
            raise ValueError(f"{self.text} is no path of this machine")
        return Path(self.text)

    @property
    def bucket_and_key(self) -> tuple[str, str]:
        """The bucket of a path on S3, and the key in it; ValueError for any other."""
        if not self.text.startswith(S3):
            raise ValueError(f"{self.text} is not on S3")
        bucket, _, key = self.text.removeprefix(S3).partition("/")
        return bucket, key

    @property
    def is_on_hdfs(self) -> bool:
        """Whether this is a path on HDFS."""
        return self.text.startswith(HDFS)

    @property
    def cluster_and_path(self) -> tuple[str, str]:
        """The URL of the cluster of a path on HDFS, and the path in it; ValueError for others."""
        if not self.is_on_hdfs:
            raise ValueError(f"{self.text} is not on HDFS")
        host, _, path = self.text.removeprefix(HDFS).partition("/")
        return f"{HDFS}{host}", f"/{path}"

    @property
    def hadoop(self) -> str:
        """The path as Spark takes it, whose client of S3 has a scheme of its own."""
        is_on_s3 = self.text.startswith(S3)
        return f"s3a://{self.text.removeprefix(S3)}" if is_on_s3 else self.text

    @property
    def sql(self) -> str:
        """The table as a statement of Spark names it."""
        return quote_name(self.text) if self.is_in_catalog else f"delta.`{self.hadoop}`"

    @property
    def uri(self) -> str:
        """The path as a URI; in one of `file:` a space is `%20`."""
        return self.local.as_uri() if self.is_local else self.text

    def contains(self, other: "Location") -> bool:
        """Whether `other` is this directory or lies in it."""
        # With the slash, lake/flights_raw doesn't lie in lake/flights.
        return f"{other.text}/".startswith(f"{self.text}/")
