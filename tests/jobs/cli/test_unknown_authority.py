"""A certificate that the JVM does not trust: the command says what to name, and where."""

import pytest
from pyspark.errors import PySparkException

from jobs.cli.errors import explain_error
from tests.system.test_hostile_environment import JavaError, Thrown

PATH = (
    "sun.security.provider.certpath.SunCertPathBuilderException: unable to find valid "
    "certification path to requested target"
)


@pytest.mark.parametrize(
    "error",
    [
        PySparkException(f"PKIX path building failed: {PATH}"),
        JavaError(Thrown("org.apache.hadoop.fs.s3a.AWSClientIOException: x", Thrown(PATH))),
    ],
)
def test_a_trust_store_is_to_be_named(error: Exception) -> None:
    failure = explain_error(error)
    assert (failure.code, failure.message) == (
        1,
        "Spark does not know the authority that signed the certificate of a server; name a trust "
        "store with it in JAVA_TOOL_OPTIONS (-Djavax.net.ssl.trustStore=FILE), then run again, "
        "which finishes what was begun",
    )
