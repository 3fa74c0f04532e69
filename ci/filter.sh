#!/usr/bin/env bash
# Builds the filter and packs it: dist/tidegate.wasm for use, dist/tidegate-test.wasm for the tests.
#
# The second has the hooks that let a test crash the VM. Both come from one target folder: cargo keeps
# the two sets of features apart and only the last one's file lies at the common name, hence the
# packing between the builds. The bytes depend on the sources and the pinned toolchain alone: the
# folders of this machine are mapped away, so that a release can be built again and compared.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

target=wasm32-wasip1
folder=${CARGO_TARGET_DIR:-target}
sysroot=$(rustc --print sysroot)
commit=$(rustc -vV | sed -n 's/^commit-hash: //p')
# The separator allows blanks in paths; of several fitting maps the last one counts.
separator=$'\x1f'
flags=--remap-path-prefix=$HOME=/home
flags+=$separator--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo
flags+=$separator--remap-path-prefix=$sysroot/lib/rustlib/src/rust=/rustc/$commit
flags+=$separator--remap-path-prefix=$PWD=/tidegate

# pack OUT FEATURES...
pack() {
    local out=$1
    shift
    CARGO_ENCODED_RUSTFLAGS=$flags cargo build --locked --profile wasm --target "$target" \
        --target-dir "$folder" -p tidegate-filter "$@"
    cargo run --locked --target-dir "$folder" -p tidegate-pack -- \
        "$folder/$target/wasm/tidegate_filter.wasm" "$out" \
        --keep ci/wasm-exports.keep --imports ci/wasm-imports.allow --max-bytes 409600
}

mkdir -p dist
pack dist/tidegate-test.wasm --features test-hooks
pack dist/tidegate.wasm

for path in "$HOME" "$PWD"; do
    # A home of / or a very short one says nothing.
    [ ${#path} -lt 4 ] || ! grep -aqF -- "$path" dist/tidegate.wasm ||
        fail "dist/tidegate.wasm names a folder of this machine: $path"
done
