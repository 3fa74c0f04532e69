#!/usr/bin/env bash
# Checks licences, banned crates and sources of all dependencies with cargo-deny (rules: deny.toml).
#
# cargo-deny is built from source once (two CPU-minutes) and kept in the cache by version. Security
# advisories are asked for by name (ci/deny.sh advisories), because they change from day to day and
# need the network: a commit that passed must not fail an hour later.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/versions.env

cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
home=$cache/cargo-deny-$CARGO_DENY_VERSION
staging=
trap '[ -z "$staging" ] || rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM HUP

if [ ! -x "$home/bin/cargo-deny" ]; then
    say "building cargo-deny $CARGO_DENY_VERSION"
    mkdir -p "$cache"
    staging=$(mktemp -d "$cache/.cargo-deny.XXXXXX")
    CARGO_TARGET_DIR="$staging/target" cargo install --locked --quiet "cargo-deny@$CARGO_DENY_VERSION" \
        --root "$staging/home" >&2 || fail "cargo-deny $CARGO_DENY_VERSION could not be built"
    mv -T "$staging/home" "$home" 2>/dev/null || [ -x "$home/bin/cargo-deny" ] || fail "could not create $home"
fi

checks=("$@")
[ $# -gt 0 ] || checks=(bans licenses sources)
"$home/bin/cargo-deny" --locked --workspace --all-features check "${checks[@]}"
