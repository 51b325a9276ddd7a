"""The spec of a small pipeline, for tests of commands that come to no rows."""

SPEC = """
name: trips
lake: lake
source: {table: lake/bronze/trips, event_time: at, key: [place]}
watermark: {delay: 0 seconds}
aggregates: {n: count()}
windows:
  hourly: {kind: tumbling, size: 1 hour}
"""
