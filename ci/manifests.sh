#!/usr/bin/env bash
# Writes what is generated in manifests/, or checks all that a cluster is told: ci/manifests.sh write|check
#
# The chart (manifests/chart/tidegate) is the only source of the control service's objects: kustomize's base
# is rendered from it, and each overlay must build to the very objects that the chart renders with the values
# of the same name. Everything in manifests/ and examples/, and the objects in dashboards/access-log, is held against the schemas of its kinds, every
# configuration of the filter against the filter's own reader, and all of Istio's against istioctl, if that
# is in the cache (ci/mesh.sh istioctl).
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

chart=manifests/chart/tidegate
kustomize=manifests/kustomize
policies=manifests/policies
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

template() { .tools/bin/chart template "$@"; }

# generated FILE COMMAND...: FILE in the staging folder, with a line that says where it comes from.
generated() {
    mkdir -p "$(dirname "$work/new/$1")"
    { echo "# Generated from $chart by \`make manifests\`. Do not edit." && "${@:2}"; } >"$work/new/$1"
}

# An older release of Istio has WasmPlugin, which takes the same without the level `wasm`.
as_wasm_plugin() {
    awk -v source="$1" '
        NR == 1 {print "# Generated from " source " by `make manifests`. Do not edit.\n#"}
        /^kind: TrafficExtension$/ {print "kind: WasmPlugin"; next}
        /^  wasm:$/ {inside = 1; next}
        inside {sub(/^  /, "")}
        {print}' "$1"
}

generate() {
    local file
    template "$chart" "$chart/ci/cluster-values.yaml" >"$work/cluster.yaml"
    generated $kustomize/base/namespace.yaml template -only Namespace "$chart" "$chart/ci/cluster-values.yaml"
    generated $kustomize/base/control.yaml \
        template -except Namespace,CustomResourceDefinition "$chart" "$chart/ci/cluster-values.yaml"
    # Of what an overlay adds: the objects that the base does not have.
    generated $kustomize/components/namespaced/role.yaml \
        template -beyond "$work/cluster.yaml" "$chart" "$chart/ci/namespaced-values.yaml"
    generated $kustomize/components/cert-manager/certificate.yaml \
        template -beyond "$work/cluster.yaml" "$chart" "$chart/ci/with-certmanager-values.yaml"
    generated $kustomize/components/service-monitor/servicemonitor.yaml \
        template -beyond "$work/cluster.yaml" "$chart" "$chart/ci/with-servicemonitor-values.yaml"
    for file in "$policies"/traffic-extension/*.yaml; do
        mkdir -p "$work/new/$policies/wasm-plugin"
        as_wasm_plugin "$file" >"$work/new/$policies/wasm-plugin/${file##*/}"
    done
}

write() {
    local file
    (cd "$work/new" && find . -type f -printf '%P\n' | sort) | while read -r file; do
        cmp -s "$work/new/$file" "$file" || { mkdir -p "$(dirname "$file")" && cp "$work/new/$file" "$file" && say "wrote $file"; }
    done
}

fresh() {
    local file stale=0
    while read -r file; do
        diff -u --label "$file" --label "as $chart says" "$file" "$work/new/$file" >&2 || stale=1
    done < <(cd "$work/new" && find . -type f -printf '%P\n' | sort)
    [ $stale = 0 ] || fail "generated files are out of date" "make manifests writes them anew"
}

