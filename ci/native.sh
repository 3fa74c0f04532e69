#!/usr/bin/env bash
# Builds the native Envoy module: ci/native.sh [release] [test], only `release` if none is named.
#
# `release` is dist/libtidegate.so, for use. `test` is dist/libtidegate-test.so, for the tests: a header makes a hook panic.
# Each has its own target folder, because both have one file name there. The bytes depend on the sources, the pinned
# toolchain and the C library of this machine.
#
# A panic must unwind to the hook that catches it, and the unwinder is in libgcc_s, which a distroless Envoy lacks. A linker
# script of that name, found first, links the static one instead.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

folder=${CARGO_TARGET_DIR:-target}
sysroot=$(rustc --print sysroot)
commit=$(rustc -vV | sed -n 's/^commit-hash: //p')
links=$(mktemp -d)
trap 'rm -rf "$links"' EXIT
echo 'INPUT(-lgcc_eh -lgcc)' >"$links/libgcc_s.so"
separator=$'\x1f'
flags=-Lnative=$links
flags+=$separator--remap-path-prefix=$HOME=/home
flags+=$separator--remap-path-prefix=$PWD=/tidegate
flags+=$separator--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo
flags+=$separator--remap-path-prefix=$sysroot/lib/rustlib/src/rust=/rustc/$commit

# compile TARGET_FOLDER OPTIONS...
compile() {
    CARGO_ENCODED_RUSTFLAGS=$flags cargo rustc --locked --profile native -p tidegate-native --lib --crate-type cdylib \
        --target-dir "$@"
}

# ship TARGET_FOLDER FILE
ship() {
    cp "$1/native/libtidegate_native.so" "$2"
    ! readelf -d "$2" | grep -q 'NEEDED.*libgcc_s' || fail "$2 needs libgcc_s, which a distroless Envoy lacks"
    say "$2: $(stat -c %s "$2") bytes, needs $(readelf -V "$2" | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -1)"
}

mkdir -p dist
[ $# -gt 0 ] || set -- release
for module; do
    case $module in
    release)
        compile "$folder/native-module"
        ship "$folder/native-module" dist/libtidegate.so
        ;;
    test)
        compile "$folder/native-test" --features test-hooks
        ship "$folder/native-test" dist/libtidegate-test.so
        ;;
    *) fail "unknown module $module" "usage: ci/native.sh [release] [test]" ;;
    esac
done
