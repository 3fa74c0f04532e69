#!/usr/bin/env bash
# Builds promtool and links it into .tools/bin.
#
# Built with Go from the module that ci/prometheus/go.mod pins and go.sum checks, unchanged: some minutes, once. Kept in
# a cache outside the clone (${TIDEGATE_CACHE:-~/.cache/tidegate}) under the hash of what it is made from, so that with
# a filled cache Go is not needed. A file in the cache is complete or not there, because it gets its name last.
# With --cached nothing is built: whether it is in the cache is the exit code.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

sources=ci/prometheus
key=$({ cat "$sources"/go.mod "$sources"/go.sum && uname -sm; } | sha256sum)
cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
home=$cache/prometheus-${key:0:12}
staging=
trap '[ -z "$staging" ] || rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM HUP

if [ "${1-}" = --cached ]; then
    [ -x "$home/promtool" ]
    exit
fi
if [ ! -x "$home/promtool" ]; then
    wanted=$(awk '$1 == "go" {print $2}' "$sources/go.mod")
    command -v go >/dev/null || fail "go is not installed: Go $wanted or later builds promtool from source" \
        "install it from https://go.dev/dl, or put go into PATH"
    say "building promtool $(awk '$1 == "github.com/prometheus/prometheus" {print $2}' "$sources/go.mod"): minutes, once"
    mkdir -p "$home"
    staging=$(mktemp -d "$cache/.prometheus.XXXXXX")
    # Without the clients of all clouds, which it would look for targets with.
    (cd "$sources" && CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly go build -trimpath -tags remove_all_sd -ldflags '-s -w' \
        -o "$staging/" github.com/prometheus/prometheus/cmd/promtool) || fail "go could not build promtool" "its message stands above"
    mv -f "$staging/promtool" "$home/promtool"
fi
mkdir -p .tools/bin
ln -sfn "$home/promtool" .tools/bin/promtool
