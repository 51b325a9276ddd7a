"""Commands on a lake on HDFS, as they are typed."""

import json
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from jobs.cli.main import main
from tests.support.hdfs_server import HdfsServer
from tests.support.long_lived_pipeline import MINUTE, WINDOWS, Life
from tests.support.pipeline_under_test import ARRIVAL, FEW, Lab
from windowing.location import Location
from windowing.storage.store import store_of


@pytest.mark.deep
def test_commands_work_and_give_the_oracles_tables(
    hdfs_server: HdfsServer, spark: SparkSession, tmp_path: Path
) -> None:
    home = Location(hdfs_server.make_home())
    lab = Lab(spark, home, WINDOWS[:2], lateness=240 * MINUTE, delay=10 * MINUTE, shows=FEW)
    life, spec = Life(lab, Random(1)), tmp_path / "lab.yaml"
    spec.write_text(json.dumps(lab.spec()))

    def tidemark(name: str, *words: str) -> str:
        done = CliRunner().invoke(main, [name, str(spec), *words], prog_name="tidemark")
        print(name, words, done.output)
        assert done.exit_code == 0, (name, done.output, done.exception)
        return done.output

    for _ in range(2):
        events = lab.land(life.batch())
        tidemark("run")
        lab.truth.run(events, ARRIVAL)
    life.check()
    assert tidemark("validate")
    assert tidemark("publish")
    assert store_of(home).read(lab.pipeline.table("_published.json"))
    window = lab.windows[0].name
    assert tidemark("show", window, "--published")
    for name in ("late", "state", "explain", "report"):
        assert tidemark(name)
    assert tidemark("backfill", "--from", "1970-01-01", "--to", "2100-01-01", "--check")
    tidemark("backfill", "--from", "1970-01-01", "--to", "2100-01-01")
    lab.truth.backfill(lab.landed, 0, 2**62, ARRIVAL)
    tidemark("maintain")
    tidemark("doctor")
    life.check()
    tidemark("validate")
    tidemark("publish")
    tidemark("erase", "--key", "a", "--yes")
    lab.truth.erase("a")
    lab.check()
