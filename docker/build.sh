#!/bin/sh
# Makes both environments in a build of the image, through the mirrors and the proxy that it was given.
set -eu
if [ -n "${CA_CERTIFICATE:-}" ]; then
    file=/usr/local/share/ca-certificates/build.crt
    printf '%s\n' "$CA_CERTIFICATE" > "$file"
    update-ca-certificates
    keytool -importcert -noprompt -cacerts -storepass changeit -alias build -file "$file"
fi
export PIP_CERT=/etc/ssl/certs/ca-certificates.crt SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
if [ -n "${PIP_INDEX_URL:-}" ]; then
    export UV_DEFAULT_INDEX="$PIP_INDEX_URL"
else
    unset PIP_INDEX_URL
fi
[ -n "${DEFAULT_ARTIFACT_REPOSITORY:-}" ] || unset DEFAULT_ARTIFACT_REPOSITORY
JAVA_TOOL_OPTIONS=$(python3 docker/java_proxy.py)
export JAVA_TOOL_OPTIONS

make setup LOCK=requirements/runtime.txt ARCHIVE=true
rm -r .tools

# What no command loads: tests and headers of packages, a store for state of streams, and a network service of Arrow.
packages=$(echo .venv/lib/python3*/site-packages)
rm -r "$packages"/pandas/tests "$packages"/pyarrow/tests "$packages"/pyarrow/include "$packages"/pyspark/jars/rocksdbjni-*.jar
rm -r "$packages"/pyarrow/*flight*
find "$packages"/scipy -type d -name tests -prune -exec rm -r {} +

# The image can't be written to, so what is imported is compiled here: in the one environment what commands import, in
# the other everything.
.venv/bin/python -c 'import jobs.cli.main; from jobs.engine.warm_spark import WarmSpark; WarmSpark(print)'
.venv/bin/python -m compileall -q dags expectations jobs tidemark windowing
.venv-airflow/bin/python -m compileall -q .venv-airflow/lib
