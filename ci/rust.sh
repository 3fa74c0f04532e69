#!/usr/bin/env bash
# Installs the pinned Rust toolchain with its components and targets, only if something is missing.
#
# rust-toolchain.toml is the only place that names them. rustup can install them by itself at the
# first cargo call, but not where RUSTUP_AUTO_INSTALL=0 is set and not in versions before 1.28,
# so that this script asks for them by name. With everything in place it needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

# key NAME: the words of one key of rust-toolchain.toml, without quotes and brackets.
key() { sed -n "s/^$1 *= *//p" rust-toolchain.toml | tr -d '"[]' | tr ',' ' '; }

channel=$(key channel | tr -d ' ')
profile=$(key profile | tr -d ' ')
read -ra components <<<"$(key components)"
read -ra targets <<<"$(key targets)"

command -v rustup >/dev/null || fail "rustup is not installed" \
    "Tidegate is built with Rust $channel, which rustup installs: see https://rustup.rs"

complete() {
    rustup run "$channel" rustc --version >/dev/null 2>&1 || return 1
    local installed name
    installed=$(rustup component list --installed --toolchain "$channel" 2>/dev/null) || return 1
    for name in "${components[@]}"; do
        grep -q "^$name" <<<"$installed" || return 1
    done
    for name in "${targets[@]}"; do
        grep -qx "rust-std-$name" <<<"$installed" || return 1
    done
}

complete && exit 0
say "installing Rust $channel (${components[*]}) for ${targets[*]}"
options=(--profile "$profile" --no-self-update)
for name in "${components[@]}"; do options+=(--component "$name"); done
for name in "${targets[@]}"; do options+=(--target "$name"); done
rustup toolchain install "$channel" "${options[@]}" >&2
complete || fail "Rust $channel is still incomplete" "rustup component list --toolchain $channel shows what is there"
