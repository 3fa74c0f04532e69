#!/usr/bin/env bash
# Builds everything that a release has, in dist/release: ci/release.sh
#
# The same sources give the same bytes, whatever folder they are in (ci/release-test.sh builds twice). Without Docker, and on one
# machine for all platforms. docs/releasing.md says what each file is for. dist/release is complete or not there.
#
# TIDEGATE_COMMIT is the commit, if this is no clone of git.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/wheel.sh
. ci/versions.env
. ci/release.env
. ci/version.sh

commit=${TIDEGATE_COMMIT-}
if [ -z "$commit" ]; then
    commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
    # What is not committed cannot be built again by others.
    [ "$commit" = unknown ] || [ -z "$(git status --porcelain 2>/dev/null)" ] || commit+=-dirty
fi
# Both modules name it in their metrics.
TIDEGATE_VERSION=$(module_version "$commit")
export TIDEGATE_VERSION

mkdir -p dist
work=$(mktemp -d "$PWD/dist/.release.XXXXXX")
trap 'remove_wheel_staging; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
new=$work/release
mkdir "$new"
authorities=$(wheel certifi "$CERTIFI_VERSION" "$CERTIFI_WHEEL_SHA256")/certifi/cacert.pem

say "the module"
ci/rust.sh
ci/filter.sh release
# Another target may build dist/tidegate.wasm again meanwhile, and without the commit.
wasm=$work/tidegate.wasm
cp dist/tidegate.wasm "$wasm"
module=$(sha256sum <"$wasm")
module=${module%% *}

# A shared object is for one architecture: it takes two.
say "the native module for amd64 and arm64"
rm -f dist/libtidegate.so dist/libtidegate-{amd64,arm64}.so
ci/native.sh release other
mine=$(of_machine amd64 arm64) other=$(of_machine arm64 amd64)
mv dist/libtidegate.so "$work/libtidegate-$mine.so"
mv "dist/libtidegate-$other.so" "$work/libtidegate-$other.so"
cp "$work/libtidegate-$mine.so" dist/libtidegate.so

say "the command for amd64 and arm64"
TIDEGATE_COMMIT=$commit TIDEGATE_MODULE_SHA256=$module ci/release/programs.sh "$work/programs"

say "completions and manual pages"
tidegate=$work/programs/$mine/tidegate
share=$work/share
mkdir -p "$share"/{bash-completion/completions,zsh/site-functions,fish/vendor_completions.d,tidegate}
"$tidegate" completions bash >"$share/bash-completion/completions/tidegate"
"$tidegate" completions zsh >"$share/zsh/site-functions/_tidegate"
"$tidegate" completions fish >"$share/fish/vendor_completions.d/tidegate.fish"
"$tidegate" man "$share/man/man1"

# also NAME SOURCE SHORT: as a file of its own, and as one that the install script puts into share/tidegate.
also() {
    cp "$2" "$new/$1"
    cp "$2" "$share/tidegate/$3"
}
also "tidegate-crds-$version.yaml" manifests/crd.yaml crds.yaml
also "tidegate-dashboard-$version.json" dashboards/grafana/tidegate.json dashboard.json
also "tidegate-rules-$version.yaml" dashboards/prometheus/rules.yaml rules.yaml
cp LICENSE "$share/tidegate/LICENSE"
cp "$wasm" "$new/tidegate-$version.wasm"

for arch in amd64 arm64; do
    native=$work/libtidegate-$arch.so
    cp "$native" "$new/libtidegate-$version-linux-$arch.so"
    ci/release/archive.py "$new/tidegate-$version-linux-$arch.tar.gz" bin/tidegate="$work/programs/$arch/tidegate" \
        lib/tidegate/libtidegate.so="$native"
done
ci/release/archive.py "$new/tidegate-files-$version.tar.gz" share="$share" lib/tidegate/tidegate.wasm="$wasm"

say "images and chart"
# ci/oci.py prints a line for each layout; control and chart print a digest.
ci/oci.py "$wasm" "$version" "$work/filter" >"$work/filter.digests"
digest_of() { awk -v name="$1" '$1 == name {print $2}' "$work/filter.digests"; }
control=$(ci/release/image.py "$version" "$commit" "$authorities" "$work/control" \
    amd64="$work/programs/amd64/tidegate" arm64="$work/programs/arm64/tidegate")
chart=$(ci/release/chart.py manifests/chart/tidegate "$version" "$RELEASE_REGISTRY" "$control" "$(digest_of compat)" \
    "$new/tidegate-$version.tgz" "$work/chart")
# What stands in the registry: a name with its tag, and the digest.
cat >"$new/digests" <<END
filter:$version $(digest_of compat)
filter:$version-artifact $(digest_of artifact)
control:$version $control
charts/tidegate:$version $chart
END
layout() { ci/release/archive.py "$new/tidegate-$1-$version.oci.tar" .="$2"; }
layout filter "$work/filter/compat"
layout filter-artifact "$work/filter/artifact"
layout control "$work/control"
layout chart "$work/chart"

say "lists of what is in them"
ci/sbom.py filter "$wasm" "$new/tidegate-filter-$version.cdx.json"
for arch in amd64:x86_64 arm64:aarch64; do
    name=${arch%:*} machine=${arch#*:}
    ci/sbom.py native "$machine-unknown-linux-gnu" "$work/libtidegate-$name.so" "$new/tidegate-native-$version-$name.cdx.json"
    ci/sbom.py release "$machine-unknown-linux-musl" "$work/programs/$name/tidegate" "$new/tidegate-control-$version-$name.cdx.json"
done

sum_of() { sha256sum <"$new/$1" | cut -c1-64; }
sed -e "s|@VERSION@|$version|; s|@DOWNLOAD@|$RELEASE_DOWNLOAD_URL/v$version|" \
    -e "s|@SUM_AMD64@|$(sum_of "tidegate-$version-linux-amd64.tar.gz")|" \
    -e "s|@SUM_ARM64@|$(sum_of "tidegate-$version-linux-arm64.tar.gz")|" \
    -e "s|@SUM_FILES@|$(sum_of "tidegate-files-$version.tar.gz")|" ci/release/install.sh >"$new/install.sh"
! grep -n '@[A-Z_0-9]*@' "$new/install.sh" >&2 || fail "the install script has a placeholder left"
chmod 755 "$new/install.sh"

ci/release/provenance.py "$version" "$commit" "$new" "$new/provenance.json"
(cd "$new" && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
rm -rf dist/release
mv -T "$new" dist/release
say "dist/release: Tidegate $version, commit $commit, $(find dist/release -type f | wc -l) files"
