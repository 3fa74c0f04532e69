#!/usr/bin/env bash
# Checks the arrows between the rooms (ARCHITECTURE.md): which crate may depend on which; and that all files of tests are compiled.
#
# deny.toml bans crates for the whole workspace; this script knows the rooms. Everything that runs in
# core stands by name in ci/core-dependencies.allow, so that a new dependency of core is a reviewed line.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

# The rooms that a room may depend on, in whatever way.
declare -A arrows=(
    [tidegate-core]=''
    [tidegate-advise]='tidegate-core tidegate-graph'
    [tidegate-control]='tidegate-advise tidegate-core tidegate-graph tidegate-meshbed tidegate-supervise tidegate-testbed'
    [tidegate-features]='tidegate-worker'
    [tidegate-filter]='tidegate-core tidegate-worker'
    [tidegate-graph]='tidegate-core'
    [tidegate-meshbed]='tidegate-supervise tidegate-testbed'
    [tidegate-native]='tidegate-core tidegate-worker'
    [tidegate-playground]='tidegate-core tidegate-sim'
    [tidegate-report]=''
    [tidegate-sim]='tidegate-core tidegate-report'
    [tidegate-supervise]=''
    [tidegate-testbed]='tidegate-core tidegate-report tidegate-sim tidegate-supervise'
    [tidegate-loadtests]='tidegate-advise tidegate-core tidegate-report tidegate-sim tidegate-supervise tidegate-testbed'
    [tidegate-worker]='tidegate-core'
    [tidegate-pack]=''
)
# Crates that must not run in a room, however they come there.
declare -A banned=(
    [tidegate-advise]='tokio hyper proxy-wasm aws-lc-rs'
    [tidegate-control]='tidegate-filter tidegate-meshbed tidegate-report tidegate-sim tidegate-supervise tidegate-testbed proxy-wasm'
    [tidegate-filter]='tokio hyper mio rustix'
    [tidegate-graph]='tokio hyper proxy-wasm aws-lc-rs'
    [tidegate-meshbed]='proxy-wasm'
    [tidegate-native]='tokio hyper mio rustix proxy-wasm'
    [tidegate-playground]='tokio hyper mio proxy-wasm clap indicatif'
    [tidegate-report]='tokio hyper mio proxy-wasm'
    [tidegate-sim]='tokio hyper mio proxy-wasm'
    [tidegate-supervise]='hyper proxy-wasm'
    [tidegate-testbed]='proxy-wasm'
    [tidegate-loadtests]='tidegate-filter proxy-wasm'
    [tidegate-worker]='tokio hyper mio rustix proxy-wasm'
    [tidegate-pack]='tokio proxy-wasm'
)

tree() {
    cargo tree --locked --offline --quiet --prefix none --format '{p}' "$@" | awk 'NF {print $1}' | sort -u
}

wrong=0
complain() {
    say "$@"
    wrong=1
}

# The only step that may need the network: everything after it runs --offline.
cargo fetch --locked --quiet

rooms=$(tree --workspace --depth 0)
for room in $rooms; do
    if [ ! -v "arrows[$room]" ]; then
        complain "$room is a new room: say in ci/layers.sh what it may depend on"
        continue
    fi
    for other in $(tree -p "$room" -e normal,build,dev --depth 1 | grep '^tidegate-'); do
        [[ " $room ${arrows[$room]} " == *" $other "* ]] ||
            complain "$room depends on $other, which is no arrow of the design"
    done
    inside=$(tree -p "$room" -e normal --target all --all-features)
    for crate in ${banned[$room]-}; do
        ! grep -qx "$crate" <<<"$inside" ||
            complain "$room contains $crate (cargo tree -p $room --invert $crate shows the way)"
    done
done

allowed=$(sed 's/#.*//' ci/core-dependencies.allow | awk 'NF {print $1}' | sort -u)
found=$(tree -p tidegate-core -e normal,no-proc-macro --target all --all-features | grep -vx tidegate-core)
for crate in $(comm -13 <(echo "$allowed") <(echo "$found")); do
    complain "tidegate-core contains $crate, which is not in ci/core-dependencies.allow"
done
for crate in $(comm -23 <(echo "$allowed") <(echo "$found")); do
    complain "tidegate-core no longer contains $crate: remove it from ci/core-dependencies.allow"
done

# Inside core the exchange depends on the laws, never the other way round.
! grep -rn 'crate::exchange' core/src/{breaker,limit,ladder.rs,learned.rs,units.rs} >&2 ||
    complain "a law of core depends on core/src/exchange/"

# What ships must not be able to turn a mechanism of the laws off.
for room in tidegate-filter tidegate-native tidegate-control; do
    features=$(cargo tree --locked --offline --quiet --prefix none --format '{p} {f}' -p "$room" -e normal --target all --all-features)
    ! grep -qE '^tidegate-core .*[ ,]ablation\b' <<<"$features" ||
        complain "$room enables the feature ablation of tidegate-core, which is for the laboratory alone"
done

# Where cargo does not look for tests by itself, a file that nothing names is never compiled.
for manifest in $(grep -lx 'autotests = false' */Cargo.toml); do
    crate=${manifest%/*}
    for file in "$crate"/tests/*.rs "$crate"/tests/*/main.rs; do
        name=${file#"$crate/"}
        stem=$(basename "$file" .rs)
        [ ! -e "$file" ] || grep -qxF "path = \"$name\"" "$manifest" || grep -qx "mod $stem;" "$crate/tests/main.rs" ||
            complain "$file is not compiled: name it in $crate/tests/main.rs, or in $manifest"
    done
done

# Where a program or library is left out of the tests, a test in its file would never run.
while IFS= read -r file; do
    ! grep -q '#\[cfg(test)\]\|#\[test\]' "$file" || complain "$file has tests, and its manifest says test = false"
done < <(awk '
    function left_out() { if (target && path && test == "false") { folder = file; sub(/[^\/]*$/, "", folder); print folder path } }
    FNR == 1 || /^\[/ { left_out(); target = path = test = ""; file = FILENAME }
    /^\[(\[bin\]|lib)\]/ { target = 1; if ($0 == "[lib]") path = "src/lib.rs" }
    /^path = / { path = $3; gsub(/"/, "", path) }
    /^test = / { test = $3 }
    END { left_out() }' */Cargo.toml ci/*/Cargo.toml)

[ "$wrong" = 0 ] || fail "the rooms are not as designed (see above)"
say "$(wc -w <<<"$rooms") rooms, arrows as designed; $(wc -w <<<"$found") crates run in core"
