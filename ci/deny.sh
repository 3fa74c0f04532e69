#!/usr/bin/env bash
# Checks licences, banned crates and sources of all dependencies with cargo-deny (rules: deny.toml).
#
# Security advisories are asked for by name (ci/deny.sh advisories), because they change from day to day and
# need the network: a commit that passed must not fail an hour later.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/versions.env
. ci/cargo-tool.sh

cargo_tool cargo-deny "$CARGO_DENY_VERSION" "$CARGO_DENY_SHA256"

checks=("$@")
[ $# -gt 0 ] || checks=(bans licenses sources)
cargo-deny --locked --workspace --all-features check "${checks[@]}"
