"""`import tidemark` in Airflow's environment, which has no Spark."""

import importlib
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import dags.factory
import tidemark
import tidemark.dags

ROOT = Path(__file__).parents[2]


def test_a_spec_is_loaded_without_spark() -> None:
    assert find_spec("pyspark") is None
    pipeline = tidemark.load_pipeline(ROOT / "pipelines" / "departures.yaml")
    assert pipeline.name == "departures"


def test_a_session_without_spark_says_what_to_install() -> None:
    with pytest.raises(tidemark.UsageError) as raised:
        tidemark.spark_session()
    said = str(raised.value)
    assert said.startswith("this needs Spark, and this Python has no pyspark")
    assert said.endswith("run `pip install 'WHEEL[spark]'` with the path of Tidemark's wheel")


def test_publishing_without_spark_says_what_to_install() -> None:
    pipeline = tidemark.load_pipeline(ROOT / "pipelines" / "departures.yaml")
    with pytest.raises(tidemark.UsageError, match="this needs Spark"):
        tidemark.publish(pipeline)


def test_the_names_for_dags_are_those_of_the_factory() -> None:
    assert {getattr(tidemark.dags, name) for name in tidemark.dags.__all__} == {
        dags.factory.Specs,
        dags.factory.check_specs,
        dags.factory.dags_of,
        dags.factory.make_dags,
        dags.factory.read_specs,
    }


@dataclass(frozen=True)
class Package:
    """A package that is installed."""

    version: str


@pytest.mark.parametrize(
    ("installed", "found"), [([Package("3.2.1")], "Airflow 3.2.1"), ([], "no Airflow")]
)
def test_an_older_airflow_is_said_in_one_sentence(
    installed: list[Package], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.distributions", lambda **_: iter(installed))
    monkeypatch.setitem(sys.modules, "airflow.sdk", ModuleType("airflow.sdk"))
    monkeypatch.delitem(sys.modules, "tidemark.dags")
    with pytest.raises(ImportError) as raised:
        importlib.import_module("tidemark.dags")
    said = f"tidemark.dags needs Airflow 3.3 or newer, and this environment has {found}; run "
    assert str(raised.value).startswith(said)
