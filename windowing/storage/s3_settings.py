"""S3 as the environment describes it, once, in the words of both sides that speak to it.

The JVM speaks to S3 by Hadoop's s3a, and this process by the object store of delta-rs. Both look
for credentials themselves, in the same places and order: keys in the environment, a web identity,
a profile, the role of a container, that of an instance. So no setting ever contains a secret.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from windowing.errors import UsageError

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""What delta-rs reads to know whom to trust."""
_ANY_REGION = "us-east-1"
"""What requests are signed with for a store that has no regions."""
FORCE_LOAD = "aws_force_credential_load"
"""An option that the object store of delta-rs has and others have not."""
_YES = ("1", "true", "on", "yes", "y")
_NO_SWITCHES = {
    "AWS_S3_ALLOW_UNSAFE_RENAME": "it lets two writers overwrite each other's commits",
    "AWS_SKIP_SIGNATURE": "Spark would sign its requests",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "Spark would name the bucket in the path",
}
"""Variables that may not be on, because delta-rs alone would follow them, and why not."""

# In the order of AWS's own chain of providers. That chain is one object for a whole JVM, and the
# first of Hadoop's file systems to be closed would close it for all of them.
_PROVIDERS = (
    "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.ProfileCredentialsProvider",
    "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",
)
_S3A = {
    "aws.credentials.provider": ",".join(_PROVIDERS),
    # Both Hadoop and AWS's client repeat a request, so by default one to an address where nobody
    # answers ends after ten minutes. Here Hadoop alone repeats it, four times and slower each time.
    "attempts.maximum": "1",
    "retry.limit": "4",
    "connection.establish.timeout": "15s",
    "connection.timeout": "30s",
    # A directory is made by one request, without looking whether one of those above is a file.
    "performance.flags": "mkdir",
}


@dataclass(frozen=True)
class S3Settings:
    """Where S3 is and how it is addressed; `endpoint` is None for AWS itself.

    >>> minio = S3Settings("us-east-1", "http://127.0.0.1:9000")
    >>> minio.for_hadoop()["spark.hadoop.fs.s3a.path.style.access"]
    'true'
    >>> minio.for_rust()["aws_allow_http"]
    'true'
    """

    region: str
    endpoint: str | None = None
    has_keys: bool = False
    """Whether the environment itself has keys, so that nothing else is asked for them."""

    @property
    def allows_http(self) -> bool:
        """Whether the endpoint is one without TLS."""
        return self.endpoint is not None and self.endpoint.startswith("http://")

    @property
    def has_path_style(self) -> bool:
        """Whether the bucket is named in the path, as stores other than AWS expect it."""
        return self.endpoint is not None

    def for_hadoop(self) -> Mapping[str, str]:
        """The settings of a Spark session whose s3a is this store."""
        found = {**_S3A, "endpoint.region": self.region}
        if self.endpoint is not None:
            found["endpoint"] = self.endpoint
        found["path.style.access"] = str(self.has_path_style).lower()
        return {f"spark.hadoop.fs.s3a.{name}": value for name, value in found.items()}

    def for_rust(self) -> dict[str, str]:
        """The options by which delta-rs, and any other user of its object store, opens this store.

        They stand above the environment, so what is not said there is said here.
        """
        found = {"aws_region": self.region, "aws_conditional_put": "etag"}
        if self.endpoint is not None:
            found["aws_endpoint"] = self.endpoint
            found["aws_virtual_hosted_style_request"] = "false"
            found["aws_allow_http"] = str(self.allows_http).lower()
            if not self.has_keys:
                # Otherwise delta-rs asks no profile where an endpoint is named. It then looks for a
                # region as well, at last for seconds in the metadata of EC2.
                found[FORCE_LOAD] = "true"
        return found


def read_s3_settings(environ: Mapping[str, str]) -> S3Settings:
    """What the variables of AWS's own tools say; nothing but `environ` is read.

    Raises UsageError for what only one side would follow, or what would lose commits.
    """
    _refuse_half_a_key(environ)
    _refuse_one_sided(environ)
    endpoint = _read_endpoint(environ)
    _refuse_unread_bundle(environ, endpoint)
    return S3Settings(
        region=_read_region(environ, endpoint),
        endpoint=endpoint,
        has_keys=bool(environ.get("AWS_ACCESS_KEY_ID")),
    )


def _read_endpoint(environ: Mapping[str, str]) -> str | None:
    name = next((name for name in _ENDPOINTS if environ.get(name)), None)
    if name is None:
        return None
    try:
        parts = urlsplit(environ[name])
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    # Whatever else an address contains, it may be a secret.
    if not known or "@" in parts.netloc or parts.path.strip("/") or parts.query or parts.fragment:
        raise UsageError(
            f"{name} is no address of a store; it has to be scheme, host and port alone, "
            "such as https://s3.example.com or http://127.0.0.1:9000"
        )
    return f"{parts.scheme}://{parts.netloc}"


def _read_region(environ: Mapping[str, str], endpoint: str | None) -> str:
    name = next((name for name in _REGIONS if environ.get(name)), None)
    if name is None and endpoint is not None:
        return _ANY_REGION
    if name is None:
        raise UsageError(
            "nothing says which S3 is meant; set AWS_REGION to the region of the bucket, "
            "or AWS_ENDPOINT_URL to the address of another store"
        )
    if not re.fullmatch(r"[A-Za-z0-9-]+", environ[name]):
        raise UsageError(
            f"{name} is {environ[name]!r}; a region has letters, digits and hyphens alone, "
            "such as eu-central-1"
        )
    return environ[name]


def _refuse_half_a_key(environ: Mapping[str, str]) -> None:
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    given = [name for name in names if environ.get(name)]
    if len(given) == 1:
        (missing,) = {*names} - {*given}
        raise UsageError(f"{given[0]} is set and {missing} is not; set both, or neither")


def _refuse_unread_bundle(environ: Mapping[str, str], endpoint: str | None) -> None:
    has_tls = endpoint is None or endpoint.startswith("https://")
    is_named = any(environ.get(name) for name in _AUTHORITIES)
    if environ.get("AWS_CA_BUNDLE") and has_tls and not is_named:
        raise UsageError(
            "AWS_CA_BUNDLE is set, but neither Spark nor delta-rs reads it; set SSL_CERT_FILE to "
            "the same file, and for Spark a trust store in JAVA_TOOL_OPTIONS, or unset it"
        )


def _refuse_one_sided(environ: Mapping[str, str]) -> None:
    # delta-rs reads them whatever the case of their letters.
    given = {name.upper(): value for name, value in environ.items() if value}
    for name, why in _NO_SWITCHES.items():
        if given.get(name, "").strip().lower() in _YES:
            raise UsageError(f"{name} is {given[name]}, but {why}; unset it")
    if given.get("AWS_CONDITIONAL_PUT", "etag") != "etag":
        raise UsageError(
            f"AWS_CONDITIONAL_PUT is {given['AWS_CONDITIONAL_PUT']}, but a commit is made by a "
            "conditional put with an ETag; unset it, and use a store that has these"
        )
    if "AWS_S3_LOCKING_PROVIDER" in given:
        raise UsageError(
            f"AWS_S3_LOCKING_PROVIDER is {given['AWS_S3_LOCKING_PROVIDER']}, but Spark would "
            "commit without that lock; unset it, because commits are conditional puts"
        )
    if "AWS_ENDPOINT" in given and not any(name in given for name in _ENDPOINTS):
        raise UsageError(
            "AWS_ENDPOINT is read by delta-rs alone; call the variable AWS_ENDPOINT_URL"
        )
