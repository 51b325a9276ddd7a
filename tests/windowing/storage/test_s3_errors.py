"""What S3 and the way to it say, as errors of a file system, without any server."""

import errno

import pytest
from obstore.exceptions import GenericError

from windowing.location import Location
from windowing.storage.s3_errors import NoBucket, errors_of_s3
from windowing.storage.system_errors import find_system_error

PLACE = Location("s3://bucket/lake/a")
NO_KEYS = "no credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


def explain_directly(text: str) -> OSError:
    """The error of a file that obstore tells of so."""
    with pytest.raises(OSError, match=".") as met, errors_of_s3(PLACE):
        raise GenericError(text)
    return met.value


def explain_of_table(text: str) -> OSError:
    """The error of a table that delta-rs tells of so."""
    found = find_system_error(PLACE, OSError(text))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "said",
    [
        "Error performing PUT http://127.0.0.1:1/latest/api/token in 83ms - HTTP error: error "
        "sending request HttpError { kind: Connect }",
        "Error performing PUT http://169.254.169.254/latest/api/token in 2ms - Server returned "
        "non-2xx status code: 404 Not Found: ",
        "Error performing GET http://169.254.169.254/latest/meta-data/iam/security-credentials - "
        "Server returned non-2xx status code: 403 Forbidden: ",
        "Error performing GET http://169.254.170.2/abc - HTTP error: operation timed out",
        "Error performing GET http://169.254.170.23/v1/credentials - HTTP error: kind: Timeout",
        "Failed to read EKS token file '/tmp/none': No such file or directory (os error 2)",
    ],
)
def test_where_nothing_has_keys_that_is_said(said: str) -> None:
    """The services that are asked for them last may not be there, and may answer anything."""
    found = explain_directly(f"Generic S3 error: {said}")
    assert (found.errno, found.filename) == (errno.EACCES, PLACE.text)
    assert str(found.strerror).startswith(NO_KEYS)


def test_delta_rs_says_it_in_other_words() -> None:
    said = (
        "Kernel error -> Operation not supported\n \x1b[31m↳\x1b[0m no credentials found in chain. "
        "Attempted:\n Ec2InstanceMetadata\n could not communicate with IMDS\n 404 Not Found\n "
        "client error (Connect)\n Connection refused (os error 111)\n"
    )
    found = explain_of_table(said)
    assert found.errno == errno.EACCES
    assert str(found.strerror).startswith(NO_KEYS)


def test_a_bucket_that_is_not_there_is_no_damaged_table() -> None:
    """A file that is not there has the same number, and belongs to a damaged table."""
    missing = "Server returned non-2xx status code: 404 Not Found: <Error><Code>{}</Code></Error>"
    with pytest.raises(NoBucket) as met, errors_of_s3(PLACE):
        raise FileNotFoundError(missing.format("NoSuchBucket"))
    assert find_system_error(PLACE, met.value) is met.value
    found = explain_of_table(missing.format("NoSuchBucket"))
    assert found.strerror == met.value.strerror == "there is no such bucket; check its name"
    gone = FileNotFoundError(errno.ENOENT, "No such file or directory", PLACE.text)
    assert find_system_error(PLACE, gone) is None
    assert find_system_error(PLACE, OSError(missing.format("NoSuchKey"))) is None


def test_a_wrong_region_names_its_variable() -> None:
    said = "status code: 400 Bad Request: <Error><Code>AuthorizationHeaderMalformed</Code></Error>"
    for found in (explain_directly(said), explain_of_table(said)):
        assert found.strerror == "the bucket is in another region; set AWS_REGION"


def test_a_certificate_is_told_as_both_libraries_quote_it() -> None:
    for said, sentence in (
        ("kind: Connect, error: InvalidCertificate(UnknownIssuer)", "nobody here knows the autho"),
        ("client error (Connect) invalid peer certificate: UnknownIssuer", "nobody here knows"),
        ("kind: Connect, error: InvalidCertificate(Expired)", "the certificate of the store is n"),
        ("client error (Connect) invalid peer certificate: Expired", "the certificate of the st"),
    ):
        for found in (explain_directly(said), explain_of_table(said)):
            assert (found.errno, str(found.strerror)[: len(sentence)]) == (errno.EPROTO, sentence)
