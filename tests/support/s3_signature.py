"""Signs a request as S3 asks for it (AWS Signature Version 4), for servers and proxies of tests."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

_UNSIGNED = {"authorization", "connection", "content-length", "expect", "user-agent"}


@dataclass(frozen=True)
class Keys:
    """Made-up credentials."""

    access: str
    secret: str
    region: str = "us-east-1"


def sign(
    keys: Keys, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> dict[str, str]:
    """`headers`, which name the host, with a date and a signature by `keys`.

    `target` is path and query as they are sent.
    """
    moment = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    digest = hashlib.sha256(body).hexdigest()
    kept = {name.lower(): value for name, value in headers.items()}
    kept |= {"x-amz-date": moment, "x-amz-content-sha256": digest}
    signed = {name: kept[name].strip() for name in sorted({*kept} - _UNSIGNED)}
    url = urlsplit(target)
    pairs = sorted(parse_qsl(url.query, keep_blank_values=True))
    query = "&".join(f"{_quote(name)}={_quote(value)}" for name, value in pairs)
    lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
    request = "\n".join((method, url.path, query, lines, ";".join(signed), digest))
    scope = f"{moment[:8]}/{keys.region}/s3/aws4_request"
    hashed = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(("AWS4-HMAC-SHA256", moment, scope, hashed))
    key = f"AWS4{keys.secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    kept["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys.access}/{scope}, "
        f"SignedHeaders={';'.join(signed)}, Signature={signature}"
    )
    return kept


def _quote(text: str) -> str:
    return quote(text, safe="-_.~")
