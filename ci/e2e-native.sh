#!/usr/bin/env bash
# Runs the end-to-end tests with the native module: ci/e2e-native.sh [TESTS]
#
# Tests of what only a VM has return at once there, and the test of a panic returns at once with the WebAssembly module.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
TIDEGATE_MODULE=$PWD/dist/libtidegate.so cargo test --locked -p tidegate-testbed --test e2e -- "$@" | tee "$out" || status=$?
ci/count-tests.sh "$status" "$out"
