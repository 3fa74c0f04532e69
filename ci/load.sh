#!/usr/bin/env bash
# Installs the programs that make load: ci/load.sh NAME..., where NAME is fortio or k6 (without any: both).
#
# Each is built with Go from the module that ci/load/NAME/go.mod pins and go.sum checks, unchanged; apart
# from each other, because they need different versions of the same libraries. The binaries are kept in a
# cache outside the clone (${TIDEGATE_CACHE:-~/.cache/tidegate}) under the hash of what they are made
# from, and linked into .tools/bin: with a filled cache neither Go nor a network is needed. A file in the
# cache is complete or not there, because it gets its name last.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/go.sh

cache=${TIDEGATE_CACHE:-$HOME/.cache/tidegate}
staging=
trap '[ -z "$staging" ] || rm -rf "$staging"' EXIT
trap 'exit 130' INT TERM HUP

# The module and the package of a tool.
module_of() {
    case $1 in
    fortio) echo fortio.org/fortio ;;
    k6) echo go.k6.io/k6 ;;
    *) fail "no load tool is named $1" "expected fortio or k6" ;;
    esac
}

install() {
    local name=$1 module sources=ci/load/$1 version key home started=$SECONDS
    module=$(module_of "$name")
    version=$(awk -v module="$module" '$1 == module {print $2; exit}' "$sources/go.mod")
    [ -n "$version" ] || fail "$sources/go.mod names no version of $module"
    key=$({ cat "$sources"/go.mod "$sources"/go.sum && uname -sm; } | sha256sum)
    home=$cache/$name-${version#v}-${key:0:12}
    if [ ! -x "$home/$name" ]; then
        need_go "$sources" "$name"
        mkdir -p "$home"
        staging=$(mktemp -d "$cache/.$name.XXXXXX")
        say "building $name $version with $(cd "$sources" && go env GOVERSION): minutes, once"
        (cd "$sources" && CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly go build -trimpath -ldflags '-s -w' \
            -o "$staging/$name" "$module") || fail "go could not build $name $version" "its message stands above"
        mv -f "$staging/$name" "$home/$name"
        rm -rf "$staging"
        say "built $name in $((SECONDS - started)) s"
    fi
    mkdir -p .tools/bin
    ln -sfn "$home/$name" ".tools/bin/$name"
    ".tools/bin/$name" version >/dev/null || fail "$home/$name does not run on this machine"
    say "$name $version at .tools/bin/$name"
}

[ $# -gt 0 ] || set -- fortio k6
for name; do module_of "$name" >/dev/null; done
for name; do install "$name"; done
