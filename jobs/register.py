"""Registers published tables in Spark's catalog, so that readers find them by name.

Each becomes an external table: the catalog knows where it lies, and nothing else of it.
"""

from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from windowing.errors import UsageError
from windowing.location import Location
from windowing.merge.rule import published_name
from windowing.spec.pipeline import Pipeline
from windowing.storage import delta
from windowing.storage.files import has_directory, locate_uri

_OWN_CATALOG = "spark_catalog"
_IMPLEMENTATION = "spark.sql.catalogImplementation"


@dataclass(frozen=True)
class Registration:
    """The names that are `new` in the catalog, and those that were `known` before."""

    new: tuple[str, ...]
    known: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """The names as plain JSON values."""
        return {"registered": list(self.new), "known": list(self.known)}


def register(spark: SparkSession, pipeline: Pipeline, schema: str) -> Registration:
    """Gives the published table of every window its name in `schema` of Spark's catalog.

    A name that is there for the same table stays. Nothing is written to the lake, and where one
    name can't be given, none is. Raises UsageError where the catalog is one that ends with the
    session, where the schema or a table is not there, and where a name is that of another table.
    """
    _check_catalog(spark, schema)
    new, known = {}, []
    for window in pipeline.windows:
        name = Location(f"{schema}.{window.name}")
        table = pipeline.table(published_name(window.name))
        if not has_directory(table):
            raise UsageError(
                f"{pipeline.name}: {window.name} has not been published yet, so there is no table "
                "to name; `tidemark publish` makes it"
            )
        if not spark.catalog.tableExists(name.sql):
            new[name] = table
            continue
        found = _find_directory(spark, name)
        if found != table:
            raise UsageError(
                f"{name} is another table already, which lies at {found}; drop it, or name another "
                "schema by --schema"
            )
        known.append(name.text)
    for name, table in new.items():
        spark.catalog.createTable(name.sql, path=table.hadoop, source="delta")
    return Registration(tuple(name.text for name in new), tuple(known))


def _check_catalog(spark: SparkSession, schema: str) -> None:
    catalog = schema.partition(".")[0] if "." in schema else _OWN_CATALOG
    if catalog == _OWN_CATALOG and spark.conf.get(_IMPLEMENTATION, "in-memory") == "in-memory":
        raise UsageError(
            "Spark's catalog is in memory, so its names would end with this command; set "
            f"{_IMPLEMENTATION}=hive and where its metastore is in spark-defaults.conf of "
            "SPARK_CONF_DIR"
        )
    if not spark.catalog.databaseExists(Location(schema).sql):
        raise UsageError(
            f"there is no schema {schema} in Spark's catalog; make it by `CREATE SCHEMA {schema}`, "
            "or name another one by --schema"
        )


def _find_directory(spark: SparkSession, name: Location) -> object:
    """Where a Delta table of the catalog lies; words in place of any other."""
    try:
        (row,) = spark.sql(f"describe detail {name.sql}").select("location").collect()
    except AnalysisException as error:
        return f"a place that can't be read ({delta.reason(error)})"
    return locate_uri(row["location"])
