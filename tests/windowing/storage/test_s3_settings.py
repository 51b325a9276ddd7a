"""S3 as the environment describes it: the same store for both sides, and no secret in a setting."""

from collections.abc import Mapping
from functools import partial

import pytest

from windowing.errors import UsageError
from windowing.storage.s3_settings import FORCE_LOAD, S3Settings, read_s3_settings

KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIAMADEUP",
    "AWS_SECRET_ACCESS_KEY": "made-up-secret",
    "AWS_SESSION_TOKEN": "made-up-token",
}
AWS = {**KEYS, "AWS_REGION": "eu-central-1"}
STORE = {**KEYS, "AWS_ENDPOINT_URL": "http://127.0.0.1:9000"}
HERE = "http://127.0.0.1:9000"
keyed = partial(S3Settings, has_keys=True)


@pytest.mark.parametrize(
    ("environ", "settings"),
    [
        (AWS, keyed("eu-central-1")),
        ({"AWS_DEFAULT_REGION": "eu-west-1"}, S3Settings("eu-west-1")),
        ({**AWS, "AWS_DEFAULT_REGION": "eu-west-1"}, keyed("eu-central-1")),
        ({**AWS, "AWS_PROFILE": "shop"}, keyed("eu-central-1")),
        (STORE, keyed("us-east-1", HERE)),
        ({**STORE, "AWS_REGION": "garage"}, keyed("garage", HERE)),
        ({**STORE, "AWS_ENDPOINT_URL": f"{HERE}/"}, keyed("us-east-1", HERE)),
        (
            {**STORE, "AWS_ENDPOINT_URL_S3": "https://s3.example.com"},
            keyed("us-east-1", "https://s3.example.com"),
        ),
        ({**STORE, "AWS_ENDPOINT_URL_S3": ""}, keyed("us-east-1", HERE)),
        ({**AWS, "AWS_CONDITIONAL_PUT": "etag"}, keyed("eu-central-1")),
        ({**AWS, "AWS_S3_ALLOW_UNSAFE_RENAME": "false"}, keyed("eu-central-1")),
    ],
)
def test_the_usual_variables_are_read(environ: Mapping[str, str], settings: S3Settings) -> None:
    assert read_s3_settings(environ) == settings


@pytest.mark.parametrize("environ", [AWS, STORE, {**STORE, "AWS_PROFILE": "shop"}])
def test_no_setting_contains_a_key(environ: Mapping[str, str]) -> None:
    settings = read_s3_settings(environ)
    said = repr((settings, settings.for_hadoop(), settings.for_rust()))
    assert not [value for value in KEYS.values() if value in said]


def test_both_sides_speak_to_the_same_store() -> None:
    hadoop, rust = read_s3_settings(STORE).for_hadoop(), read_s3_settings(STORE).for_rust()
    prefix = "spark.hadoop.fs.s3a"
    assert hadoop[f"{prefix}.endpoint"] == rust["aws_endpoint"] == HERE
    assert hadoop[f"{prefix}.endpoint.region"] == rust["aws_region"] == "us-east-1"
    assert hadoop[f"{prefix}.path.style.access"] == "true"
    assert rust["aws_virtual_hosted_style_request"] == "false"
    assert rust["aws_allow_http"] == "true"


def test_aws_itself_needs_no_endpoint() -> None:
    settings = read_s3_settings(AWS)
    assert (settings.allows_http, settings.has_path_style) == (False, False)
    assert "spark.hadoop.fs.s3a.endpoint" not in settings.for_hadoop()
    assert settings.for_rust() == {"aws_region": "eu-central-1", "aws_conditional_put": "etag"}


def test_delta_rs_looks_for_keys_only_where_the_environment_has_none() -> None:
    """It then looks for a region as well, wherever one may be."""
    assert FORCE_LOAD not in read_s3_settings(STORE).for_rust()
    by_profile = {"AWS_ENDPOINT_URL": HERE, "AWS_PROFILE": "shop"}
    assert read_s3_settings(by_profile).for_rust()[FORCE_LOAD] == "true"


def test_an_endpoint_with_tls_allows_no_http() -> None:
    settings = read_s3_settings({"AWS_ENDPOINT_URL": "https://s3.example.com"})
    assert settings.for_rust()["aws_allow_http"] == "false"


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({}, "set AWS_REGION to the region of the bucket"),
        ({**AWS, "AWS_REGION": "eu central"}, "AWS_REGION is 'eu central'; a region has"),
        ({"AWS_ACCESS_KEY_ID": "k"}, "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not"),
        ({"AWS_SECRET_ACCESS_KEY": "made-up-secret"}, "AWS_ACCESS_KEY_ID is not; set both"),
        ({**AWS, "AWS_CONDITIONAL_PUT": "disabled"}, "AWS_CONDITIONAL_PUT is disabled, but"),
        ({**AWS, "aws_conditional_put": "disabled"}, "AWS_CONDITIONAL_PUT is disabled, but"),
        ({**AWS, "AWS_S3_ALLOW_UNSAFE_RENAME": "TRUE"}, "overwrite each other's commits"),
        ({**AWS, "AWS_SKIP_SIGNATURE": "1"}, "Spark would sign its requests"),
        ({**STORE, "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"}, "name the bucket in the path"),
        ({**AWS, "AWS_S3_LOCKING_PROVIDER": "dynamodb"}, "commit without that lock"),
        ({**AWS, "AWS_ENDPOINT": HERE}, "call the variable AWS_ENDPOINT_URL"),
    ],
)
def test_what_one_side_alone_would_follow_is_refused(environ: Mapping[str, str], said: str) -> None:
    with pytest.raises(UsageError) as error:
        read_s3_settings(environ)
    assert said in str(error.value)
    assert "made-up" not in str(error.value)


@pytest.mark.parametrize("known", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_a_bundle_that_nobody_reads_is_refused_where_nothing_else_is_named(known: str) -> None:
    bundle = {"AWS_CA_BUNDLE": "/etc/own.pem"}
    for environ in (AWS, {**STORE, "AWS_ENDPOINT_URL": "https://s3.example.com"}):
        with pytest.raises(
            UsageError, match="AWS_CA_BUNDLE is set, but neither Spark nor delta-rs"
        ):
            read_s3_settings({**environ, **bundle})
        assert read_s3_settings({**environ, **bundle, known: "/etc/own.pem"})
    assert read_s3_settings({**STORE, **bundle}).allows_http


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1:9000", "ftp://s3.example.com", "http://", "https://s3.example.com:port"),
        *("https://me:made-up-secret@s3.example.com", "https://s3.example.com/made-up-secret"),
        *("https://s3.example.com?key=made-up-secret", "https://s3.example.com#made-up-secret"),
    ],
)
def test_an_address_is_scheme_host_and_port_and_is_not_repeated(address: str) -> None:
    with pytest.raises(UsageError) as error:
        read_s3_settings({"AWS_ENDPOINT_URL": address})
    assert "AWS_ENDPOINT_URL is no address of a store" in str(error.value)
    assert "made-up-secret" not in str(error.value)
