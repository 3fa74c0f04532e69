#!/usr/bin/env bash
# Prove that make targets work on a machine that has built nothing: each runs in a clone of HEAD of its own, with an
# empty home, an empty cargo home and an empty cache. Usage: fresh.sh [target...]
# What the machine says about package registries stays in force. rustup and its toolchains stay too: rustup is required, and its home
# holds both. So this does not try what ci/rust.sh installs of a toolchain.
#
#   fresh.sh --matrix   prints the groups as JSON, for the workflow
#   fresh.sh --check    checks that each target of the Makefile is either in a group or left out with a reason
set -euo pipefail
cd "$(dirname "$0")/.."

# The targets that run by themselves, or with what `small` gives them. Each line is a job of .github/workflows/fresh.yml.
groups=(
  'demo test'
  'check docs-run site site-test test-page'
  'test-kube conformance'
  'manifests-check dashboards-check examples-check'
  'workflows-check dockerfiles-check test-oci'
  'coverage deny playground-test playground-build sim'
  'graph-prometheus demo-graph-test demo-graph'
  'e2e test-scores e2e-native native test-native'
  'compat chaos demo-control'
  'loadtest-k6 loadtest-capacity-test tools-load oci sbom size'
  'sim-ablate sim-chaos sim-compare sim-healthy sim-limits properties bench'
  'test-ablation models miri trip-test help fuzz'
  'release-check'
)

# What makes a target that plays for long a short one: arguments of make, separated by `|`.
declare -A small=(
  [bench]='SCENARIOS=steady|VARIANTS=tidegate,none|SCALE=0.1'
  [properties]='PROPERTY_CASES=100'
  [sim-ablate]='ARGS=--mechanisms votes --scenarios steady --stories 2'
  [sim-chaos]='ARGS=--stories 10'
  [sim-compare]='SCENARIOS=steady|CONTENDERS=tidegate,none'
  [sim-healthy]='ARGS=pauses'
  [sim-limits]='SCENARIOS=steady'
)

# The others. A line has a reason, and behind the colon the targets.
left_out=$(cat <<'EOF'
a part of `test`, `conformance` or `demo`, which fetch and build it first: rust tools tools-kube tools-mesh filter module
a part of `check`: fmt-check lint clippy rustdoc layers scripts-check docs-check
writes files of the repository; its check is in a group: fmt docs dashboards manifests
writes pictures of the repository; test-page and demo-graph-test fetch and build what it needs: screenshots
serves until Ctrl-C; what it serves is built in a group: playground site-serve
pushes to a registry; test-oci and release-install-test push to one on loopback: oci-push release-push
a part of `release-check`: release release-install-test release-kube-test
takes an hour; the workflow of releases runs its parts on new machines: release-test
needs an address or results that a new clone has not: loadtest-capacity loadtest-report loadtest-compare
measures for minutes or hours with the programs that other targets build: bench-balance bench-control bench-cost loadtest
plays for minutes or hours, as its bounds hold for many stories or a large fleet: sim-sweep sim-sweep-accept sim-adversaries sim-fleet
asks a database that changes from day to day: advisories govulncheck
builds and fetches nothing: clean
is this script: fresh
EOF
)

fail() { echo "fresh: $1" >&2; exit "${2:-1}"; }

check() {
  local wrong target
  # Once in the Makefile and once in a list: what stands there more or less often is wrong.
  wrong=$(
    {
      grep -oE '^[a-z0-9-]+:' Makefile | tr -d : | sort -u
      printf '%s\n' "${groups[@]}" "$(sed 's/.*: //' <<<"$left_out")" | tr ' ' '\n'
    } | sort | uniq -c | awk '$1 != 2 {print $2}' | paste -sd ' '
  )
  [ -z "$wrong" ] || fail "not exactly once in one of the lists of ci/fresh.sh and in the Makefile: $wrong"
  for target in "${!small[@]}"; do
    [[ " ${groups[*]} " == *" $target "* ]] || fail "\`small\` has arguments for $target, which is in no group"
  done
  echo "fresh: every target of the Makefile is in a group or left out with a reason" >&2
}

case ${1-} in
--matrix)
  printf '"%s"\n' "${groups[@]}" | paste -sd , | sed 's/.*/[&]/'
  exit
  ;;
--check)
  check
  exit
  ;;
'')
  read -ra words <<<"${groups[*]}"
  set -- "${words[@]}"
  ;;
esac
for target in "$@"; do
  grep -q "^$target:" Makefile || fail "'$target' is no target of the Makefile; \`make\` lists them" 2
done

logs="$PWD/out/fresh"
mkdir -p "$logs"
root=$(mktemp -d)
# The module cache of Go is read-only.
clear_root() { chmod -R u+w "$root" 2>/dev/null || true; rm -rf "$root"; }
trap clear_root EXIT

# Settings are pointed to where they are; only cargo reads its own from its home alone.
export RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}"
[ -d "${PYENV_ROOT:-$HOME/.pyenv}" ] && export PYENV_ROOT="${PYENV_ROOT:-$HOME/.pyenv}"
[ -f "$HOME/.npmrc" ] && export NPM_CONFIG_USERCONFIG="${NPM_CONFIG_USERCONFIG:-$HOME/.npmrc}"
[ -f "$HOME/.config/go/env" ] && export GOENV="${GOENV:-$HOME/.config/go/env}"
for pip in "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
  [ -f "$pip" ] && export PIP_CONFIG_FILE="${PIP_CONFIG_FILE:-$pip}"
done
cargo_settings="${CARGO_HOME:-$HOME/.cargo}/config.toml"
unset TIDEGATE_CACHE CARGO_TARGET_DIR GOPATH GOMODCACHE GOCACHE PIP_CACHE_DIR XDG_CONFIG_HOME XDG_DATA_HOME MAKEFLAGS MFLAGS MAKELEVEL

passed=0 failed=0
for target in "$@"; do
  mkdir -p "$root/home" "$root/cargo" "$root/cache"
  [ -f "$cargo_settings" ] && cp "$cargo_settings" "$root/cargo/config.toml"
  git clone --quiet --no-local . "$root/clone"
  IFS='|' read -ra arguments <<<"${small[$target]-}"
  echo "fresh: make $target ${arguments[*]} ..."
  begun=$SECONDS
  if HOME="$root/home" CARGO_HOME="$root/cargo" XDG_CACHE_HOME="$root/cache" \
    make -C "$root/clone" "$target" "${arguments[@]}" >"$logs/$target.log" 2>&1 </dev/null; then
    passed=$((passed + 1)) verdict=passed
  else
    failed=$((failed + 1)) verdict="FAILED, see out/fresh/$target.log"
  fi
  echo "fresh: make $target: $verdict ($((SECONDS - begun)) s)"
  clear_root
  mkdir -p "$root"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
