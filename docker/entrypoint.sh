#!/bin/sh
# Puts secrets into files only this user can read and takes them out of the environment, then runs the command:
# a secret in the environment would be inherited by every task, one on a command line seen by every process.
set -eu
umask 077

if [ -n "${AIRFLOW_ADMIN_PASSWORD:-}" ]; then
    python3 -c 'import json, os; print(json.dumps({"admin": os.environ["AIRFLOW_ADMIN_PASSWORD"]}))' \
        > "$AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"
    unset AIRFLOW_ADMIN_PASSWORD
fi

if [ -n "${AIRFLOW__CORE__FERNET_KEY:-}${AIRFLOW__API_AUTH__JWT_SECRET:-}" ]; then
    {
        printf '[core]\nfernet_key = %s\n' "${AIRFLOW__CORE__FERNET_KEY:-}"
        printf '[api_auth]\njwt_secret = %s\n' "${AIRFLOW__API_AUTH__JWT_SECRET:-}"
    } | sed -e 's/%/%%/g' -e '/ = $/d' > "$AIRFLOW_HOME/airflow.cfg"
    unset AIRFLOW__CORE__FERNET_KEY AIRFLOW__API_AUTH__JWT_SECRET
fi

if [ -n "${SPARK_WORKER_LIMIT:-}" ]; then
    offered=$(python3 "$(dirname "$0")/memory.py" worker "$SPARK_WORKER_LIMIT")
    export SPARK_WORKER_MEMORY="${SPARK_WORKER_MEMORY:-$offered}"
    export SPARK_EXECUTOR_MEMORY="${SPARK_EXECUTOR_MEMORY:-$offered}"
fi

# Named as a file, because a directory of settings would lie on the class path of JVMs.
: > "$SPARK_PROPERTIES"
if [ -n "${SPARK_AUTH_SECRET:-}" ]; then
    cat > "$SPARK_PROPERTIES" <<CONF
spark.authenticate               true
spark.authenticate.secret        $SPARK_AUTH_SECRET
spark.network.crypto.enabled     true
spark.master.rest.enabled        false
spark.ui.killEnabled             false
spark.worker.cleanup.enabled     true
CONF
    unset SPARK_AUTH_SECRET
fi
if [ -n "${SPARK_MASTER:-}" ]; then
    # The address, because a container of `docker compose run` has no name that workers know.
    cat >> "$SPARK_PROPERTIES" <<CONF
spark.driver.host                $(hostname -i | cut -d ' ' -f 1)
spark.driver.bindAddress         0.0.0.0
spark.cores.max                  ${SPARK_CORES_MAX:-2}
spark.executor.memory            ${SPARK_EXECUTOR_MEMORY:-1g}
CONF
fi

exec "$@"
