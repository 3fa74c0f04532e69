#!/usr/bin/env bash
# Builds Helm with Go from the module that ci/helm/go.mod pins and go.sum checks, once, and links it to .tools/bin/helm.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/go.sh

cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
key=$({ cat ci/helm/go.{mod,sum} && uname -sm; } | sha256sum)
program=$cache/helm-${key:0:12}/helm
if [ ! -x "$program" ]; then
    need_go ci/helm Helm
    say "building Helm: minutes, once"
    mkdir -p "${program%/*}"
    fresh=$(mktemp "$program.XXXXXX")
    trap 'rm -f "$fresh"' EXIT
    (cd ci/helm && CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly go build -trimpath -ldflags '-s -w' -o "$fresh" helm.sh/helm/v4/cmd/helm) ||
        fail "go could not build Helm" "its message stands above"
    chmod 755 "$fresh"
    mv -f "$fresh" "$program"
fi
mkdir -p .tools/bin
ln -sfn "$program" .tools/bin/helm
