#!/usr/bin/env bash
# Builds the playground: ci/playground.sh [FOLDER], out/playground if none is named.
#
# The laboratory is compiled for browsers, and ci/bindgen writes the JavaScript that loads it. Then the page is laid beside it, as it
# is in playground/web/. The folder needs no server of its own kind: any that serves files will do. Fails where a library
# is not the one of ci/versions.env, or the page has become too large.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/versions.env

out=${1:-out/playground}
target=wasm32-unknown-unknown
folder=${CARGO_TARGET_DIR:-target}
max_bytes=1572864 # 1.5 MB, compressed

# Only the playground needs this target, so that it is none of rust-toolchain.toml.
channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
rustup target list --installed --toolchain "$channel" | grep -qx "$target" ||
    rustup target add "$target" --toolchain "$channel" >&2

check() {
    local found
    found=$(sha256sum <"playground/web/vendor/$1" | cut -c1-64)
    [ "$found" = "$2" ] || fail "playground/web/vendor/$1 is not that of uPlot $UPLOT_VERSION" \
        "found    $found" "expected $2 (ci/versions.env)"
}
check uPlot.iife.min.js "$UPLOT_SCRIPT_SHA256"
check uPlot.min.css "$UPLOT_STYLE_SHA256"

# Without the folders of this machine, as in ci/filter.sh.
separator=$'\x1f'
flags=--remap-path-prefix=$HOME=/home
flags+=$separator--remap-path-prefix=$PWD=/tidegate
flags+=$separator--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo
CARGO_ENCODED_RUSTFLAGS=$flags cargo rustc --locked --profile playground --target "$target" \
    -p tidegate-playground --lib --crate-type cdylib --target-dir "$folder"
CARGO_TARGET_DIR=$folder/bindgen cargo build --locked --quiet --manifest-path ci/bindgen/Cargo.toml

staging=$(mktemp -d)
trap 'rm -rf "$staging"' EXIT
cp -r playground/web/. "$staging"
"$folder/bindgen/debug/tidegate-bindgen" "$folder/$target/playground/tidegate_playground.wasm" "$staging"
# What the page keeps for reloads without a network: all of its files, under a name that changes with each of them.
files=$(cd "$staging" && find . -type f ! -name offline.js | sed 's|^\./||' | LC_ALL=C sort)
version=$(cd "$staging" && xargs -d '\n' sha256sum <<<"$files" | sha256sum | cut -c1-16)
sed -i "s|@VERSION@|$version|; s|@FILES@|$(paste -sd ' ' <<<"$files")|" "$staging/offline.js"
chmod -R u=rwX,go=rX "$staging"
mkdir -p "$out"
find "$out" -mindepth 1 -delete
cp -r "$staging/." "$out"

bytes=0
while read -r file; do
    bytes=$((bytes + $(gzip -9 -c "$file" | wc -c)))
done < <(find "$out" -type f)
[ "$bytes" -le "$max_bytes" ] || fail "the playground has $bytes bytes, compressed: at most $max_bytes are allowed"
say "$out: $bytes bytes, compressed"
