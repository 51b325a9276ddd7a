#!/bin/sh
# Makes both environments in a build of the image, through the mirrors and the proxy that it was given.
set -eu
if [ -n "${CA_CERTIFICATE:-}" ]; then
    printf '%s\n' "$CA_CERTIFICATE" > /usr/local/share/ca-certificates/build.crt
    # It adds the certificate to those of Java, too.
    update-ca-certificates
fi
certificates=/etc/ssl/certs/ca-certificates.crt
export PIP_CERT="$certificates" SSL_CERT_FILE="$certificates" UV_COMPILE_BYTECODE=1
if [ -n "${PIP_INDEX_URL:-}" ]; then
    export UV_DEFAULT_INDEX="$PIP_INDEX_URL"
else
    unset PIP_INDEX_URL
fi
[ -n "${DEFAULT_ARTIFACT_REPOSITORY:-}" ] || unset DEFAULT_ARTIFACT_REPOSITORY
JAVA_TOOL_OPTIONS=$(python3 docker/java_proxy.py)
export JAVA_TOOL_OPTIONS

make setup LOCK=requirements/runtime.txt
.venv/bin/python -m compileall -q dags expectations jobs tidemark windowing
rm -rf .tools
