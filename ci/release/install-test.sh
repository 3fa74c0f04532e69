#!/usr/bin/env bash
# Installs from dist/release alone, in every way that is documented: ci/release/install-test.sh [COMMIT]
#
# With the install script from a web server on loopback, from a folder, and from files that somebody has changed; images and chart
# from a registry on loopback. COMMIT is what modules, programs and provenance must state, in full; a release of what was not committed
# then fails. The chart in a cluster is tested by control/tests/release.
set -euo pipefail
cd "$(dirname "$0")/../.."
. ci/say.sh
. ci/version.sh
. ci/release.env

commit=${1-}
release=$PWD/dist/release
[ -f "$release/SHA256SUMS" ] || fail "there is no dist/release" "make release builds it"
module=$(sha256sum <"$release/tidegate-$version.wasm" | cut -c1-64)
work=$(mktemp -d)
servers=()
finish() {
    for one in "${servers[@]}"; do kill "$one" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

passed=0 failed=0
# check WHAT COMMAND...
check() {
    # What the check before said, for one about it.
    cp "$work/said" "$work/before" 2>/dev/null || true
    if "${@:2}" >"$work/said" 2>&1; then
        say "ok: $1"
        passed=$((passed + 1))
    else
        say "FAILED: $1"
        sed 's/^/  /' "$work/said" | tail -n 20 >&2
        failed=$((failed + 1))
    fi
}
not() { ! "$@"; }

# serve WHAT LOG PATTERN COMMAND...: starts a server, and sets `port` to what PATTERN finds in its log.
serve() {
    "${@:4}" >"$2" 2>&1 &
    servers+=($!)
    port=
    for _ in $(seq 600); do
        port=$(sed -n "s/$3/\\1/p" "$2" | head -n 1)
        [ -z "$port" ] || return 0
        kill -0 "${servers[-1]}" 2>/dev/null || fail "$1 ended" "$(cat "$2")"
        sleep 0.1
    done
    fail "$1 did not start within a minute" "$(cat "$2")"
}

case $(uname -m) in
x86_64 | amd64) mine=amd64 other=arm64 machine='X86-64' foreign=AArch64 ;;
*) mine=arm64 other=amd64 machine=AArch64 foreign='X86-64' ;;
esac

# --- files -----------------------------------------------------------------------------------------------------------------
check "SHA256SUMS is true of every file" sh -c 'cd "$1" && sha256sum --check --quiet SHA256SUMS && [ "$(wc -l <SHA256SUMS)" = "$(find . -type f ! -name SHA256SUMS | wc -l)" ]' - "$release"
stated=$(module_version "${commit:-unknown}")
[ -n "$commit" ] || stated=$(grep -aoE "$version\+[0-9a-f]{7}(-dirty)?" "$release/tidegate-$version.wasm" | head -n 1) || true
check "the modules state version and commit" sh -c '[ -n "$0" ] || exit 1; for file; do grep -aqF "$0" "$file" || exit 1; done' "$stated" \
    "$release/tidegate-$version.wasm" "$release"/libtidegate-"$version"-linux-*.so
check "the provenance names every file by its checksum" python3 ci/release/provenance_test.py "$release" "$version" $commit

# --- the install script ----------------------------------------------------------------------------------------------------
script() { env -i PATH="$PATH" HOME="$work/home" sh "$release/install.sh" "$@"; }
is_installed() {
    local said of='[0-9a-z-]+'
    said=$("$1/bin/tidegate" --version)
    echo "$said"
    [[ $said =~ ^tidegate\ $version\ \(commit\ ${commit:-$of},\ module\ $version\ sha256:$module\)$ ]] &&
        cmp "$1/lib/tidegate/tidegate.wasm" "$release/tidegate-$version.wasm" &&
        cmp "$1/share/tidegate/crds.yaml" "$release/tidegate-crds-$version.yaml" &&
        [ -s "$1/share/man/man1/tidegate-serve.1" ] && [ -s "$1/share/bash-completion/completions/tidegate" ] &&
        [ -z "$(find "$1" -maxdepth 1 -name '.tidegate.*')" ]
}
is_empty() { [ ! -e "$1" ] || [ -z "$(find "$1" -mindepth 1)" ]; }

serve "the web server" "$work/http.log" '.*port \([0-9]*\).*' \
    python3 -u -m http.server 0 --bind 127.0.0.1 --directory "$release"
