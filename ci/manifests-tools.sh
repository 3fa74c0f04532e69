#!/usr/bin/env bash
# Builds what checks and ships manifests, and links it into .tools: ci/manifests-tools.sh NAME...
#
# NAME is chart, crane, kubeconform, kustomize, or schemas: the JSON schemas of all kinds that occur in
# manifests/ and examples/, in .tools/schemas. They are built with Go from the modules that
# ci/manifests/go.mod pins and go.sum checks; the definitions of kinds come from the modules of those who
# make them. All is kept in a cache outside the clone (${TIDEGATE_CACHE:-~/.cache/tidegate}) under the hash
# of what it is made from, so that with a filled cache Go is not needed. A file in the cache is complete or
# not there, because it gets its name last.
#
# With --cached before the names nothing is built: whether all of them are in the cache is the exit code.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/versions.env

sources=ci/manifests
sums=("$ENVOY_GATEWAY_SUM" "$CERT_MANAGER_SUM" "$PROMETHEUS_OPERATOR_SUM")
hash_of() { { cat "$@" && uname -sm; } | sha256sum | cut -c1-12; }
cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
# What is built from others' sources is kept while its modules stay, our own with its sources.
home=$cache/manifests-$(hash_of "$sources/go.mod" "$sources/go.sum")
own=$cache/manifests-own-$(hash_of "$sources"/go.* "$sources"/*/*.go)
# What the chart makes for Prometheus' operator.
operator_kinds=(servicemonitors podmonitors prometheusrules)
definitions=$cache/schemas-$(hash_of "$sources"/schemas/*.go ci/mesh/go.sum <(echo "${sums[@]}" "${operator_kinds[@]}"))
staging=
trap '[ -z "$staging" ] || rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM HUP

# The package that a binary is made from.
package_of() {
    case $1 in
    chart | translate) echo "./${1/translate/schemas}" ;;
    crane) echo github.com/google/go-containerregistry/cmd/crane ;;
    kubeconform) echo github.com/yannh/kubeconform/cmd/kubeconform ;;
    kustomize) echo sigs.k8s.io/kustomize/kustomize/v5 ;;
    *) fail "no tool is named $1" "expected chart, crane, kubeconform, kustomize or schemas" ;;
    esac
}

# Where it is kept.
place_of() {
    case $1 in
    chart | translate) echo "$own/$1" ;;
    *) echo "$home/$1" ;;
    esac
}

go_in() { (cd "$1" && CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly go "${@:2}"); }

stage() {
    [ -z "$staging" ] || return 0
    local wanted
    wanted=$(awk '$1 == "go" {print $2}' "$sources/go.mod")
    command -v go >/dev/null || fail "go is not installed: Go $wanted or later builds what checks manifests" \
        "install it from https://go.dev/dl, or put go into PATH"
    mkdir -p "$home" "$own"
    staging=$(mktemp -d "$cache/.manifests.XXXXXX")
}

build() {
    local started=$SECONDS name
    stage
    for name; do
        say "building $name: once"
        go_in "$sources" build -trimpath -ldflags '-s -w' -o "$staging/$name" "$(package_of "$name")" ||
            fail "go could not build $name" "its message stands above"
        mv -f "$staging/$name" "$(place_of "$name")"
    done
    say "built $* in $((SECONDS - started)) s"
}

# field_of KEY: a field of what `go mod download -json` says.
field_of() { python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1], ""))' "$1"; }

# The folder of a module that ci/mesh pins.
mesh_folder_of() { go_in ci/mesh mod download -json "$1" | field_of Dir || fail "go could not fetch the module $1"; }

# pinned_folder_of MODULE SUM: the folder of a module that ci/versions.env pins.
pinned_folder_of() {
    local said found
    # Outside of any module, so that only its own go.sum would be asked.
    said=$(cd / && GOWORK=off GOFLAGS=-mod=mod go mod download -json "$1") || fail "go could not fetch the module $1"
    found=$(field_of Sum <<<"$said")
    [ "$found" = "$2" ] || fail "wrong checksum of the module $1" "found    $found" "expected $2 (ci/versions.env)"
    field_of Dir <<<"$said"
}

schemas() {
    local kubernetes istio gateway_api envoy_gateway cert_manager prometheus operator count
    stage
    say "fetching the definitions of all kinds"
    kubernetes=$(mesh_folder_of k8s.io/kubernetes)
    istio=$(mesh_folder_of istio.io/api)
    gateway_api=$(mesh_folder_of sigs.k8s.io/gateway-api)
    envoy_gateway=$(pinned_folder_of "$ENVOY_GATEWAY_MODULE" "$ENVOY_GATEWAY_SUM")
    cert_manager=$(pinned_folder_of "$CERT_MANAGER_MODULE" "$CERT_MANAGER_SUM")
    prometheus=$(pinned_folder_of "$PROMETHEUS_OPERATOR_MODULE" "$PROMETHEUS_OPERATOR_SUM")
    mkdir "$staging/schemas"
    operator=("${operator_kinds[@]/%/.yaml}")
    count=$("$own/translate" "$staging/schemas" \
        "$kubernetes/api/openapi-spec/swagger.json" \
        "$istio/kubernetes/customresourcedefinitions.gen.yaml" \
        "$gateway_api"/config/crd/standard/gateway.networking.k8s.io_[!v]*.yaml \
        "$envoy_gateway"/charts/gateway-helm/charts/crds/crds/generated/*.yaml \
        "$cert_manager"/deploy/crds/cert-manager.io_*.yaml \
        "${operator[@]/#/$prometheus/example/prometheus-operator-crd/monitoring.coreos.com_}")
    mv -T "$staging/schemas" "$definitions" 2>/dev/null || [ -d "$definitions" ] || fail "could not create $definitions"
    say "$count schemas"
}

is_asked=
if [ "${1-}" = --cached ]; then is_asked=yes && shift; fi
[ $# -gt 0 ] || fail "nothing to build: name one or more tools"
missing=()
wants_schemas=
for name; do
    # The schema of our own definition is made at every check.
    if [ "$name" = schemas ]; then wants_schemas=yes name=translate; fi
    package_of "$name" >/dev/null
    [ -x "$(place_of "$name")" ] || missing+=("$name")
done
if [ -n "$is_asked" ]; then
    [ ${#missing[@]} = 0 ] && { [ -z "$wants_schemas" ] || [ -d "$definitions" ]; }
    exit
fi
[ ${#missing[@]} = 0 ] || build "${missing[@]}"
[ -z "$wants_schemas" ] || [ -d "$definitions" ] || schemas

mkdir -p .tools/bin
for name; do
    if [ "$name" = schemas ]; then
        ln -sfn "$definitions" .tools/schemas
        ln -sfn "$own/translate" .tools/bin/schemas
    else
        ln -sfn "$(place_of "$name")" ".tools/bin/$name"
    fi
done
