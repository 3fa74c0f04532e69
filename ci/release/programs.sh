#!/usr/bin/env bash
# Builds the command `tidegate` for all platforms of a release: ci/release/programs.sh OUT
#
# Made are OUT/amd64/tidegate and OUT/arm64/tidegate: static, with musl, so that they run on every Linux and in an image with
# nothing else. Rust brings the C library and a linker for both. The few C files of the cryptography are compiled by Zig, which
# is one wheel for all platforms; its bytes do not depend on the compiler of this machine. As with the module (ci/filter.sh)
# the folders of this machine are mapped away.
#
# TIDEGATE_COMMIT and TIDEGATE_MODULE_SHA256 are what the programs state about themselves (control/build.rs).
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/say.sh
. ci/wheel.sh
. ci/versions.env

[ $# = 1 ] || fail "found $# words" "usage: ci/release/programs.sh OUT"
out=$1
targets=(x86_64-unknown-linux-musl:amd64 aarch64-unknown-linux-musl:arm64)
profile=dist
folder=${CARGO_TARGET_DIR:-$PWD/target}
cargo_home=${CARGO_HOME:-$HOME/.cargo}
sysroot=$(rustc --print sysroot)
commit=$(rustc -vV | sed -n 's/^commit-hash: //p')

zig=$(wheel ziglang "$ZIG_VERSION" "$(of_machine "$ZIG_WHEEL_SHA256_X86_64" "$ZIG_WHEEL_SHA256_AARCH64")")
chmod +x "$zig/ziglang/zig"
# Always the same place, because cargo compiles anew what was compiled by another compiler.
work=$folder/zig
mkdir -p "$work"

# What is missing of the targets; rustup needs the network for it, once.
channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
installed=$(rustup target list --installed --toolchain "$channel")
for one in "${targets[@]}"; do
    grep -qx "${one%:*}" <<<"$installed" || rustup target add --toolchain "$channel" "${one%:*}" >&2
done

# program NAME: a program of this text, which is left alone where it is there already.
program() {
    cat >"$work/$1.new"
    chmod +x "$work/$1.new"
    cmp -s "$work/$1.new" "$work/$1" || cp "$work/$1.new" "$work/$1"
    rm "$work/$1.new"
    echo "$work/$1"
}

# The compiler for a target. The option that names the target is Zig's own; the one that callers give is Clang's.
compiler() {
    program "zig-cc-$1" <<-END
		#!/usr/bin/env bash
		set -euo pipefail
		words=()
		for word; do [[ \$word == --target=* ]] || words+=("\$word"); done
		exec "$zig/ziglang/zig" cc -target "${1/-unknown/}" -fno-sanitize=all -g0 \\
		    -ffile-prefix-map="$cargo_home=/cargo" -ffile-prefix-map="$folder=/target" -ffile-prefix-map="$PWD=/tidegate" "\${words[@]}"
	END
}

archiver() {
    program zig-ar <<-END
		#!/usr/bin/env bash
		exec "$zig/ziglang/zig" ar "\$@"
	END
}

# The separator allows blanks in paths; of several fitting maps the last one counts.
separator=$'\x1f'
flags=--remap-path-prefix=$HOME=/home
flags+=$separator--remap-path-prefix=$PWD=/tidegate
flags+=$separator--remap-path-prefix=$folder=/target
flags+=$separator--remap-path-prefix=$cargo_home=/cargo
flags+=$separator--remap-path-prefix=$sysroot/lib/rustlib/src/rust=/rustc/$commit
# rustc's own linker, which is a part of the toolchain on every machine.
flags+=${separator}-Clinker=rust-lld

options=()
export ZIG_GLOBAL_CACHE_DIR=$work/cache ZIG_LOCAL_CACHE_DIR=$work/cache
for one in "${targets[@]}"; do
    options+=(--target "${one%:*}")
    name=${one%:*}
    export "CC_${name//-/_}=$(compiler "$name")" "AR_${name//-/_}=$(archiver)"
done
CARGO_ENCODED_RUSTFLAGS=$flags cargo build --locked --profile "$profile" -p tidegate-control --bin tidegate \
    --target-dir "$folder" "${options[@]}" >&2

for one in "${targets[@]}"; do
    mkdir -p "$out/${one#*:}"
    cp "$folder/${one%:*}/$profile/tidegate" "$out/${one#*:}/tidegate"
    for path in "$HOME" "$PWD" "$folder" "$cargo_home"; do
        # A home of / or a very short one says nothing.
        [ ${#path} -lt 4 ] || ! grep -aqF -- "$path" "$out/${one#*:}/tidegate" ||
            fail "$out/${one#*:}/tidegate names a folder of this machine: $path"
    done
done
