#!/usr/bin/env bash
# Runs Python with Grafana's Foundation SDK: ci/grafana.sh SCRIPT ARGUMENTS...
#
# The SDK comes from PyPI by the version and checksum in ci/versions.env, into a virtual environment in the cache
# (${TIDEGATE_CACHE:-~/.cache/tidegate}); nothing else is in it. It needs Python 3.11.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/versions.env

cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
home=$cache/grafana-sdk-${GRAFANA_SDK_SHA256:0:12}
if [ ! -e "$home/complete" ]; then
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "Grafana's Foundation SDK needs Python 3.11" \
        "found $(python3 --version)"
    rm -rf "$home"
    python3 -m venv "$home" || fail "Python 3 has no venv" "on Debian or Ubuntu: sudo apt-get install python3-venv"
    echo "grafana-foundation-sdk==$GRAFANA_SDK_VERSION --hash=sha256:$GRAFANA_SDK_SHA256" >"$home/requirements.txt"
    "$home/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary=:all: \
        --requirement "$home/requirements.txt" >&2 || fail "pip could not install grafana-foundation-sdk $GRAFANA_SDK_VERSION"
    touch "$home/complete"
fi
exec "$home/bin/python" "$@"
