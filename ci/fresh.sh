#!/usr/bin/env bash
# Prove that make targets work on a machine that has built nothing: each runs in a clone of HEAD of its own, with an
# empty home, an empty cargo home and an empty cache. Usage: fresh.sh [target...]
# What the machine says about package registries stays in force. rustup and its toolchains stay too: they are required.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$#" -eq 0 ]; then
  set -- demo test check docs-run site test-page test-kube conformance manifests-check dashboards-check examples-check \
    workflows-check dockerfiles-check test-oci coverage deny playground-test sim graph-prometheus demo-graph-test
fi
for target in "$@"; do
  grep -q "^$target:" Makefile || { echo "fresh: '$target' is no target of the Makefile; \`make\` lists them" >&2; exit 2; }
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
  echo "fresh: make $target ..."
  begun=$SECONDS
  if HOME="$root/home" CARGO_HOME="$root/cargo" XDG_CACHE_HOME="$root/cache" \
    make -C "$root/clone" "$target" >"$logs/$target.log" 2>&1 </dev/null; then
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