url=http://127.0.0.1:$port
check "the script installs from a URL into an empty folder" script --prefix "$work/url" --from "$url"
check "what it installed works, and states version, commit and module" is_installed "$work/url"
check "the command needs no library" sh -c '! readelf -l "$1" | grep -q INTERP && ! readelf -d "$1" | grep -q NEEDED' - "$work/url/bin/tidegate"
check "it validates a policy with what is installed" "$work/url/bin/tidegate" validate examples/standalone-ecds/policies
check "the script installs without a network from a folder" script --prefix "$work/folder" --from "$release"
check "the same is installed" diff -r "$work/url" "$work/folder"
check "the script installs over what is there" script --prefix "$work/folder" --from "$release"
check "the script installs into the home by itself" script --from "$release"
check "the same is installed there" diff -r "$work/url" "$work/home/.local"
check "the script fetches for another machine" script --prefix "$work/other" --from "$url" --arch "$other"
check "that is the other machine's program" sh -c 'readelf -h "$1" | grep -q "Machine:.*$2"' - "$work/other/bin/tidegate" "$foreign"
check "this one is this machine's" sh -c 'readelf -h "$1" | grep -q "Machine:.*$2"' - "$work/url/bin/tidegate" "$machine"

for file in "tidegate-$version-linux-$mine.tar.gz" "tidegate-files-$version.tar.gz"; do
    rm -rf "$work/changed"
    mkdir "$work/changed"
    cp "$release"/tidegate-*.tar.gz "$work/changed/"
    # One byte in the middle; the archive can still be read.
    python3 -c 'import sys; f = open(sys.argv[1], "r+b"); f.seek(0, 2); at = f.tell() // 2; f.seek(at); b = f.read(1)[0]; f.seek(at); f.write(bytes([b ^ 1]))' "$work/changed/$file"
    check "a changed $file is refused" not script --prefix "$work/refused" --from "$work/changed"
    check "its checksum is the reason" grep -q "wrong checksum of $file, nothing was installed" "$work/before"
    check "nothing is installed then" is_empty "$work/refused"
    rm "$work/changed/$file"
    check "a missing $file is refused" not script --prefix "$work/refused" --from "$work/changed"
    check "nothing is installed then either" is_empty "$work/refused"
done
check "a URL that has nothing is refused" not script --prefix "$work/refused" --from "$url/nothing"
check "nothing is installed from there" is_empty "$work/refused"

# --- the native module -----------------------------------------------------------------------------------------------------
native=$release/libtidegate-$version-linux-$mine.so
strange=$release/libtidegate-$version-linux-$other.so
needs() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | paste -sd ' '; }
check "the release has the native module for this machine" test -s "$native"
check "it has the one for the other machine as well" sh -c 'readelf -h "$1" | grep -q "Machine:.*$2"' - "$strange" "$foreign"
check "the script installed that one for the other machine" cmp "$strange" "$work/other/lib/tidegate/libtidegate.so"
check "the list of what is in that one names it by its checksum" sh -c 'grep -q "$(sha256sum <"$1" | cut -c1-64)" "$2"' - \
    "$strange" "$release/tidegate-native-$version-$other.cdx.json"
check "the script installed it" cmp "$native" "$work/url/lib/tidegate/libtidegate.so"
check "this machine's is for it" sh -c 'readelf -h "$1" | grep -q "Machine:.*$2"' - "$native" "$machine"
check "it needs the C library alone, not the compiler's" sh -c '! echo "$1" | tr " " "\n" | grep -Ev "^(libc|libm|libdl|libpthread|ld-linux.*)\.so"' - "$(needs "$native")"
check "it names no folder of this machine" sh -c '! grep -aqF -- "$1" "$2"' - "$PWD" "$native"
check "the list of what is in it names it by its checksum" sh -c 'grep -q "$(sha256sum <"$1" | cut -c1-64)" "$2"' - \
    "$native" "$release/tidegate-native-$version-$mine.cdx.json"
"$work/url/bin/tidegate" render examples/standalone-ecds/policies --policy edge --target native \
    --module "$work/url/lib/tidegate/libtidegate.so" -o json >"$work/filter.json" || true
