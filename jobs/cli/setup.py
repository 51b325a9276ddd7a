"""The command that makes an environment ready for Spark: setup."""

import click

from jobs.cli.options import debug, debugging, json_option
from jobs.cli.spark_extra import require_spark_extra
from jobs.console import Printer
from windowing.spec.words import listed


@click.command()
@json_option
@debug
def setup(*, as_json: bool) -> None:
    """Fetch the Delta JARs; once for each environment.

    They are verified by SHA-256 and kept in the environment that Tidemark is installed in, or in
    the directory that TIDEMARK_JARS names. A JAR that is there already is verified, and fetched
    again only if it is not the pinned one. Needs Java. A mirror of Maven Central is named by
    DEFAULT_ARTIFACT_REPOSITORY, or by Spark's spark.jars.ivySettings in spark-defaults.conf.
    """
    require_spark_extra()
    from jobs.session import JARS
    from jobs.setup import SHA256, fetch_jars

    fetched = fetch_jars(verbose=debugging())
    printer = Printer(as_json=as_json)
    did = (
        f"fetched and verified {listed(fetched)}"
        if fetched
        else "the Delta JARs are there, verified"
    )
    printer.line(f"{JARS}: {did}")
    printer.finish({"directory": str(JARS), "jars": dict(SHA256), "fetched": list(fetched)})
