#!/usr/bin/env bash
# Pushes the module to a registry on loopback in both layouts, pulls it back, and compares the bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh

work=$(mktemp -d)
registry=
finish() {
    [ -z "$registry" ] || kill "$registry" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

passed=0
same() {
    cmp "$2" "$3" || fail "$1: the bytes differ"
    say "ok: $1"
    passed=$((passed + 1))
}

ci/manifests-tools.sh crane
crane=$PWD/.tools/bin/crane
"$crane" registry serve --address 127.0.0.1:0 >"$work/log" 2>&1 &
registry=$!
port=
for _ in $(seq 600); do
    port=$(sed -n 's/.*serving on port \([0-9]*\).*/\1/p' "$work/log")
    [ -z "$port" ] || break
    kill -0 "$registry" 2>/dev/null || fail "the registry ended" "$(cat "$work/log")"
    sleep 0.1
done
[ -n "$port" ] || fail "the registry did not start within a minute" "$(cat "$work/log")"
repository=127.0.0.1:$port/tidegate/filter

ci/oci.sh push "$repository" >"$work/printed"
cp -r out/oci "$work/first"
ci/oci.sh
diff -r "$work/first" out/oci || fail "packing twice gave two images"
say "ok: packing twice gives the same bytes"
passed=$((passed + 1))

url=$(sed -n 's/^url: oci:\/\///p' "$work/printed")
digest=$(sed -n 's/^sha256: //p' "$work/printed")
# By the digest that was printed, as a proxy asks for it.
"$crane" manifest "${url%:*}@sha256:$digest" >"$work/manifest.json"
layer() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["layers"][-1][sys.argv[2]])' "$@"; }

[ "$(layer "$work/manifest.json" mediaType)" = application/vnd.oci.image.layer.v1.tar+gzip ] ||
    fail "the compatible layout has another last layer" "$(cat "$work/manifest.json")"
"$crane" blob "${url%:*}@$(layer "$work/manifest.json" digest)" | tar -xzO plugin.wasm >"$work/compat.wasm"
same "the module in the compatible layout" dist/tidegate.wasm "$work/compat.wasm"

"$crane" manifest "$url-artifact" >"$work/manifest.json"
[ "$(layer "$work/manifest.json" mediaType)" = application/vnd.module.wasm.content.layer.v1+wasm ] ||
    fail "the artifact layout has another last layer" "$(cat "$work/manifest.json")"
"$crane" blob "${url%:*}@$(layer "$work/manifest.json" digest)" >"$work/artifact.wasm"
same "the module in the artifact layout" dist/tidegate.wasm "$work/artifact.wasm"

# A changed module is another image.
printf '\0' | cat dist/tidegate.wasm - >"$work/other.wasm"
ci/oci.py "$work/other.wasm" 0.0.0 "$work/other" | cut -d ' ' -f 2 | while read -r other; do
    ! grep -q "$other" out/oci/digests || fail "another module has the same digest"
done
say "ok: another module has another digest"
passed=$((passed + 1))

echo "$passed passed, 0 failed"
