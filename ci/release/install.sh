#!/bin/sh
# Installs Tidegate @VERSION@: the command, the module, manual pages, completions, and what a cluster and a Prometheus need.
#
#   sh install.sh [--prefix FOLDER] [--from FOLDER|URL] [--arch amd64|arm64]
#
# --prefix  where to; ~/.local if it is not given. Written are bin/tidegate, lib/tidegate/, share/.
# --from    where the files of the release are: a folder on this machine, or a URL. Without it
#           @DOWNLOAD@
# --arch    of another machine than this one.
#
# Both archives' checksums stand in this script. To check this script (SHA256SUMS, which is signed) is to check all. Nothing is installed unless everything is as it should be.
set -eu

version='@VERSION@'
from='@DOWNLOAD@'
sum_amd64='@SUM_AMD64@'
sum_arm64='@SUM_ARM64@'
sum_files='@SUM_FILES@'

fail() {
    echo "install.sh: error: $1" >&2
    exit 1
}

prefix=${HOME:+$HOME/.local}
arch=
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || fail "found '$1', expected --prefix FOLDER, --from FOLDER|URL or --arch amd64|arm64"
    case $1 in
    --prefix) prefix=$2 ;;
    --from) from=${2%/} ;;
    --arch) arch=$2 ;;
    *) fail "unknown option $1" ;;
    esac
    shift 2
done
[ -n "$prefix" ] || fail "there is no HOME: say where to with --prefix"

if [ -z "$arch" ]; then
    [ "$(uname -s)" = Linux ] || fail "the command is for Linux, this is $(uname -s): --arch fetches it for another machine"
    case $(uname -m) in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "no release for $(uname -m)" ;;
    esac
fi
case $arch in
amd64) sum=$sum_amd64 ;;
arm64) sum=$sum_arm64 ;;
*) fail "found --arch $arch, expected amd64 or arm64" ;;
esac

# fetch NAME: the file in the working folder.
fetch() {
    case $from in
    *://*)
        if command -v curl >/dev/null; then
            curl --fail --silent --show-error --location --output "$work/$1" "$from/$1" || fail "could not fetch $from/$1"
        elif command -v wget >/dev/null; then
            wget --quiet --output-document "$work/$1" "$from/$1" || fail "could not fetch $from/$1"
        else
            fail "neither curl nor wget is there; --from takes a folder as well"
        fi
        ;;
    *) cp "$from/$1" "$work/$1" || fail "there is no $from/$1" ;;
    esac
}

# check NAME SHA256
check() {
    if command -v sha256sum >/dev/null; then
        found=$(sha256sum <"$work/$1")
    else
        found=$(shasum -a 256 <"$work/$1")
    fi
    found=${found%% *}
    [ "$found" = "$2" ] || fail "wrong checksum of $1, nothing was installed: found $found, expected $2"
}

mkdir -p "$prefix"
work=$(mktemp -d "$prefix/.tidegate.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

program=tidegate-$version-linux-$arch.tar.gz
files=tidegate-files-$version.tar.gz
for one in "$program" "$files"; do fetch "$one"; done
check "$program" "$sum"
check "$files" "$sum_files"

mkdir "$work/new"
for one in "$program" "$files"; do tar -xzf "$work/$one" -C "$work/new"; done
# A program that runs is not overwritten but replaced.
(cd "$work/new" && find . -type d -print) | while read -r one; do mkdir -p "$prefix/$one"; done
(cd "$work/new" && find . -type f -print) | while read -r one; do mv -f "$work/new/$one" "$prefix/$one"; done

echo "installed Tidegate $version in $prefix"
echo "  command  $prefix/bin/tidegate"
echo "  module   $prefix/lib/tidegate/tidegate.wasm"
[ ! -f "$prefix/lib/tidegate/libtidegate.so" ] || echo "  native   $prefix/lib/tidegate/libtidegate.so"
echo "  files    $prefix/share/tidegate"
