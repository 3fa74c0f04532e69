#!/usr/bin/env bash
# Runs all tests that pass or fail without scores, and ends with the number of those that passed: ci/test.sh
#
# Examples have no tests; `make lint` compiles them.
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
{ cargo test --locked --workspace --tests && cargo test --locked --workspace --doc; } | tee "$out" || status=$?
ci/count-tests.sh "$status" "$out"
