#!/usr/bin/env bash
# Runs all tests that pass or fail without scores, and ends with the number of those that passed: ci/test.sh
#
# Envoy is fetched, and the modules are compiled, beside the tests: a core is often idle while one crate waits for another.
# Examples have no tests; `make clippy` compiles them.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/jobs.sh

# A first build is not incremental: that would write 1.8 GB, and save time only later. A folder of incremental builds is used.
[ -d "${CARGO_TARGET_DIR:-target}/debug/incremental" ] || export CARGO_INCREMENTAL=0

begin envoy ci/tools.sh
begin modules ci/filter.sh compile compile-test
# These two are no part of `--tests`, and cargo ignores their names beside it.
cargo test --locked --workspace --test e2e --test laboratory --no-run
cargo test --locked --workspace --tests --no-run
await modules
await envoy
ci/filter.sh

# The end-to-end tests wait for Envoys and clients most of the time. The other tests run beside them, and use the processors
# only while no end-to-end test wants them. The simulator's scenarios compute all the time, and most of the others wait, too.
begin e2e cargo test --locked --workspace --test e2e
begin laboratory yielding cargo test --locked --workspace --test laboratory
status=0
{ yielding cargo test --locked --workspace --tests && yielding cargo test --locked --workspace --doc; } | tee "$logs/tests" || status=$?
for rest in laboratory e2e; do
    say "waiting for the tests: $rest"
    wait "${pids[$rest]}" || status=$?
    unset "pids[$rest]"
    tee -a "$logs/tests" <"$logs/$rest"
done
ci/count-tests.sh "$status" "$logs/tests"
