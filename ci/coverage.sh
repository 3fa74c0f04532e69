#!/usr/bin/env bash
# Measures which lines of core its tests run, and fails below the share that is asked for.
#
# Lines of tests do not count, neither in files of their own nor below `#[cfg(test)]`. llvm-tools come with the pinned
# toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/versions.env
. ci/cargo-tool.sh

# Percent of the lines.
LEAST=95

cargo_tool cargo-llvm-cov "$CARGO_LLVM_COV_VERSION" "$CARGO_LLVM_COV_SHA256"
rustup component add llvm-tools >&2 || fail "rustup could not add llvm-tools"
mkdir -p out
cargo llvm-cov --locked --package tidegate-core --lcov --output-path out/coverage.lcov \
    --ignore-filename-regex '/(tests?|testing)(\.rs|/)'
awk -F '[:,]' -v root="$PWD/" -v least="$LEAST" '
    /^SF:/ {
        path = substr($0, 4)
        short = substr(path, length(root) + 1)
        tests = 0
        for (line = 1; (getline text <path) > 0; line++)
            if (text == "#[cfg(test)]" && !tests) {
                # Of a module, not of a function or an import.
                if ((getline text <path) > 0 && text ~ /^mod tests/) tests = line
                line++
            }
        close(path)
    }
    /^DA:/ && (!tests || $2 < tests) {
        lines[short]++
        if ($3 > 0) run[short]++
    }
    END {
        for (file in lines) {
            all += lines[file]
            all_run += run[file]
            if (run[file] < lines[file])
                printf "%6.2f %%  %4d of %4d lines missed  %s\n", 100 * run[file] / lines[file], lines[file] - run[file], lines[file], file | "sort -n >&2"
        }
        close("sort -n >&2")
        if (!all) { print "no lines were measured"; exit 1 }
        share = 100 * all_run / all
        printf "%.2f %% of %d lines, expected at least %d %%\n", share, all, least
        exit share < least
    }
' out/coverage.lcov || fail "the tests of core run too few of its lines"
