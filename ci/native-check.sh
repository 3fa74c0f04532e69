#!/usr/bin/env bash
# Checks what a native module needs of the machine that loads it: ci/native-check.sh FILE MACHINE GLIBC
#
# It must be for MACHINE (x86_64 or aarch64), need the C library alone and no version of it above GLIBC, and export all hooks
# of native/abi/hooks.txt. Each function of Envoy's that it links to must be in every list native/abi/envoy-*.txt, which hold
# what a release of Envoy exports: a release refuses a module of which it lacks one. The names that it looks up when it is loaded must
# be in the list of the newest release.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."
. ci/say.sh

[ $# = 3 ] || fail "found $# words" "usage: ci/native-check.sh FILE MACHINE GLIBC"
file=$1 machine=$2 glibc=$3
symbols=$(readelf --wide --dyn-syms "$file")

case $machine in
x86_64) expected='Advanced Micro Devices X86-64' ;;
aarch64) expected=AArch64 ;;
*) fail "found the machine $machine" "expected x86_64 or aarch64" ;;
esac
found=$(readelf -h "$file" | sed -n 's/^ *Machine: *//p')
[ "$found" = "$expected" ] || fail "$file is for $found" "expected $expected"

# Parts of glibc, which every Linux with a glibc has.
parts='libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1'
for needed in $(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    grep -qwF "$needed" <<<"$parts" || fail "$file needs $needed" "expected parts of glibc alone: $parts"
done

newest=$(grep -o '@GLIBC_[0-9.]*' <<<"$symbols" | sed 's/@GLIBC_//' | sort -uV | tail -1)
[ "$(printf '%s\n' "$newest" "$glibc" | sort -V | tail -1)" = "$glibc" ] ||
    fail "$file needs glibc $newest" "expected $glibc or older" \
        "$(grep "@GLIBC_$newest" <<<"$symbols" | awk '{print $8}' | tr '\n' ' ')"

exported=$(awk '$7 != "UND" && $5 == "GLOBAL" {print $8}' <<<"$symbols" | sort -u)
missing=$(comm -23 native/abi/hooks.txt <(echo "$exported"))
[ -z "$missing" ] || fail "$file lacks hooks that Envoy looks for" "$missing"

linked=$(awk '$7 == "UND" {print $8}' <<<"$symbols" | grep '^envoy_' | sort -u)
for list in native/abi/envoy-*.txt; do
    missing=$(comm -23 <(echo "$linked") "$list")
    [ -z "$missing" ] || fail "$file links to functions that $(basename "$list" .txt) lacks" "$missing" \
        "functions that not all releases have are looked up when the module is loaded (native/src/abi.rs)"
done
# A wrong name of a function that is looked up would lose what it is for, without a message.
newest_list=$(printf '%s\n' native/abi/envoy-*.txt | sort -V | tail -1)
named=$(grep -aoE 'envoy_dynamic_module_callback_[a-z0-9_]+' "$file" | sort -u)
missing=$(comm -23 <(echo "$named") "$newest_list")
[ -z "$missing" ] || fail "$file names functions that $(basename "$newest_list" .txt) lacks" "$missing"
[ "$(wc -l <<<"$named")" -gt "$(wc -l <<<"$linked")" ] || fail "$file looks up no function of Envoy" "expected some (native/src/abi.rs)"
say "$file: $(stat -c %s "$file") bytes, needs glibc $newest, links to $(wc -l <<<"$linked") functions of Envoy"
