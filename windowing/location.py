"""Where a table or a file is: one value, with every spelling that others ask for."""

from dataclasses import dataclass
from pathlib import Path

from windowing.columns import quote_name


@dataclass(frozen=True)
class Location:
    """A table or a file by its absolute path, or a table by its name in Spark's catalog.

    `text` is what a spec is resolved to, and what Spark, delta-rs and messages take.

    >>> lake = Location("/lake/shop")
    >>> (lake / "hourly").sql, (lake / "hourly").uri
    ('delta.`/lake/shop/hourly`', 'file:///lake/shop/hourly')
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
    def name(self) -> str:
        """The last part of a path."""
        return self.text.rpartition("/")[2]

    @property
    def local(self) -> Path:
        """The same path, for the file system of this machine."""
        return Path(self.text)

    @property
    def sql(self) -> str:
        """The table as a statement of Spark names it."""
        return quote_name(self.text) if self.is_in_catalog else f"delta.`{self.text}`"

    @property
    def uri(self) -> str:
        """The path as a `file:` URI, in which a space is `%20`."""
        return self.local.as_uri()

    def contains(self, other: "Location") -> bool:
        """Whether `other` is this directory or lies in it."""
        # With the slash, lake/flights_raw doesn't lie in lake/flights.
        return f"{other.text}/".startswith(f"{self.text}/")
