# Tools of crates.io, sourced by the scripts that run one.
#
# Each is built from source once, from its own lock file, and kept by name and version in a cache outside the clone
# (${TIDEGATE_CACHE:-~/.cache/tidegate}). Its crate is checked against the checksum in ci/versions.env before anything of it is run.

staging=
trap '[ -z "$staging" ] || rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM HUP

# crate_of NAME VERSION SHA256: unpacks a crate into $staging/crate, if its checksum is this one.
crate_of() {
    local name=$1 version=$2 crate found
    # Fetches this crate and no other; outside of a workspace, so that none has a say.
    (cd "$staging" && cargo info --quiet --registry crates-io "$name@$version" >/dev/null) || fail "cargo could not fetch $name $version"
    mkdir "$staging/crate"
    for crate in "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/"$name-$version.crate"; do
        found=$(sha256sum <"$crate" | cut -c1-64)
        [ "$found" = "$3" ] || fail "wrong checksum of ${crate##*/}: nothing was built" \
            "found    $found" "expected $3 (ci/versions.env)"
    done
    tar -xzf "$crate" --strip-components 1 -C "$staging/crate"
}

# cargo_tool NAME VERSION SHA256: builds it if it is not in the cache, and puts it on the PATH.
cargo_tool() {
    local name=$1 version=$2 cache home
    cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
    home=$cache/$name-$version
    if [ ! -x "$home/bin/$name" ]; then
        say "building $name $version"
        mkdir -p "$cache"
        staging=$(mktemp -d "$cache/.$name.XXXXXX")
        crate_of "$name" "$version" "$3"
        CARGO_TARGET_DIR="$staging/target" cargo install --locked --quiet --path "$staging/crate" --root "$staging/home" >&2 ||
            fail "$name $version could not be built"
        # Another run may have been faster.
        mv -T "$staging/home" "$home" 2>/dev/null || [ -x "$home/bin/$name" ] || fail "could not create $home"
    fi
    PATH=$home/bin:$PATH
}
