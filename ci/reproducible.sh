#!/usr/bin/env bash
# Builds the module in two folders with two caches of crates' sources, and compares the bytes.
#
# With it, a user of a release can check that its module comes from these sources. It builds what is committed, and names the
# commit as a release does.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/version.sh

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'exit 130' INT TERM HUP

TIDEGATE_VERSION=$(module_version "$(git rev-parse HEAD)")
export TIDEGATE_VERSION
for clone in "$place/one" "$place/a second/place"; do
    mkdir -p "$clone"
    git archive HEAD | tar -x -C "$clone"
    "$clone/ci/rust.sh"
    CARGO_HOME="$clone/cargo-home" CARGO_TARGET_DIR="$clone/target" "$clone/ci/filter.sh" release >&2
done
cmp "$place/one/dist/tidegate.wasm" "$place/a second/place/dist/tidegate.wasm" ||
    fail "the same sources gave two modules"
say "the same bytes from two folders: $(sha256sum <"$place/one/dist/tidegate.wasm" | cut -c1-64)"
