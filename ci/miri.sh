#!/usr/bin/env bash
# Runs the filter's unsafe code under Miri, which checks each access of memory: ci/miri.sh
#
# That is filter/src/host.rs, whose calls are answered by functions of the same names (filter/src/host_tests.rs), and what
# reads and writes the bytes that cross there (crate `worker`). The exports of filter/src/entry.rs are for the module's target alone, on
# which Miri has no host.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/versions.env

toolchain=$MIRI_TOOLCHAIN
if ! cargo "+$toolchain" miri --version >/dev/null 2>&1; then
    say "installing Miri with Rust $toolchain"
    rustup toolchain install "$toolchain" --profile minimal --component miri --component rust-src --no-self-update >&2
fi
out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
cargo "+$toolchain" miri test --locked -p tidegate-filter -p tidegate-worker --lib -- host:: pairs:: exchange:: gauges:: identity:: names:: faults:: |
    tee "$out" || status=$?
ci/count-tests.sh "$status" "$out"
