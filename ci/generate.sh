#!/usr/bin/env bash
# Writes the references in docs/ that are made from the code; with --check only compares them.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
# What the service's settings say must not depend on whose shell this is.
unset "${!TIDEGATE_@}"

# file: the example (or, as bin/NAME, the binary) that prints it, and what it is asked for
generated=(
    "docs/configuration.md: reference configuration"
    "docs/control-metrics.md: policies metrics"
    "docs/metrics.md: metrics reference"
    "docs/policy.md: policies reference"
    "docs/settings.yaml: bin/tidegate serve --print-settings"
    "dashboards/stats-tags/envoy.yaml: metrics envoy"
    "dashboards/stats-tags/istio-mesh.yaml: metrics istio-mesh"
    "dashboards/stats-tags/istio-pod.yaml: metrics istio-pod"
    "advise/tests/promtool/rules.yaml: score_queries"
    "advise/schemas/analyze.json: advice_schemas analyze"
    "advise/schemas/recommend.json: advice_schemas recommend"
    "graph/schema.json: graph_schema"
    "graph/tests/promtool/rules.yaml: graph_queries"
    "manifests/crd.yaml: policies crd"
    "manifests/kustomize/base/crd.yaml: policies crd"
)

check=${1-}
[ -z "$check" ] || [ "$check" = --check ] || fail "unknown option $check" "usage: ci/generate.sh [--check]"
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT

programs=()
for entry in "${generated[@]}"; do
    read -ra words <<<"${entry#*: }"
    case ${words[0]} in
    bin/*) programs+=(--bin "${words[0]#bin/}") ;;
    *) programs+=(--example "${words[0]}") ;;
    esac
done
# Without --package, so that dependencies have the features that the tests compiled them with.
cargo build --locked --quiet "${programs[@]}"

stale=0
for entry in "${generated[@]}"; do
    file=${entry%%:*}
    read -ra words <<<"${entry#*: }"
    case ${words[0]} in
    bin/*) program=${words[0]#bin/} ;;
    *) program=examples/${words[0]} ;;
    esac
    "${CARGO_TARGET_DIR:-target}/debug/$program" "${words[@]:1}" >"$fresh"
    if [ -z "$check" ]; then
        cmp -s "$fresh" "$file" || { cat "$fresh" >"$file" && say "wrote $file"; }
    elif ! diff -u --label "$file" --label "as the code says" "$file" "$fresh" >&2; then
        stale=1
    fi
done
[ "$stale" = 0 ] || fail "generated files are out of date" "make docs writes them anew"
[ -z "$check" ] || say "${#generated[@]} generated files are up to date"
