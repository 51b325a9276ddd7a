"""The command that fetches the JARs that Spark needs: setup."""

import click

from jobs.cli.options import debug, debugging, json_option
from jobs.cli.spark_extra import require_spark_extra
from jobs.console import Printer
from windowing.report.text import count


@click.command()
@json_option
@debug
def setup(*, printer: Printer) -> None:
    """Fetch the JARs of Delta and S3, once for each environment.

    They are verified by SHA-256 and stored in the environment that Tidemark is installed in, or in
    the directory that TIDEMARK_JARS names. A JAR that exists already is verified, and fetched again
    only if it is not the pinned one. Needs Java. DEFAULT_ARTIFACT_REPOSITORY, or Spark's
    spark.jars.ivySettings in spark-defaults.conf, names a mirror of Maven Central.
    """
    require_spark_extra()
    from jobs.session import JARS
    from jobs.setup import SHA256, fetch_jars

    fetched = fetch_jars(verbose=debugging())
    if fetched:
        printer.line(f"{JARS}: fetched and verified {count(len(fetched), 'JAR')}")
    else:
        printer.line(f"{JARS}: the JARs are there, verified")
    printer.finish({"directory": str(JARS), "jars": dict(SHA256), "fetched": list(fetched)})
