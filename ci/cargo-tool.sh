# Tools of crates.io, sourced by the scripts that run one.
#
# Each is built from source once, from its own lock file, and kept by name and version in a cache outside the clone
# (${TIDEGATE_CACHE:-~/.cache/tidegate}).

staging=
trap '[ -z "$staging" ] || rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM HUP

# cargo_tool NAME VERSION: builds it if it is not in the cache, and puts it on the PATH.
cargo_tool() {
    local name=$1 version=$2 cache home
    cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
    home=$cache/$name-$version
    if [ ! -x "$home/bin/$name" ]; then
        say "building $name $version"
        mkdir -p "$cache"
        staging=$(mktemp -d "$cache/.$name.XXXXXX")
        CARGO_TARGET_DIR="$staging/target" cargo install --locked --quiet "$name@$version" --root "$staging/home" >&2 ||
            fail "$name $version could not be built"
        # Another run may have been faster.
        mv -T "$staging/home" "$home" 2>/dev/null || [ -x "$home/bin/$name" ] || fail "could not create $home"
    fi
    PATH=$home/bin:$PATH
}
