#!/usr/bin/env bash
# Adds up what cargo's tests printed, and ends with the plain line: ci/count-tests.sh <status of cargo> <its output>
set -euo pipefail
status=$1
out=$2
awk '/^test result:/ {
    for (i = 2; i < NF; i++) {
        if ($(i + 1) ~ /^passed/) passed += $i
        if ($(i + 1) ~ /^failed/) failed += $i
    }
}
END {
    printf "%d passed, %d failed\n", passed, failed
    exit passed == 0
}' "$out"
exit "$status"
