#!/usr/bin/env bash
# Measures which lines of packages their tests run, and fails below the shares that are asked for:
# ci/coverage.sh [PACKAGES=PERCENT]...
#
# Several packages are joined with `+`: their lines count together, and so do their tests. Lines of tests do not count,
# neither in files of their own nor below `#[cfg(test)]`. llvm-tools come with the pinned toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/versions.env
. ci/cargo-tool.sh

[ "$#" -gt 0 ] || set -- core=95

cargo_tool cargo-llvm-cov "$CARGO_LLVM_COV_VERSION" "$CARGO_LLVM_COV_SHA256"
rustup component add llvm-tools >&2 || fail "rustup could not add llvm-tools"
mkdir -p out

# measure NAMES LEAST: runs the tests of the packages and judges the lines of their folders.
measure() {
    local names=$1 least=$2 name packages=()
    for name in ${names//+/ }; do
        [ -f "$name/Cargo.toml" ] || fail "there is no package in $name/"
        packages+=(--package "tidegate-$name")
    done
    cargo llvm-cov --locked "${packages[@]}" --lcov --output-path "out/coverage-$names.lcov" \
        --ignore-filename-regex '/(tests?|testing|fuzz|models)(\.rs|/)|_tests\.rs'
    awk -F '[:,]' -v root="$PWD/" -v names="$names" -v least="$least" '
    BEGIN { split(names, folders, "+"); for (number in folders) asked[folders[number]] }
    /^SF:/ {
        path = substr($0, 4)
        short = substr(path, length(root) + 1)
        folder = short
        sub("/.*", "", folder)
        tests = 0
        for (line = 1; (getline text <path) > 0; line++)
            if (text == "#[cfg(test)]" && !tests) {
                # Of a module, not of a function or an import.
                if ((getline text <path) > 0 && text ~ /^mod tests/) tests = line
                line++
            }
        close(path)
    }
    /^DA:/ && (folder in asked) && (!tests || $2 < tests) {
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
        printf "%s: %.2f %% of %d lines, expected at least %d %%\n", names, share, all, least
        exit share < least
    }
    ' "out/coverage-$names.lcov" || fail "the tests of $names run too few of its lines"
}

for pair in "$@"; do
    [[ "$pair" =~ ^[a-z+]+=[0-9]+$ ]] || fail "expected PACKAGES=PERCENT, such as core=95, not '$pair'"
    measure "${pair%=*}" "${pair#*=}"
done
