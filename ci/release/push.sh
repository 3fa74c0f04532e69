#!/usr/bin/env bash
# Pushes images and chart of a release, dist/release or TIDEGATE_RELEASE, to a registry: ci/release/push.sh [REGISTRY]
#
# REGISTRY is where to, registry and name, such as ghcr.io/somebody/tidegate; that of ci/release.env if it is not given. What stands
# there afterwards is asked, not assumed. Printed is a line for each: its name in the registry, with its digest, which is what cosign
# signs. Credentials are those of `docker login` or `crane auth login`.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/say.sh
. ci/release.env

registry=${1-$RELEASE_REGISTRY}
[[ $registry =~ ^[^/[:space:]]+/[^[:space:]:@]+$ ]] || fail "found the registry '$registry'" \
    "expected a registry and a name, such as ghcr.io/somebody/tidegate, without a tag"
release=${TIDEGATE_RELEASE:-dist/release}
[ -f "$release/digests" ] || fail "there is no $release" "make release builds it"
ci/manifests-tools.sh crane
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

while read -r name digest; do
    version=${name#*:}
    case $name in
    filter:*-artifact) file=tidegate-filter-artifact-${version%-artifact}.oci.tar ;;
    charts/tidegate:*) file=tidegate-chart-$version.oci.tar ;;
    *) file=tidegate-${name%:*}-$version.oci.tar ;;
    esac
    mkdir "$work/$file"
    tar -xf "$release/$file" -C "$work/$file"
    .tools/bin/crane push "$work/$file" "$registry/$name" >/dev/null || fail "could not push to $registry/$name"
    found=$(.tools/bin/crane digest "$registry/$name")
    [ "$found" = "$digest" ] || fail "$registry/$name has another digest than what was pushed" \
        "found    $found" "expected $digest"
    say "pushed $registry/$name"
    echo "$registry/${name%:*}@$digest"
done <"$release/digests"
