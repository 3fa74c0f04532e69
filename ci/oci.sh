#!/usr/bin/env bash
# Packs dist/tidegate.wasm as OCI images in out/oci, with the list of what it is made of
# (out/oci/tidegate.cdx.json, CycloneDX), and pushes the images: ci/oci.sh [push REPOSITORY]
#
# REPOSITORY is where to, registry and name: registry.example.com/tidegate/filter. The image in the layout
# that every registry takes gets the version as its tag, the other one the version and `-artifact`
# (ci/oci.py). Printed is what goes into a TrafficExtension or WasmPlugin, and what cosign signs.
#
# Credentials are those of `docker login` or `crane auth login`.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

version=$(awk -F '"' '/^version *=/ {print $2; exit}' Cargo.toml)
[ -n "$version" ] || fail "Cargo.toml names no version of the workspace"
mkdir -p out/oci
ci/oci.py dist/tidegate.wasm "$version" out/oci >out/oci/digests
ci/sbom.py filter dist/tidegate.wasm out/oci/tidegate.cdx.json
module=$(sha256sum <dist/tidegate.wasm)
say "dist/tidegate.wasm sha256:${module%% *}"

while read -r name digest; do say "out/oci/$name $digest"; done <out/oci/digests
[ "${1-}" = push ] || { [ $# = 0 ] && exit 0 || fail "found '$1', expected push REPOSITORY"; }

repository=${2-}
[[ $repository =~ ^[^/[:space:]]+/[^[:space:]:@]+$ ]] || fail "found the repository '$repository'" \
    "expected a registry and a name, such as registry.example.com/tidegate/filter, without a tag"
ci/manifests-tools.sh crane
while read -r name digest; do
    tag=$version
    [ "$name" = compat ] || tag=$version-$name
    .tools/bin/crane push "out/oci/$name" "$repository:$tag" >/dev/null || fail "could not push to $repository:$tag"
    # What stands there now is asked, not assumed.
    found=$(.tools/bin/crane digest "$repository:$tag")
    [ "$found" = "$digest" ] || fail "$repository:$tag has another digest than what was pushed" \
        "found    $found" "expected $digest"
    say "pushed $repository:$tag"
    [ "$name" = compat ] || continue
    printf 'url: oci://%s:%s\nsha256: %s\n' "$repository" "$tag" "${digest#sha256:}"
    say "to sign it: cosign sign $repository@$digest"
    say "to bind the list to it: cosign attest --type cyclonedx --predicate out/oci/tidegate.cdx.json $repository@$digest"
done <out/oci/digests
