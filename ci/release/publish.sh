#!/usr/bin/env bash
# Publishes dist/release, signed: ci/release/publish.sh
#
# Runs in the workflow of releases, where cosign gets a certificate for the workflow itself (keyless): nobody keeps a key. Images and
# chart go to the registry and are signed by digest; the lists of what is in the images are bound to them; SHA256SUMS is signed, which
# stands for all files; then all becomes a release of the tag. GH_TOKEN and REGISTRY_USER may write to the repository and the registry.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/say.sh
. ci/release.env

version=$(awk -F '"' '/^version *=/ {print $2; exit}' Cargo.toml)
ci/release/publishable.sh "v$version"
ci/manifests-tools.sh crane
printf '%s' "$GH_TOKEN" | .tools/bin/crane auth login "${RELEASE_REGISTRY%%/*}" --username "$REGISTRY_USER" --password-stdin

list_of() {
    case $1 in
    "$RELEASE_REGISTRY"/filter@*) echo "dist/release/tidegate-filter-$version.cdx.json" ;;
    # The libraries are the same for both architectures; the list of each is a file of the release.
    "$RELEASE_REGISTRY"/control@*) echo "dist/release/tidegate-control-$version-amd64.cdx.json" ;;
    esac
}
while read -r image; do
    cosign sign --yes --recursive "$image"
    list=$(list_of "$image")
    [ -z "$list" ] || cosign attest --yes --type cyclonedx --predicate "$list" "$image"
done < <(ci/release/push.sh)

cosign sign-blob --yes --bundle dist/release/SHA256SUMS.sigstore.json dist/release/SHA256SUMS
notes=$(mktemp)
trap 'rm -f "$notes"' EXIT
awk -v version="$version" '/^## / {inside = index($0, version) > 0; next} inside' CHANGELOG.md >"$notes"
gh release create "v$version" --verify-tag --title "Tidegate $version" --notes-file "$notes" dist/release/*
say "published $RELEASE_SOURCE_URL/releases/tag/v$version"
