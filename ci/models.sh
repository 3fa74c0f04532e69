#!/usr/bin/env bash
# Looks at all states of the models, also of the larger ones, in some minutes: ci/models.sh (docs/models.md)
set -euo pipefail
cd "$(dirname "$0")/.."

out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
{
    cargo test --locked --release -p tidegate-worker --test models -- --include-ignored --nocapture --test-threads 2 &&
        cargo test --locked --release -p tidegate-core --lib leader::model -- --nocapture
} | tee "$out" || status=$?
ci/count-tests.sh "$status" "$out"
