#!/usr/bin/env bash
# Measures which lines of core its tests run, and fails below the share that is asked for.
#
# cargo-llvm-cov is built from source, from its own lock file, into a cache outside the clone
# (${TIDEGATE_CACHE:-~/.cache/tidegate}); llvm-tools come with the pinned toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/versions.env

cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
home=$cache/cargo-llvm-cov-$CARGO_LLVM_COV_VERSION
staging=
trap '[ -z "$staging" ] || rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM HUP

if [ ! -x "$home/bin/cargo-llvm-cov" ]; then
    say "building cargo-llvm-cov $CARGO_LLVM_COV_VERSION"
    mkdir -p "$cache"
    staging=$(mktemp -d "$cache/.cargo-llvm-cov.XXXXXX")
    CARGO_TARGET_DIR="$staging/target" cargo install --locked --quiet "cargo-llvm-cov@$CARGO_LLVM_COV_VERSION" \
        --root "$staging/home" >&2 || fail "cargo-llvm-cov $CARGO_LLVM_COV_VERSION could not be built"
    mv -T "$staging/home" "$home" 2>/dev/null || [ -x "$home/bin/cargo-llvm-cov" ] || fail "could not create $home"
fi
rustup component add llvm-tools >&2 || fail "rustup could not add llvm-tools"
PATH=$home/bin:$PATH cargo llvm-cov --locked --package tidegate-core --summary-only \
    --ignore-filename-regex '/(tests?|testing)(\.rs|/)' --fail-under-lines 95
