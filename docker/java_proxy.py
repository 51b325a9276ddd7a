"""Prints the proxy of the environment as options of Java, which does not read the environment.

HTTP_PROXY, HTTPS_PROXY, NO_PROXY -> -Dhttp.proxyHost=... -Dhttps.proxyHost=...
"""

import os
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit


def java_options(environment: Mapping[str, str]) -> list[str]:
    """The options; none where there is no proxy. Java takes no password of a proxy."""
    options = [
        option
        for scheme in ("http", "https")
        for option in _options_of(scheme, _read(environment, f"{scheme}_proxy"))
    ]
    exceptions = [host.strip() for host in _read(environment, "no_proxy").split(",")]
    # A name with a dot in front means a domain in NO_PROXY, and needs a star in Java.
    hosts = [f"*{host}" if host.startswith(".") else host for host in exceptions if host]
    if options and hosts:
        options.append(f"-Dhttp.nonProxyHosts={'|'.join(hosts)}")
    return options


def _options_of(scheme: str, proxy: str) -> Iterator[str]:
    if proxy:
        # Programs accept an address without a scheme, too.
        address = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        yield f"-D{scheme}.proxyHost={address.hostname}"
        yield f"-D{scheme}.proxyPort={address.port or 80}"


def _read(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


if __name__ == "__main__":
    print(*java_options(os.environ))
