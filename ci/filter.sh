#!/usr/bin/env bash
# Builds the filter and packs it: ci/filter.sh [compile] [compile-test] [release] [test], the last two if none is named.
#
# `release` is dist/tidegate.wasm, for use. `test` is dist/tidegate-test.wasm, for the tests: it has the
# hooks that let a test crash the VM, and the names of its functions. It has its own target folder,
# because both modules have one file name there and would replace each other, to be compiled anew by
# every call. `compile` only compiles what `release` packs, and `compile-test` what `test` packs, for callers that compile
# other things meanwhile; PACKER names another packer than the one of profile `dev`. TIDEGATE_VERSION is what the module
# calls itself, in a release with the commit (ci/version.sh). The bytes depend on that, the sources and the pinned toolchain
# alone: the folders of this machine are mapped away, so that a release can be built again and compared.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

max_bytes=409600      # 400 KiB
max_test_bytes=458752 # 448 KiB: with the hooks of tests, which no release has
target=wasm32-wasip1
folder=${CARGO_TARGET_DIR:-target}
sysroot=$(rustc --print sysroot)
commit=$(rustc -vV | sed -n 's/^commit-hash: //p')
# The separator allows blanks in paths; of several fitting maps the last one counts.
separator=$'\x1f'
flags=--remap-path-prefix=$HOME=/home
flags+=$separator--remap-path-prefix=$PWD=/tidegate
flags+=$separator--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo
flags+=$separator--remap-path-prefix=$sysroot/lib/rustlib/src/rust=/rustc/$commit

# compile TARGET_FOLDER OPTIONS...
# Only the cdylib: cargo leaves link-time optimisation out where an rlib is made beside it.
compile() {
    CARGO_ENCODED_RUSTFLAGS=$flags cargo rustc --locked --profile wasm --target "$target" \
        -p tidegate-filter --lib --crate-type cdylib --target-dir "$@"
}

compile_test() { compile "$folder/test-hooks" --features test-hooks; }

# pack TARGET_FOLDER OUT OPTIONS...
pack() {
    local path
    if [ -z "$packer" ]; then
        cargo build --locked --bin tidegate-pack --target-dir "$folder"
        packer=$folder/debug/tidegate-pack
    fi
    "$packer" "$1/$target/wasm/tidegate_filter.wasm" "$2" --keep ci/wasm-exports.keep \
        --imports ci/wasm-imports.allow --max-bytes "$max_bytes" "${@:3}"
    for path in "$HOME" "$PWD"; do
        # A home of / or a very short one says nothing.
        [ ${#path} -lt 4 ] || ! grep -aqF -- "$path" "$2" || fail "$2 names a folder of this machine: $path"
    done
}

mkdir -p dist
[ $# -gt 0 ] || set -- release test
packer=${PACKER:-}
for module; do
    case $module in
    compile) compile "$folder" ;;
    compile-test) compile_test ;;
    release)
        compile "$folder"
        pack "$folder" dist/tidegate.wasm
        ;;
    test)
        compile_test
        max_bytes=$max_test_bytes pack "$folder/test-hooks" dist/tidegate-test.wasm --names
        ;;
    *) fail "unknown module $module" "usage: ci/filter.sh [compile] [compile-test] [release] [test]" ;;
    esac
done

