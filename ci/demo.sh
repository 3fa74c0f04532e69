#!/usr/bin/env bash
# Builds what the demo needs and nothing more, and runs it: ci/demo.sh [option of the demo...]
#
# Envoy is fetched, and the module is compiled, while cargo shows how far the demo itself is: most of what is compiled
# comes one after another, which leaves a core for the rest. The profile `demo` and the features that are left out save
# half of the compiler's time; the module has the profile and the bytes that it has everywhere.
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/say.sh
. ci/jobs.sh

folder=${CARGO_TARGET_DIR:-target}

say "1/3 compiling the demo and the module, and fetching Envoy if it is not there (a minute or two on two cores, the first time)"
begin envoy ci/tools.sh
begin module ci/filter.sh compile
cargo build --locked --profile demo --no-default-features -p tidegate-testbed --bin demo -p tidegate-pack --bin tidegate-pack
say "2/3 packing the module"
await module
PACKER=$folder/demo/tidegate-pack ci/filter.sh release
await envoy
say "3/3 running the demo"
stop_jobs
exec "$folder/demo/demo" "$@"
