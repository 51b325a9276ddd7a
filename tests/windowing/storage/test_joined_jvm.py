"""A JVM that is started before any session, joined by processes, and ended: what each needs.

None of these calls is promised. Without one of them a process of the warm engine or of
`spark-submit` has no session, another process's stream, or no classes of Delta.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest

from jobs.session import Jvm, start_java
from jobs.sessions.jars import LOG_STORES
from windowing.storage import gateway_variables, spark_internals

JOINS = """
from pyspark import SparkContext
from pyspark.sql import SparkSession
from windowing.storage import spark_internals

joined = spark_internals.join_running_context()
spark = SparkSession.builder.getOrCreate()
first = SparkContext._gateway.gateway_property.pool.next_id
print(joined, spark_internals.find_jvm_process(spark), first, spark_internals.find_java() is None)
if joined:
    spark.sql("create temporary view own as select 1")
    bindings = SparkContext._jvm.java.util.ArrayList
    kept = [bindings() for _ in range(100)]
    spark_internals.delete_objects(spark)
    try:
        kept[0].size()
        print("kept")
    except Exception as error:
        print("deleted" if "o" in str(error) else error)
else:
    print(spark.range(3).count())
"""
ENDS = """
from pyspark.sql import SparkSession
from windowing.storage import spark_internals

spark = SparkSession.builder.master("local[1]").getOrCreate()
jvm = spark_internals.find_java()
assert jvm is not None and jvm.poll() is None
assert spark_internals.find_jvm_process(spark) == jvm.pid
spark_internals.end_java(spark, 60)
print(jvm.poll())
"""
LOADS = """
import sys
from pyspark import SparkContext
from windowing.storage import spark_internals

spark_internals.load_jars(())
before = SparkContext._jvm.tidemark.Fence
spark_internals.load_jars(sys.argv[1:])
print(type(before).__name__, type(SparkContext._jvm.tidemark.Fence).__name__)
"""


@pytest.fixture(scope="module")
def started(jvm: None) -> Iterator[Jvm]:
    """A JVM with no session yet."""
    found = start_java()
    yield found
    if found.process.stdin is not None:
        found.process.stdin.close()
    found.process.wait(timeout=60)


def run_python(program: str, variables: Mapping[str, str], *words: str) -> list[str]:
    """What a program of its own process prints, by lines."""
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_first_process_makes_the_context_and_the_next_ones_join_it(started: Jvm) -> None:
    process = str(started.process.pid)
    (first, rows) = run_python(JOINS, started.variables)
    assert first.split()[:2] == ["False", process]
    assert rows == "3"
    numbers = []
    for _ in range(2):
        (joined, objects) = run_python(JOINS, started.variables)
        how, found, number, has_none = joined.split()
        assert (how, found, has_none) == ("True", process, "True")
        # A view of the process before this one would be refused as one that is there already.
        assert objects == "deleted"
        numbers.append(int(number))
    # From 0 the numbers of one process's functions would be those of another's.
    assert len({*numbers, 0}) == 3


def test_a_jvm_of_ours_tells_how_to_join_it(started: Jvm) -> None:
    assert started.process.poll() is None
    assert started.variables[gateway_variables.PORT].isdigit()
    assert started.variables[gateway_variables.SECRET]
    assert spark_internals._STARTED_HERE in started.variables


@pytest.mark.slow
def test_a_session_and_its_jvm_end_at_once(jvm: None) -> None:
    assert run_python(ENDS, {}) == ["0"]


def test_a_jvm_that_runs_gets_more_classes(jvm: None) -> None:
    """Without them Delta is missing where `spark-submit` has started the JVM."""
    assert run_python(LOADS, {}, str(LOG_STORES)) == ["JavaPackage JavaClass"]
