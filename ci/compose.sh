#!/usr/bin/env bash
# Checks the compose files of the examples: against the schema of the Compose specification, by the library
# that docker compose is built on (ci/compose, pinned by go.mod and go.sum), and for everything that they
# mount or build from. That their Envoy is the one that the tests run is checked here as well, and that every example
# has the scripts that its page speaks of.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/go.sh
. ci/versions.env

cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
key=$({ cat ci/compose/{main.go,go.mod,go.sum} && uname -sm; } | sha256sum)
program=$cache/compose-${key:0:12}/compose
if [ ! -x "$program" ]; then
    need_go ci/compose 'the check of compose files'
    mkdir -p "${program%/*}"
    fresh=$(mktemp "$program.XXXXXX")
    trap 'rm -f "$fresh"' EXIT
    (cd ci/compose && CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly go build -trimpath -o "$fresh" .) ||
        fail "go could not build ci/compose" "its message stands above"
    mv -f "$fresh" "$program"
fi

# What every example is started, tried and ended with.
for page in examples/*/README.md; do
    for script in "${page%/*}"/{up,try,down}; do
        [ -x "$script" ] || fail "$script is missing, or cannot be executed"
        bash -n "$script" || fail "$script is no script of bash"
    done
done

files=(examples/*/compose.yaml)
"$program" "$PWD" "${files[@]}" || fail "compose files are wrong"
for file in "${files[@]}"; do
    for image in $(grep -o 'envoyproxy/envoy:[^ ]*' "$file"); do
        [ "$image" = "envoyproxy/envoy:v$ENVOY_VERSION" ] ||
            fail "$file: found $image, expected envoyproxy/envoy:v$ENVOY_VERSION (ci/versions.env)"
    done
done
say "${#files[@]} compose files are as docker compose wants them"
