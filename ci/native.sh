#!/usr/bin/env bash
# Builds the native Envoy module: ci/native.sh [release] [other] [test], only `release` if none is named.
#
# `release` is dist/libtidegate.so, for use on this kind of machine. `other` is the same for the other kind:
# dist/libtidegate-arm64.so on x86_64, dist/libtidegate-amd64.so on arm64. `test` is dist/libtidegate-test.so, for the tests:
# a header makes a hook panic. Each has its own target folder, because all have one file name there. The bytes depend on the sources, the pinned tools and TIDEGATE_VERSION,
# which is what the module calls itself (ci/version.sh).
#
# Zig links, one wheel for both kinds: it knows the C library's symbols by version, so that the module asks for glibc 2.28 on
# whatever machine it is built. A panic must unwind to the hook that catches it, and the unwinder is in libgcc_s, which a
# distroless Envoy lacks: Zig's own is linked instead. ci/native-check.sh checks both.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/wheel.sh
. ci/versions.env

glibc=2.28
folder=${CARGO_TARGET_DIR:-$PWD/target}
sysroot=$(rustc --print sysroot)
commit=$(rustc -vV | sed -n 's/^commit-hash: //p')
own=$(of_machine x86_64 aarch64)
other=$(of_machine aarch64 x86_64)
other_name=$(of_machine arm64 amd64)

zig=$(wheel ziglang "$ZIG_VERSION" "$(of_machine "$ZIG_WHEEL_SHA256_X86_64" "$ZIG_WHEEL_SHA256_AARCH64")")
chmod +x "$zig/ziglang/zig"
work=$folder/zig
mkdir -p "$work" dist
export ZIG_GLOBAL_CACHE_DIR=$work/cache ZIG_LOCAL_CACHE_DIR=$work/cache

separator=$'\x1f'
flags=--remap-path-prefix=$HOME=/home
flags+=$separator--remap-path-prefix=$PWD=/tidegate
flags+=$separator--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo
flags+=$separator--remap-path-prefix=$sysroot/lib/rustlib/src/rust=/rustc/$commit
# A request passes some twenty functions, most with one caller: together they cost a tenth less than one by one.
flags+=$separator-Cllvm-args=-inline-threshold=1000

# linker MACHINE: prints the path of a program that links for it.
linker() {
    local path=$work/link-$1
    cat >"$path.new" <<-END
		#!/usr/bin/env bash
		# What rustc says to GCC, as Zig's Clang understands it. Envoy has the functions that are undefined.
		set -euo pipefail
		words=()
		for word; do
		    case \$word in
		    -lgcc_s) words+=(-lunwind) ;;
		    -m64 | -fuse-ld=lld | -B*gcc-ld | --target=*) ;;
		    *) words+=("\$word") ;;
		    esac
		done
		exec "$zig/ziglang/zig" cc -target $1-linux-gnu.$glibc -Wl,-z,undefs "\${words[@]}"
	END
    chmod +x "$path.new"
    mv "$path.new" "$path"
    echo "$path"
}

# build MACHINE NAME FILE [OPTIONS...]
build() {
    local target=$1-unknown-linux-gnu name=$2 file=$3 channel
    shift 3
    channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
    rustup target list --installed --toolchain "$channel" | grep -qx "$target" ||
        rustup target add --toolchain "$channel" "$target" >&2
    CARGO_ENCODED_RUSTFLAGS=$flags$separator-Clinker=$(linker "${target%%-*}") \
        cargo rustc --locked --profile native -p tidegate-native --lib --crate-type cdylib --target "$target" \
        --target-dir "$folder/$name" "$@"
    cp "$folder/$name/$target/native/libtidegate_native.so" "$file"
    ci/native-check.sh "$file" "${target%%-*}" "$glibc"
}

[ $# -gt 0 ] || set -- release
for module; do
    case $module in
    release) build "$own" native-module dist/libtidegate.so ;;
    other) build "$other" native-module "dist/libtidegate-$other_name.so" ;;
    test) build "$own" native-test dist/libtidegate-test.so --features test-hooks ;;
    *) fail "unknown module $module" "usage: ci/native.sh [release] [other] [test]" ;;
    esac
done
