#!/usr/bin/env bash
# Plays the scored runs that `make test` leaves out: ci/test-scores.sh [TESTS]
#
# Most of them need the machine alone for ten seconds, so that they take as long as all other end-to-end tests. They are the
# tests that are ignored with the reason below. TESTS selects those with that word in their name.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

reason='#[ignore = "a scored run: make test-scores"]'
mapfile -t tests < <(
    awk -v reason="$reason" '
        $0 == reason { found = 1; next }
        found && match($0, /fn [a-z0-9_]+/) {
            module = FILENAME
            sub(/.*\//, "", module)
            sub(/\.rs$/, "", module)
            print module "::" substr($0, RSTART + 3, RLENGTH - 3)
            found = 0
        }' testbed/tests/e2e/*.rs | grep -F -- "${1-}"
)
[ ${#tests[@]} -gt 0 ] || fail "no scored run has '${1-}' in its name"

out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
# Without --package, so that dependencies have the features that the tests compiled them with.
cargo test --locked --workspace --test e2e -- --include-ignored --exact "${tests[@]}" | tee "$out" || status=$?
# A name that no test has would count as nothing.
[ "$status" != 0 ] || grep -q "^running ${#tests[@]} tests\?$" "$out" || fail "not all of these are tests: ${tests[*]}"
ci/count-tests.sh "$status" "$out"
