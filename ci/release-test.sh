#!/usr/bin/env bash
# Holds a release against what it promises: ci/release-test.sh
#
# Builds what is committed twice, in two folders with two caches of crates' sources, and compares all bytes. Then installs from the
# first alone: with the install script from a web server on loopback, from a folder, and from files that somebody has changed; images
# and chart from a registry on loopback; the chart with Helm into a real API server (control/tests/release). Takes most of an hour on two cores,
# because the command is compiled for two platforms twice.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

passed=0 failed=0
# check WHAT COMMAND...
check() {
    if "${@:2}" >"$work/said" 2>&1; then
        say "ok: $1"
        passed=$((passed + 1))
    else
        say "FAILED: $1"
        sed 's/^/  /' "$work/said" | tail -n 20 >&2
        failed=$((failed + 1))
    fi
}
# --- two builds ------------------------------------------------------------------------------------------------------------
commit=$(git rev-parse HEAD)
# Not in a folder of the same depth and length, and one with a blank.
first=$work/one second="$work/a second/place"
for clone in "$first" "$second"; do
    mkdir -p "$clone"
    git archive HEAD | tar -x -C "$clone"
    say "building ${clone#"$work"/}"
    # The built programs take gigabytes: what was compiled goes before the next.
    TIDEGATE_COMMIT=$commit CARGO_HOME="$clone/cargo-home" CARGO_TARGET_DIR="$clone/target" "$clone/ci/release.sh"
    rm -rf "$clone/target" "$clone/cargo-home"
done
check "two folders give the same bytes" diff -r "$first/dist/release" "$second/dist/release"
rm -rf "$second"
# What is tested from here on is the first.
mkdir -p dist
rm -rf dist/release
mv "$first/dist/release" dist/release
rm -rf "$first"

# Each ends with `N passed, N failed`.
for part in "ci/release/install-test.sh $commit" 'make release-kube-test'; do
    $part | tee "$work/said" || true
    read -r one _ two _ < <(grep -E '^[0-9]+ passed, [0-9]+ failed' "$work/said" | tail -n 1) || { one=0 two=1; }
    passed=$((passed + one)) failed=$((failed + two))
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
