#!/usr/bin/env bash
# Runs the property tests on inputs that no run has seen: ci/properties.sh <cases of each>
#
# `make test` draws the same inputs each time. A failure prints the smallest input: make a test of it.
set -euo pipefail
cd "$(dirname "$0")/.."

export PROPTEST_CASES=$1
# The seed is drawn, and named in case of a failure.
unset BOLERO_RANDOM_SEED
PROPTEST_RNG_SEED=$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')
export PROPTEST_RNG_SEED
echo "PROPTEST_RNG_SEED=$PROPTEST_RNG_SEED" >&2

out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
{
    cargo test --locked --release --no-fail-fast -p tidegate-core --lib --test held --test properties --test config_properties &&
        cargo test --locked --release --no-fail-fast -p tidegate-control --test kubernetes &&
        cargo test --locked --release --no-fail-fast -p tidegate-control --test main -- xds_properties:: any_input:: rendering::
} | tee "$out" || status=$?
ci/count-tests.sh "$status" "$out"
