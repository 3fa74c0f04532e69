#!/usr/bin/env bash
# Builds promtool and the server prometheus and links them into .tools/bin: ci/prometheus.sh [NAME...]
#
# NAME is promtool or prometheus; without any it is promtool. Both are built with Go from the module that
# ci/prometheus/go.mod pins and go.sum checks, unchanged: some minutes, once. Each is kept by itself in a cache outside the
# clone (${TIDEGATE_CACHE:-~/.cache/tidegate}) under the hash of what it is made from, so that with a filled cache Go is not
# needed, and one is not built because of the other. A file in the cache is complete or not there, because it gets its name last.
# The server finds targets in its configuration and in files only, and is without the pages that need Node.js: the API is there.
#
# With --cached before the names nothing is built: whether all of them are in the cache is the exit code.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/go.sh

sources=ci/prometheus
key=$({ cat "$sources"/go.mod "$sources"/go.sum && uname -sm; } | sha256sum)
cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
home=$cache/prometheus-${key:0:12}
staging=
trap '[ -z "$staging" ] || rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM HUP

is_asked=
if [ "${1-}" = --cached ]; then is_asked=yes && shift; fi
[ $# -gt 0 ] || set -- promtool
missing=()
for name; do
    case $name in
    promtool | prometheus) ;;
    *) fail "nothing of Prometheus is named $name" "expected promtool or prometheus" ;;
    esac
    [ -x "$home/$name" ] || missing+=("$name")
done
if [ -n "$is_asked" ]; then
    [ ${#missing[@]} = 0 ]
    exit
fi
if [ ${#missing[@]} -gt 0 ]; then
    need_go "$sources" "${missing[*]}"
    version=$(awk '$1 == "github.com/prometheus/prometheus" {print $2}' "$sources/go.mod")
    say "building ${missing[*]} $version: minutes, once"
    mkdir -p "$home"
    staging=$(mktemp -d "$cache/.prometheus.XXXXXX")
    # Without the clients of all clouds, which it would look for targets with.
    (cd "$sources" && CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly go build -trimpath -tags remove_all_sd -ldflags '-s -w' \
        -o "$staging/" "${missing[@]/#/github.com/prometheus/prometheus/cmd/}") ||
        fail "go could not build ${missing[*]}" "its message stands above"
    for name in "${missing[@]}"; do mv -f "$staging/$name" "$home/$name"; done
fi
mkdir -p .tools/bin
for name; do ln -sfn "$home/$name" ".tools/bin/$name"; done
