#!/usr/bin/env bash
# Publishes dist/release, signed: ci/release/publish.sh
#
# Runs in the workflow of releases, where cosign gets a certificate for the workflow itself (keyless): nobody keeps a key. Images and
# chart go to the registry. Each is signed by digest, and so is a statement of what it was made from; the list of what is in an image is
# bound to the image that it is about, for each architecture. SHA256SUMS is signed, which stands for all files; then all becomes a
# release of the tag. GH_TOKEN and REGISTRY_USER may write to the repository and the registry.
#
# A run that failed can be repeated from its start. The release is a draft until it has all its files, and is not changed afterwards.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/say.sh
. ci/release.env

version=$(awk -F '"' '/^version *=/ {print $2; exit}' Cargo.toml)
ci/release/publishable.sh "v$version"
ci/manifests-tools.sh crane
printf '%s' "$GH_TOKEN" | .tools/bin/crane auth login "${RELEASE_REGISTRY%%/*}" --username "$REGISTRY_USER" --password-stdin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# Into a file first: the end of a loop over its output would not tell that the push failed.
ci/release/push.sh >"$work/pushed"
ci/release/predicate.py dist/release/provenance.json >"$work/predicate.json"

# attest TYPE FILE IMAGE
attest() { cosign attest --yes --type "$1" --predicate "$2" "$3" </dev/null; }
# Without input: what cosign reads would be missing in the loop.
while read -r image; do
    cosign sign --yes --recursive "$image" </dev/null
    attest slsaprovenance1 "$work/predicate.json" "$image"
    case $image in
    "$RELEASE_REGISTRY"/filter@*) attest cyclonedx "dist/release/tidegate-filter-$version.cdx.json" "$image" ;;
    # An index of two images, and a list for each.
    "$RELEASE_REGISTRY"/control@*)
        for arch in amd64 arm64; do
            digest=$(.tools/bin/crane digest --platform "linux/$arch" "$image")
            attest cyclonedx "dist/release/tidegate-control-$version-$arch.cdx.json" "${image%@*}@$digest"
            attest slsaprovenance1 "$work/predicate.json" "${image%@*}@$digest"
        done
        ;;
    esac
done <"$work/pushed"

# Of all releases, because asking for one fails alike without it and without an answer.
draft=$(gh release list --limit 1000 --json tagName,isDraft --jq ".[] | select(.tagName == \"v$version\") | .isDraft")
if [ "$draft" = false ]; then
    say "the release v$version stands already with all its files"
    exit
fi
cosign sign-blob --yes --bundle dist/release/SHA256SUMS.sigstore.json dist/release/SHA256SUMS </dev/null
if [ -z "$draft" ]; then
    awk -v version="$version" '/^## / {inside = index($0, version) > 0; next} inside' CHANGELOG.md >"$work/notes"
    gh release create "v$version" --draft --verify-tag --title "Tidegate $version" --notes-file "$work/notes"
fi
gh release upload "v$version" --clobber dist/release/*
gh release edit "v$version" --draft=false
say "published $RELEASE_SOURCE_URL/releases/tag/v$version"
