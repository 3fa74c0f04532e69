#!/usr/bin/env bash
# Checks what stands in dashboards/, or writes the generated dashboard: ci/dashboards.sh [--write]
#
# The dashboard is what its source says and what Grafana's schema allows; the rules are sound and do what their tests
# say; Prometheus takes its configuration in the examples; the queries of `tidegate graph` and `tidegate score` are sound and answer what their
# tests say, as rules that ci/generate.sh writes; the queries in documents are PromQL, and some answer what ci/promql_test.yaml says. That no query asks for a metric that is not there is shown by the end-to-end tests, against a real Envoy.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

mode=${1-}
[ -z "$mode" ] || [ "$mode" = --write ] || fail "unknown option $mode" "usage: ci/dashboards.sh [--write]"
committed=dashboards/grafana/tidegate.json
work=$(mktemp -d)
fresh=$work/dashboard.json
trap 'rm -rf "$work"' EXIT

ci/grafana.sh dashboards/grafana/dashboard.py >"$fresh"
if [ "$mode" = --write ]; then
    cmp -s "$fresh" "$committed" || { cat "$fresh" >"$committed" && say "wrote $committed"; }
    exit 0
fi
diff -u --label "$committed" --label "as its source says" "$committed" "$fresh" >&2 ||
    fail "$committed is out of date" "make dashboards writes it anew"
ci/grafana.sh ci/dashboards.py "$committed"
ci/prometheus.sh
.tools/bin/promtool check rules --lint=all --lint-fatal dashboards/prometheus/rules.yaml {graph,advise}/tests/promtool/rules.yaml >&2
# Where the rules are in the containers they are not here: compose.sh checks what is mounted.
.tools/bin/promtool check config --syntax-only examples/*/prometheus.yaml >&2
.tools/bin/promtool test rules dashboards/prometheus/rules_test.yaml {graph,advise}/tests/promtool/rules_test.yaml >&2
ci/promql.py >"$work/documents.yaml"
cp dashboards/prometheus/rules.yaml ci/promql_test.yaml "$work/"
.tools/bin/promtool check rules "$work/documents.yaml" >&2
.tools/bin/promtool test rules "$work/promql_test.yaml" >&2
say "the dashboard, the rules, the queries, also those in documents, and their tests agree; Prometheus takes what the examples tell it"
