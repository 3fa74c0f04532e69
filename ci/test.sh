#!/usr/bin/env bash
# Runs all tests that pass or fail without scores, and ends with the number of those that passed: ci/test.sh
#
# Envoy is fetched, and the modules are compiled, beside the tests: a core is often idle while one crate waits for another.
# Examples have no tests; `make clippy` compiles them.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/jobs.sh

begin envoy ci/tools.sh
begin modules ci/filter.sh compile compile-test
cargo test --locked --workspace --tests --no-run
await modules
await envoy
ci/filter.sh

status=0
{ cargo test --locked --workspace --tests && cargo test --locked --workspace --doc; } | tee "$logs/tests" || status=$?
ci/count-tests.sh "$status" "$logs/tests"
