#!/usr/bin/env bash
# Builds the servers of a real mesh and links them into .tools/bin: ci/mesh.sh NAME...
#
# NAME is etcd, kube-apiserver, kube-controller-manager, pilot-discovery, pilot-agent or istioctl.
# They are built with Go from the modules that ci/mesh/go.mod pins and go.sum checks, unchanged; of
# Kubernetes and etcd only the main functions are ours. What they are told in a cluster comes from the
# same modules: the definitions of Istio's and the Gateway API's kinds, and the proxy's bootstrap, in
# .tools/mesh. All is kept in a cache outside the clone (${TIDEGATE_CACHE:-~/.cache/tidegate}) under the
# hash of what it is made from, so that with a filled cache Go is not needed at all. A file in the cache
# is complete or not there, because it gets its name last.
#
# With --cached before the names nothing is built: whether all of them are in the cache is the exit code.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/go.sh

sources=ci/mesh
version_of() { awk -v module="$1" '$1 == module {print $2; exit}' "$sources/go.mod"; }

kubernetes=$(version_of k8s.io/kubernetes)
istio=$(version_of istio.io/api)
[ -n "$kubernetes" ] && [ -n "$istio" ] || fail "$sources/go.mod names no version of k8s.io/kubernetes or istio.io/api"
IFS=. read -r major minor _ <<<"${kubernetes#v}"
IFS=. read -r istio_major istio_minor _ <<<"${istio#v}"
# Linked in, because a library does not know its version and both servers tell theirs to clients. Not
# an official build of Istio: some of its dependencies are required at other versions by Kubernetes.
stamps="-X k8s.io/component-base/version.gitVersion=$kubernetes"
stamps+=" -X k8s.io/component-base/version.gitMajor=$major -X k8s.io/component-base/version.gitMinor=$minor"
stamps+=" -X istio.io/istio/pkg/version.buildVersion=$istio_major.$istio_minor-dev"

key=$({ cat "$sources"/go.mod "$sources"/go.sum "$sources"/*/main.go && echo "$stamps $(uname -sm)"; } | sha256sum)
cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
home=$cache/mesh-${key:0:12}
staging=
trap '[ -z "$staging" ] || rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM HUP

# The package that a binary is made from.
package_of() {
    case $1 in
    etcd | kube-apiserver | kube-controller-manager) echo "./$1" ;;
    pilot-discovery | pilot-agent) echo "istio.io/istio/pilot/cmd/$1" ;;
    istioctl) echo "istio.io/istio/istioctl/cmd/istioctl" ;;
    *) fail "no server is named $1" \
        "expected etcd, kube-apiserver, kube-controller-manager, pilot-discovery, pilot-agent or istioctl" ;;
    esac
}

go_in_sources() { (cd "$sources" && CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly go "$@"); }

stage() {
    [ -z "$staging" ] || return 0
    need_go "$sources" "Kubernetes and Istio"
    mkdir -p "$home/bin"
    staging=$(mktemp -d "$cache/.mesh.XXXXXX")
}

build() {
    local started=$SECONDS names="$*" packages=() name
    stage
    for name; do packages+=("$(package_of "$name")"); done
    say "building $names with $(cd "$sources" && go env GOVERSION): minutes, once"
    mkdir "$staging/bin"
    go_in_sources build -trimpath -ldflags "-s -w $stamps" -o "$staging/bin/" "${packages[@]}" ||
        fail "go could not build $names" "its message stands above"
    for name; do mv -f "$staging/bin/$name" "$home/bin/$name"; done
    say "built $names in $((SECONDS - started)) s"
}

# The folder of a module in Go's cache, fetched and checked if need be.
folder_of() {
    go_in_sources mod download -json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])' ||
        fail "go could not fetch the module $1"
}

files() {
    local folder
    stage
    mkdir "$staging/files"
    folder=$(folder_of istio.io/api)
    cp "$folder/kubernetes/customresourcedefinitions.gen.yaml" "$staging/files/istio.yaml"
    folder=$(folder_of sigs.k8s.io/gateway-api)
    awk 'FNR == 1 {print "---"} {print}' "$folder"/config/crd/standard/*_*.yaml >"$staging/files/gateway-api.yaml"
    if [ "$1" = agent ]; then
        folder=$(folder_of istio.io/istio)
        cp "$folder/tools/packaging/common/envoy_bootstrap.json" "$staging/files/"
    fi
    mkdir -p "$home/files"
    chmod u+w "$staging"/files/*
    mv -f "$staging"/files/* "$home/files/"
}

is_asked=
if [ "${1-}" = --cached ]; then is_asked=yes && shift; fi
[ $# -gt 0 ] || fail "nothing to build: name one or more servers"
missing=()
wants=plain
for name; do
    package_of "$name" >/dev/null
    [ -x "$home/bin/$name" ] || missing+=("$name")
    [ "$name" != pilot-agent ] || wants=agent
done
if [ -n "$is_asked" ]; then
    [ ${#missing[@]} = 0 ]
    exit
fi
[ ${#missing[@]} = 0 ] || build "${missing[@]}"
if [ ! -f "$home/files/gateway-api.yaml" ] || { [ $wants = agent ] && [ ! -f "$home/files/envoy_bootstrap.json" ]; }; then
    files $wants
fi

mkdir -p .tools/bin
for name; do ln -sfn "$home/bin/$name" ".tools/bin/$name"; done
ln -sfn "$home/files" .tools/mesh
say "Kubernetes $kubernetes, Istio $istio_major.$istio_minor: $* in .tools/bin"
