#!/usr/bin/env bash
# Shows what takes the room in dist/tidegate.wasm: its sections and its largest functions.
#
# The release module carries no names, so that a copy packed with them is looked at.
set -euo pipefail
cd "$(dirname "$0")/.."

named=out/tidegate-names.wasm
mkdir -p out
"${CARGO_TARGET_DIR:-target}/debug/tidegate-pack" \
    "${CARGO_TARGET_DIR:-target}/wasm32-wasip1/wasm/tidegate_filter.wasm" "$named" \
    --keep ci/wasm-exports.keep --names >/dev/null
ci/size.py dist/tidegate.wasm "$named"
