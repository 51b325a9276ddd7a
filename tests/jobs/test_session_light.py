"""A light session differs from the others in how queries and classes are compiled, and in nothing else. No Spark."""

import pytest

from jobs.session import JVM, light

OPTIONS = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(("master", "shared"), [(None, "-Xshare:auto"), ("spark://master:7077", "")])
def test_light_sessions_keep_what_all_sessions_have(monkeypatch: pytest.MonkeyPatch, master: str | None, shared: str) -> None:
    monkeypatch.setattr("jobs.session._shared", lambda: "-Xshare:auto")
    monkeypatch.setenv("SPARK_MASTER", master) if master else monkeypatch.delenv("SPARK_MASTER", raising=False)
    words = light()[OPTIONS].split()
    assert set(words) == {*JVM.split(), "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m", *shared.split()}
    assert set(light()) == {OPTIONS, "spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"}
