#!/usr/bin/env bash
# Asks Go's vulnerability database about every tool that ci/ builds with Go: ci/govulncheck.sh [FOLDER...]
#
# None of them ships: they are load generators, the servers of the test mesh, and what checks manifests. Only what a tool
# calls counts, not what its modules hold besides. govulncheck itself is built from the module that ci/vuln/go.mod pins
# and go.sum checks. It needs the network, because the database changes from day to day; so it is asked for by name, as
# the advisories of ci/deny.sh are. Ends with `N passed, N failed`, one for each folder.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/go.sh

# folder: the packages that are built from it (ci/load.sh, ci/mesh.sh, ci/manifests-tools.sh, ci/prometheus.sh, ci/compose.sh,
# ci/workflows.sh, ci/helm.sh)
declare -A packages=(
    [ci/actionlint]=github.com/rhysd/actionlint/cmd/actionlint
    [ci/compose]=.
    [ci/helm]=helm.sh/helm/v4/cmd/helm
    [ci/load/fortio]=fortio.org/fortio
    [ci/load/k6]=go.k6.io/k6
    [ci/manifests]='./chart ./schemas github.com/google/go-containerregistry/cmd/crane github.com/yannh/kubeconform/cmd/kubeconform sigs.k8s.io/kustomize/kustomize/v5'
    [ci/mesh]='./etcd ./kube-apiserver ./kube-controller-manager istio.io/istio/pilot/cmd/pilot-discovery istio.io/istio/pilot/cmd/pilot-agent istio.io/istio/istioctl/cmd/istioctl'
    [ci/prometheus]='github.com/prometheus/prometheus/cmd/prometheus github.com/prometheus/prometheus/cmd/promtool'
    [ci/vuln]=golang.org/x/vuln/cmd/govulncheck
)
declare -A tags=([ci/prometheus]=remove_all_sd)

while read -r file; do
    [ -v "packages[${file%/go.mod}]" ] || fail "$file is new: say in ci/govulncheck.sh what is built from it"
done < <(git ls-files --cached --others --exclude-standard -- '*go.mod')

[ $# -gt 0 ] || mapfile -t folders < <(printf '%s\n' "${!packages[@]}" | sort)
[ $# = 0 ] || folders=("$@")
need_go ci/vuln govulncheck
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
export CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly
(cd ci/vuln && go build -trimpath -o "$work/govulncheck" golang.org/x/vuln/cmd/govulncheck) || fail "go could not build govulncheck"

passed=0 failed=0
for folder in "${folders[@]}"; do
    [ -v "packages[$folder]" ] || fail "nothing is built from $folder" "expected one of ${!packages[*]}"
    say "$folder"
    read -ra of <<<"${packages[$folder]}"
    if "$work/govulncheck" -C "$folder" -tags "${tags[$folder]-}" "${of[@]}"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