check "the installed command renders Envoy's filter with it" test -s "$work/filter.json"
bootstrap() {
    python3 -c 'import json, sys
filters = [json.load(open(sys.argv[1])), {"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]
manager = {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
           "stat_prefix": "ingress", "route_config": {}, "http_filters": filters}
address = {"socket_address": {"address": "127.0.0.1", "port_value": 0}}
listener = {"address": address, "filter_chains": [{"filters": [{"name": "manager", "typed_config": manager}]}]}
print(json.dumps({"static_resources": {"listeners": [listener]}}))' "$work/filter.json" >"$work/envoy.json"
}
check "a bootstrap is made of that" bootstrap
ci/tools.sh
check "Envoy loads the installed module with it" .tools/bin/envoy --mode validate -c "$work/envoy.json"
sed -i 's/libtidegate\.so/libmissing.so/' "$work/envoy.json"
check "it does not without the file" not .tools/bin/envoy --mode validate -c "$work/envoy.json"

# --- images ----------------------------------------------------------------------------------------------------------------
ci/manifests-tools.sh crane chart
crane=$PWD/.tools/bin/crane
serve "the registry" "$work/registry.log" '.*serving on port \([0-9]*\).*' "$crane" registry serve --address 127.0.0.1:0
registry=127.0.0.1:$port/tidegate
check "images and chart are pushed to a registry" sh -c 'ci/release/push.sh "$1" >"$2"' - "$registry" "$work/pushed"
check "each of them says where its sources are" sh -c 'while read -r image; do "$1" manifest "$image" | grep -qF "\"org.opencontainers.image.source\":\"$2\"" || exit 1; done <"$3"' - \
    "$crane" "$RELEASE_SOURCE_URL" "$work/pushed"
digest_of() { awk -v name="$1" '$1 == name {print $2}' "$release/digests"; }
control=$registry/control@$(digest_of "control:$version")
for arch in amd64 arm64; do
    check "the control service is pulled for $arch by the digest that was written down" sh -c \
        '"$1" export --platform "linux/$2" "$3" - | tar -x -C "$(mkdir -p "$4/$2" && echo "$4/$2")"' - "$crane" "$arch" "$control" "$work/image"
    mkdir -p "$work/archive/$arch"
    tar -xzf "$release/tidegate-$version-linux-$arch.tar.gz" -C "$work/archive/$arch"
    check "its program is the released one for $arch" cmp "$work/image/$arch/usr/bin/tidegate" "$work/archive/$arch/bin/tidegate"
    check "it runs as a user without rights on $arch" sh -c \
        '"$1" config --platform "linux/$2" "$3" | python3 -c "import json, sys; c = json.load(sys.stdin); assert c[\"config\"][\"User\"] == \"65532:65532\" and c[\"architecture\"] == sys.argv[1] and c[\"os\"] == \"linux\"" "$2"' - "$crane" "$arch" "$control"
    check "nothing else is in it on $arch" sh -c '[ "$(cd "$1" && find . -type f | sort | paste -sd " ")" = "./etc/ssl/certs/ca-certificates.crt ./usr/bin/tidegate" ]' - "$work/image/$arch"
done
check "the pulled program runs" "$work/image/$mine/usr/bin/tidegate" --version
check "the registry and the layout agree" "$crane" validate --remote "$control"
# make conformance has Istio's proxies pull what ci/oci.py packs.
check "the image of the module is packed as the one that conformance pulls" sh -c \
    '[ "$(ci/oci.py "$1" "$2" "$3" | sed -n "s/^compat //p")" = "$4" ]' - "$release/tidegate-$version.wasm" "$version" "$work/oci" "$(digest_of "filter:$version")"
check "the module is pulled as Istio does, by its digest" sh -c '"$1" export "$2" - | tar -xO plugin.wasm | cmp - "$3"' - \
    "$crane" "$registry/filter@$(digest_of "filter:$version")" "$release/tidegate-$version.wasm"

# --- the chart -------------------------------------------------------------------------------------------------------------
layer() { python3 -c 'import json, sys; print(json.load(sys.stdin)["layers"][0]["digest"])'; }
chart=$registry/charts/tidegate
check "the chart in the registry is the archive" sh -c '"$1" blob "$2@$3" | cmp - "$4"' - "$crane" "$chart" \
    "$("$crane" manifest "$chart@$(digest_of "charts/tidegate:$version")" | layer)" "$release/tidegate-$version.tgz"
check "Helm's library renders the archive without any value" sh -c '.tools/bin/chart template "$1" >"$2"' - \
    "$release/tidegate-$version.tgz" "$work/objects.yaml"
check "it names the image of the service by its digest" grep -q "image: .*/control@$(digest_of "control:$version")" "$work/objects.yaml"
check "it names the module by its digest" grep -q "$(digest_of "filter:$version" | cut -d : -f 2)" "$work/objects.yaml"
tar -xzf "$release/tidegate-$version.tgz" -C "$work"
check "Helm's linter has no complaint" .tools/bin/chart lint "$work/tidegate"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
