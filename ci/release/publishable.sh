#!/usr/bin/env bash
# Whether this may be published as a tag: ci/release/publishable.sh TAG
#
# The names in ci/release.env must be those of a home, the tag and the chart must have the version of Cargo.toml, and the changelog
# must have a section for it. README.md, which nothing generates, must no longer say that there is no release.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/say.sh
. ci/release.env

[ $# = 1 ] || fail "found $# words" "usage: ci/release/publishable.sh TAG"
version=$(awk -F '"' '/^version *=/ {print $2; exit}' Cargo.toml)
[ "$1" = "v$version" ] || fail "the tag is not the version of Cargo.toml" "found    $1" "expected v$version"
for name in RELEASE_SOURCE_URL RELEASE_REGISTRY RELEASE_SITE_URL; do
    [[ ${!name} != *example* ]] || fail "ci/release.env still names a placeholder" "$name is ${!name}"
done
for key in version appVersion; do
    grep -qx "$key: $version" manifests/chart/tidegate/Chart.yaml || fail "Chart.yaml has another $key than $version"
done
grep -q "^## \[\?$version" CHANGELOG.md || fail "CHANGELOG.md has no section for $version"
# Lines may break within.
! tr '\n' ' ' <README.md | grep 'published yet' >/dev/null || fail "README.md still says that nothing is published"
say "$1 may be published as $RELEASE_SOURCE_URL"
