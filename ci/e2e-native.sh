#!/usr/bin/env bash
# Runs the end-to-end tests with the native module: ci/e2e-native.sh [TESTS]
#
# Left out by name: tests of what only a VM has. The output counts them as filtered out.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

of_a_vm=(
    crash::an_open_breaker_stays_open_across_a_crash
    crash::a_crash_does_not_leak_requests_in_flight
    crash::a_crash_of_one_worker_leaves_the_others_requests_counted
    crash::what_was_learned_outlives_a_crash_under_load
    dashboards::istio_makes_labels_of_its_extra_stat_tags
    dashboards::no_query_asks_for_a_metric_that_envoy_does_not_show
    limit::where_envoy_keeps_no_gauge_each_worker_takes_its_share
)
out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
TIDEGATE_MODULE=$PWD/dist/libtidegate.so cargo test --locked -p tidegate-testbed --test e2e -- \
    --include-ignored "${of_a_vm[@]/#/--skip=}" "$@" | tee "$out" || status=$?
ci/count-tests.sh "$status" "$out"