charts() {
    local values name
    for values in "$chart"/ci/*-values.yaml; do
        name=$(basename "$values" -values.yaml)
        .tools/bin/chart lint "$chart" "$values" || fail "the chart with $values is not in order"
        template "$chart" "$values" >"$work/chart-$name.yaml"
    done
    # What the chart's schema is for: a wrong value must not pass.
    for values in 'scope: everywhere' 'replica: 3' 'xds: {enabled: true}' 'module: {sha256: ""}' 'leaseDuration: soon' \
        'module: {url: "http://user@example.com/tidegate.wasm", sha256: ""}' 'module: {url: "oci://example.com/it'\''s"}' \
        'module: {versions: {canary: {url: "oci://example.com/tidegate:2"}}}' 'disabled: maybe' 'podMonitor: {enabled: often}' \
        'dashboard: {label: x}' 'resources: {limit: {memory: 1Gi}}' 'resources: {limits: {memory: much}}'; do
        echo "$values" >"$work/wrong.yaml"
        ! template "$chart" "$chart/ci/cluster-values.yaml" "$work/wrong.yaml" >/dev/null 2>&1 ||
            fail "the chart takes a wrong value: $values"
    done
}

overlays() {
    local folder name
    for folder in "$kustomize"/overlays/*; do
        name=${folder##*/}
        .tools/bin/kustomize build "$folder" >"$work/kustomize-$name.yaml"
        .tools/bin/chart same "$work/kustomize-$name.yaml" "$work/chart-$name.yaml" ||
            fail "$folder is not what the chart renders with $chart/ci/$name-values.yaml"
    done
    for folder in $(git ls-files --cached --others --exclude-standard 'examples/**/kustomization.yaml'); do
        folder=${folder%/*}
        .tools/bin/kustomize build "$folder" >"$work/kustomize-${folder//\//-}.yaml"
    done
}

# Files with objects of Kubernetes: those that name a version of an API (Grafana's say a number), but for kustomize's.
objects() {
    git ls-files -z --cached --others --exclude-standard 'manifests/*.yaml' 'examples/*.yaml' |
        xargs -0 grep -lE '^apiVersion: [a-z]' | grep -vE '/(kustomization|Chart)\.yaml$|/templates/'
}

schemas() {
    local files
    mkdir "$work/schemas"
    .tools/bin/schemas "$work/schemas" manifests/crd.yaml >/dev/null
    ci/access_log.py Telemetry >"$work/access-log-telemetry.yaml"
    ci/access_log.py EnvoyProxy >"$work/access-log-envoy-proxy.yaml"
    mapfile -t files < <(objects)
    .tools/bin/kubeconform -strict -summary \
        -schema-location "$work/schemas/{{.ResourceKind}}_{{.Group}}_{{.ResourceAPIVersion}}.json" \
        -schema-location ".tools/schemas/{{.ResourceKind}}_{{.Group}}_{{.ResourceAPIVersion}}.json" \
        "$work"/chart-*.yaml "$work"/kustomize-*.yaml "$work"/access-log-*.yaml "${files[@]}" >&2 || fail "not what the definitions of these kinds take"
}

# Every configuration of the filter, and every policy, by the reader that runs in the filter.
configurations() {
    local files
    mapfile -t files < <(objects)
    .tools/bin/chart configurations "${files[@]}" >"$work/configurations.yaml"
    tidegate validate "$work/configurations.yaml" >&2 ||
        fail "not what the filter takes" "the name of each policy above says the file"
}

# Without --package, so that dependencies have the features that the tests compiled them with.
tidegate() { cargo run --locked --quiet --bin tidegate -- "$@"; }

# The policies of examples/migration are what the command makes of the rule beside them.
migration() {
    local mode
    for mode in sidecar waypoint; do
        tidegate migrate examples/migration/destination-rule.yaml --mode "$mode" --replicas 5 --clients 10 \
            --waypoint-replicas 1 --latency 250ms >"$work/$mode.yaml"
        diff -u examples/migration/$mode.yaml "$work/$mode.yaml" >&2 ||
            fail "examples/migration/$mode.yaml is not what tidegate migrate makes of destination-rule.yaml"
    done
}

istio() {
    local files
    if ! ci/mesh.sh --cached istioctl; then
        say "istioctl is not built: Istio's own check is left out (ci/mesh.sh istioctl)"
        return 0
    fi
    ci/mesh.sh istioctl
    mapfile -t files < <(objects | xargs grep -lE '^apiVersion: (extensions|networking|security|telemetry)\.istio\.io/')
    .tools/bin/istioctl validate "${files[@]/#/--filename=}" "--filename=$work/access-log-telemetry.yaml" >&2 || fail "not what Istio takes"
}

ci/manifests-tools.sh chart kubeconform kustomize schemas
case ${1-} in
write)
    generate
    write
    ;;
check)
    generate
    fresh
    charts
    overlays
    ci/rights.py
    schemas
    configurations
    migration
    istio
    say "manifests and examples are what their readers take"
    ;;
*) fail "found '${1-}', expected write or check" ;;
esac
