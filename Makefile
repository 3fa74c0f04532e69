# Everything a person or CI does with this repository is a target here; `make` alone lists them.
# Recipes longer than two lines are scripts in ci/.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# --- what can be set on the command line ---------------------------------------------------------
# SECONDS is a variable of bash itself, so that make must not export its own.
unexport SECONDS
override DEMO_SECONDS := $(if $(filter command line,$(origin SECONDS)),$(SECONDS),60)
override FUZZ_SECONDS := $(DEMO_SECONDS)
override CHAOS_SECONDS := $(if $(filter command line,$(origin SECONDS)),$(SECONDS),120)
SCENARIOS ?= all
VARIANTS ?= all
REPEAT ?= 1
SCALE ?= 1
CONTENDERS ?= all
SEEDS ?= 1
# More options for the binaries behind demo, sim and its kin, bench and bench-cost: ARGS=--help lists them.
ARGS ?=
# The cargo profile of those binaries.
PROFILE ?= release
PROFILE_FOLDER = $(if $(filter dev,$(PROFILE)),debug,$(PROFILE))

CARGO := cargo
# Without -p, so that dependencies have the features that the tests compiled them with.
RUN = $(CARGO) run --locked --profile $(PROFILE) --bin

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  \033[1m%-16s\033[0m %s\n", $$1, $$2} /^## / {printf "\n%s\n", substr($$0, 4)}' $(MAKEFILE_LIST)

## See it work
.PHONY: demo sim sim-compare sim-limits sim-sweep sim-sweep-accept sim-healthy sim-adversaries sim-chaos sim-ablate sim-fleet bench bench-cost
ifeq ($(origin PROFILE),file)
demo: rust ## One minute of overload and outage, with and without Tidegate (SECONDS=60)
	@ci/demo.sh --seconds $(DEMO_SECONDS) $(ARGS)
else
# With the profile of something that is compiled anyway, such as that of the tests.
demo: module tools
	@$(RUN) demo -- --seconds $(DEMO_SECONDS) $(ARGS)
endif

bench: module tools ## Score scenarios on real sockets (SCENARIOS=a,b VARIANTS=c,d REPEAT=3 SCALE=0.5)
	@$(RUN) bench -- --scenarios $(SCENARIOS) --variants $(VARIANTS) --repeat $(REPEAT) --scale $(SCALE) --out out/bench $(ARGS)

sim: rust ## Play scenarios in the simulated world (ARGS="run outage", ARGS=list)
	@$(CARGO) run --locked --quiet --profile $(PROFILE) -p tidegate-sim -- $(if $(ARGS),$(ARGS),list)

sim-compare: rust ## Compare the rivals in the simulated world (SCENARIOS=a,b CONTENDERS=c,d SEEDS=3 ARGS=--check)
	@$(CARGO) run --locked --quiet --profile $(PROFILE) -p tidegate-sim -- compare \
		--scenarios $(SCENARIOS) --contenders $(CONTENDERS) --seeds $(SEEDS) --out out/sim-compare $(ARGS)

sim-limits: rust ## Check that no rival is ahead except where sim/limits.toml allows it, in half an hour; one scenario takes seconds (SCENARIOS=a,b ARGS=--write)
	@$(CARGO) run --locked --quiet --profile $(PROFILE) -p tidegate-sim -- compare --limits \
		--scenarios $(if $(filter all,$(SCENARIOS)),"$$(ci/adversaries.py others)",$(SCENARIOS)) --out out/sim-limits $(ARGS)

sim-sweep: rust ## Check that Tidegate is ahead on 200 random services and stories, in some minutes (ARGS="--proxies some")
	@$(CARGO) run --locked --quiet --profile $(PROFILE) -p tidegate-sim -- sweep --check --out out/sim-sweep $(ARGS)

sim-sweep-accept: rust ## Check 400 random stories that cannot be chosen against sim/targets.toml (ARGS="--contenders tidegate,bbr")
	@$(CARGO) run --locked --quiet --profile $(PROFILE) -p tidegate-sim -- sweep --accept --out out/sim-sweep-accept $(ARGS)

sim-healthy: rust ## Play 1,374 services that are never overloaded, and show how much is shed, in half a minute (ARGS="slower pauses")
	@$(CARGO) build --locked --quiet --profile $(PROFILE) -p tidegate-sim --bin tidegate-sim
	@ci/healthy.py "$${CARGO_TARGET_DIR:-target}/$(PROFILE_FOLDER)/tidegate-sim" $(ARGS)

sim-adversaries: rust ## Play all scenarios with adversaries against three rivals, in some minutes (ARGS=--write also updates the page)
	@$(CARGO) run --locked --quiet --profile $(PROFILE) -p tidegate-sim -- compare --seeds 3 --out out/sim-adversaries \
		--scenarios "$$(ci/adversaries.py scenarios)" --contenders "$$(ci/adversaries.py contenders)" >/dev/null
	@ci/adversaries.py judge out/sim-adversaries/compare.json $(ARGS)

sim-chaos: rust ## Play 1000 random stories in the simulator, each with and without faults (ARGS="--seed 2 --stories 100")
	@$(CARGO) run --locked --quiet --profile $(PROFILE) -p tidegate-sim -- chaos --out out/sim-chaos $(ARGS)

sim-ablate: rust ## Measure what each mechanism of the laws is worth, in half an hour (ARGS="--mechanisms a,b --stories 40")
	@$(CARGO) run --locked --quiet --profile $(PROFILE) -p tidegate-sim --features ablation -- ablate \
		--commit "$$(git rev-parse --short=7 HEAD)" --out out/sim-ablate $(ARGS)

sim-fleet: rust ## Play a fleet of 10,000 proxies with 1,000,000 requests a second, and check it (ARGS=--help)
	@$(CARGO) run --locked --quiet --profile $(PROFILE) -p tidegate-sim -- fleet --check --rest-at 0.1 \
		--scenario overload,steady,outage,half-lost,unequal --topology sidecars,waypoint,waypoints-4 --out out/sim-fleet $(ARGS)

bench-cost: module native tools ## Measure instructions per request: none, adaptive_concurrency, an empty module, native, WebAssembly
	@$(RUN) cost -- $(ARGS)

.PHONY: bench-balance
bench-balance: native tools ## Compare load reports with round robin and outlier detection: one slow server of four, in five minutes (ARGS=--help)
	@$(RUN) balance -- $(ARGS)

.PHONY: playground playground-build
PORT ?= 8020
playground: playground-build ## Play with load and service in a browser, at 127.0.0.1 (PORT=8020)
	@ci/playground_serve.py out/playground $(PORT)

playground-build: rust ## Build only the playground's page, into out/playground
	@ci/playground.sh

.PHONY: demo-control bench-control
demo-control: module tools ## Change a policy twice under load, and watch an Envoy follow
	@$(CARGO) run --locked --profile $(PROFILE) --package tidegate-control --example demo_control

bench-control: rust ## Measure the control service with 2,000 proxies, and keep the figures in out/ (ARGS=--help)
	@$(CARGO) build --locked --profile $(PROFILE) --package tidegate-control --bin tidegate
	@$(CARGO) run --locked --profile $(PROFILE) --package tidegate-control --example bench_control -- --out out/bench-control.json $(ARGS)

.PHONY: demo-graph
demo-graph: module tools ## Derive a service graph and a policy from a chain's traffic, and show the policy's effect (ARGS=--stay; builds Prometheus with Go, once)
	@ci/prometheus.sh prometheus
	@$(CARGO) run --locked --profile $(PROFILE) --package tidegate-control --example demo_graph -- $(ARGS)

.PHONY: demo-graph-test
demo-graph-test: module tools ## Check what `make demo-graph` promises, on its page in a headless Chromium, in two minutes (ARGS=picture.png)
	@ci/prometheus.sh prometheus
	@ci/chromium.sh
	@$(CARGO) build --locked --profile $(PROFILE) --package tidegate-control --bin tidegate --example demo_graph
	@folder=$${CARGO_TARGET_DIR:-target}/$(PROFILE_FOLDER) && \
		ci/demo_graph_test.py "$$folder/examples/demo_graph" "$$folder/tidegate" .tools/bin/chromium $(ARGS)

## Load tests
.PHONY: loadtest loadtest-k6 loadtest-capacity loadtest-capacity-test loadtest-report loadtest-compare
loadtest: module tools tools-load ## Repeat published experiments, in half an hour (STUDIES=a,b CELLS=text REPEAT=3 FULL=1 NATIVE=1 RESUME=1 NAME=run)
	@$(RUN) tidegate-loadtests -- run $(if $(STUDIES),--studies $(STUDIES)) $(if $(CELLS),--cells "$(CELLS)") $(if $(FULL),--full) $(if $(NATIVE),--native) \
		--repeat $(REPEAT) $(if $(RESUME),--resume) $(if $(NAME),--name $(NAME)) $(ARGS)

# The stage needs the module and Envoy; an address from outside needs neither.
loadtest-k6: $(if $(BASE_URL)$(if $(ENVIRONMENT),$(shell grep -s '"BASE_URL"' "$(ENVIRONMENT)")),rust,module tools) ## Play the k6 scenarios on a stage, or against BASE_URL=http://... (TESTS=smoke,outage REPEAT=3)
	@ci/load.sh k6
	@BASE_URL="$(BASE_URL)" $(RUN) tidegate-loadtests -- k6 --tests $(or $(TESTS),all) --repeat $(REPEAT) --out $(or $(OUT),out/k6) $(ARGS)

loadtest-capacity: ## Find the capacity of BASE_URL=http://... with k6 (TO_RATE=1000 SLO_MS=300)
	@ci/load.sh k6
	@BASE_URL="$(BASE_URL)" .tools/bin/k6 run --quiet --no-usage-report loadtests/k6/capacity.js

loadtest-capacity-test: ## Test the search for the capacity and the settings of the k6 scenarios, in a minute
	@ci/load.sh k6
	@ci/k6_capacity_test.py .tools/bin/k6

loadtest-report: rust ## Write one page from the results of load tests (RUNS="out/loadtests/a out/k6 out/bench" OUT=out/report)
	@$(RUN) tidegate-loadtests -- report $(or $(RUNS),$(wildcard out/loadtests/*/) $(wildcard out/k6) $(patsubst %/,%,$(dir $(wildcard out/bench/runs.jsonl)))) $(if $(OUT),--out $(OUT)) $(ARGS)

loadtest-compare: rust ## Show which differences between two runs are more than noise (A=out/loadtests/a B=out/loadtests/b)
	@$(RUN) tidegate-loadtests -- compare $(or $(A),$(error A=: the folder of the first run)) $(or $(B),$(error B=: the folder of the second run)) $(if $(OUT),--out $(OUT)) $(ARGS)

## Build
.PHONY: filter module native tools tools-load tools-kube tools-mesh rust size
filter: rust ## Build dist/tidegate.wasm, and dist/tidegate-test.wasm for the tests
	@ci/filter.sh

module: rust ## Build only dist/tidegate.wasm
	@ci/filter.sh release

native: rust ## Build dist/libtidegate.so, the native module, the one for the other kind of machine (arm64 or amd64), and one for tests
	@ci/native.sh release other test

tools: rust ## Install Envoy as .tools/bin/envoy, from the cache if it is there
	@ci/tools.sh

tools-load: ## Build fortio and k6 with Go into .tools/bin, or take them from the cache
	@ci/load.sh

tools-kube: ## Build kube-apiserver and etcd with Go into .tools/bin, or take them from the cache
	@ci/mesh.sh etcd kube-apiserver

tools-mesh: ## Build what conformance needs: also istiod, pilot-agent, the controller-manager and a registry
	@ci/mesh.sh etcd kube-apiserver kube-controller-manager pilot-discovery pilot-agent istioctl
	@ci/manifests-tools.sh crane

.PHONY: manifests oci oci-push sbom
manifests: ## Render the generated files in manifests/ from the chart (needs Go, once)
	@ci/manifests.sh write

oci: module ## Pack the module as OCI images in out/oci, the same bytes everywhere
	@ci/oci.sh

oci-push: module ## Push the OCI images: REPOSITORY=registry.example.com/tidegate/filter (needs Go, once)
	@ci/oci.sh push $(REPOSITORY)

sbom: module ## List the content of both images, as CycloneDX in out/sbom
	@ci/sbom.py filter dist/tidegate.wasm out/sbom/filter.cdx.json
	@ci/sbom.py control out/sbom/control.cdx.json

.PHONY: release release-push release-check release-install-test release-kube-test release-test
release: rust ## Build all files of a release into dist/release: programs, images, chart, checksums, provenance
	@ci/release.sh

release-check: release ## Build a release of what is committed, and test it (needs Go, once)
	@$(MAKE) release-install-test COMMIT="$$(git rev-parse HEAD)"
	@$(MAKE) release-kube-test

release-push: ## Push the images and the chart of a release to a registry (REGISTRY=registry.example.com/tidegate; needs Go, once)
	@ci/release/push.sh $(REGISTRY)

rust: ## Install the pinned Rust toolchain and its targets, if missing
	@ci/rust.sh

size: module ## Show what takes up space in dist/tidegate.wasm
	@ci/size.sh

## Test
# Property tests draw the same inputs each time: what chance finds must not fail somebody's change. `make properties` and
# `make fuzz` look further.
export PROPTEST_RNG_SEED ?= 1
export BOLERO_RANDOM_SEED ?= 1
PROPERTY_CASES ?= 100000

.PHONY: test test-scores test-ablation e2e e2e-native test-native chaos test-kube properties
test: rust ## Run the tests: unit, property, end to end in a real Envoy; the rest of the scored runs is `make test-scores`
	@ci/test.sh

test-scores: tools filter ## Play the scored runs that `make test` leaves out, in two minutes (TESTS=name selects some)
	@ci/test-scores.sh $(TESTS)

test-ablation: rust ## Test what turns single mechanisms of the laws off
	$(CARGO) test --locked -p tidegate-core -p tidegate-sim --features tidegate-sim/ablation --lib --bins ablat

properties: rust ## Run the property tests on inputs that no run has seen (PROPERTY_CASES=100000)
	@ci/properties.sh $(PROPERTY_CASES)

e2e: tools filter ## Run only the end-to-end tests of `make test` (TESTS=name selects some)
	$(CARGO) test --locked --workspace --test e2e -- $(TESTS)

e2e-native: tools filter rust ## Run the end-to-end tests with the native module instead of the WebAssembly module (TESTS=name selects some)
	@ci/native.sh release test
	@ci/e2e-native.sh $(TESTS)

test-native: tools module native ## Test the native module served by the control service, and as `tidegate render` prints it
	$(CARGO) test --locked --workspace --test serving -- --ignored native::

chaos: tools filter ## Inject faults from a seed into real processes, and check invariants (SEED=1 SECONDS=120 FAULTS=a,b)
	@$(CARGO) build --locked --profile $(PROFILE) --bin tidegate --bin chaos
	@$(RUN) chaos -- --seed $(or $(SEED),1) --seconds $(CHAOS_SECONDS) $(if $(FAULTS),--faults $(FAULTS)) $(ARGS)

test-kube: tools-kube rust ## Test against a real Kubernetes API server (TESTS=name selects some)
	$(CARGO) test --locked --workspace --test kube -- $(TESTS)

.PHONY: conformance
conformance: tools tools-mesh module ## Test in a mesh: real istiod, API server and Envoys (TESTS=name selects some)
	@# The tests run without a network, and list the dependencies of a release: all must be there.
	@$(CARGO) fetch --locked --quiet
	$(CARGO) test --locked --workspace --config "target.'cfg(unix)'.runner = ['$(CURDIR)/ci/own-network.sh']" \
		--test conformance -- $(TESTS)

.PHONY: graph-prometheus
graph-prometheus: tools filter ## Test `tidegate graph` and `tidegate score` with a real Prometheus and Envoys (builds Prometheus with Go, once)
	@ci/prometheus.sh prometheus
	$(CARGO) test --locked --workspace --test graph -- $(TESTS)

.PHONY: fuzz
fuzz: rust ## Fuzz each target with libFuzzer for the given time (SECONDS=600 TARGETS=a,b=60 ARGS=--list)
	@ci/fuzz.py --seconds $(FUZZ_SECONDS) --targets $(or $(TARGETS),all) $(ARGS)

.PHONY: test-page
test-page: rust ## Test the control service's page in a headless Chromium, which it fetches
	@ci/chromium.sh
	$(CARGO) test --locked --workspace --test serving -- --ignored page::

.PHONY: playground-test
playground-test: playground-build ## Test the playground in a headless Chromium, which it fetches, and compare it with the simulator (PICTURES=folder)
	@ci/chromium.sh
	$(CARGO) test --locked -p tidegate-playground
	$(CARGO) clippy --locked -p tidegate-playground --target wasm32-unknown-unknown -- -D warnings
	@$(CARGO) build --locked -p tidegate-sim
	@ci/playground_test.py out/playground "$${CARGO_TARGET_DIR:-target}/debug/tidegate-sim" .tools/bin/chromium $(PICTURES)

.PHONY: test-oci
test-oci: module ## Push the module to a registry on loopback, pull it back, and compare
	@ci/oci-test.sh

release-install-test: ## Test installing from dist/release alone: by script, from a registry, with changed files (COMMIT=hash must be what was built; needs Go, once)
	@ci/release/install-test.sh $(COMMIT)

release-kube-test: rust tools-kube ## Install a release's chart with Helm into a real API server, and run its program there (needs Go, once)
	@ci/helm.sh
	$(CARGO) test --locked --workspace --test release -- $(TESTS)

release-test: rust ## Build the release twice, compare all bytes, and install from it; takes most of an hour
	@ci/release-test.sh

.PHONY: compat
compat: tools filter rust ## Run some of the end-to-end tests on every supported Envoy, with both modules (VERSIONS="1.36.4 1.39.3")
	@ci/native.sh release test
	@ci/compat.sh $(VERSIONS)

.PHONY: fresh
fresh: ## Prove that targets work with an empty home and cache, each in a new clone of HEAD (TARGETS="demo test"; takes hours for all)
	@ci/fresh.sh $(TARGETS)

.PHONY: models miri
models: rust ## Explore all states of the models of workers and breaker, including the larger ones, in some minutes
	@ci/models.sh

miri: rust ## Run the filter's unsafe code under Miri (installs a nightly toolchain once)
	@ci/miri.sh

## Check
.PHONY: manifests-check dockerfiles-check workflows-check
manifests-check: rust ## Check manifests/ and examples/ against chart, schemas, filter, and Istio (needs Go, once)
	@ci/manifests.sh check

workflows-check: ## Lint .github/workflows with actionlint, and check that actions are pinned (needs Go, once)
	@ci/workflows.sh

dockerfiles-check: rust ## Lint docker/, and check the build context
	@ci/dockerfiles.sh

.PHONY: check fmt fmt-check lint clippy rustdoc layers scripts-check docs docs-check docs-run dashboards dashboards-check trip-test coverage deny advisories
check: lint scripts-check module ## Run `make lint` and the checks of scripts and of the built module: all except the tests and `make deny`; needs no network
	@echo "check: all is well"

fmt: rust ## Format the code
	$(CARGO) fmt --all

fmt-check: rust ## Check the format
	$(CARGO) fmt --all --check

lint: fmt-check clippy rustdoc layers docs-check ## Run all checks that only read the sources; needs no network
	@if ci/workflows.sh --cached; then ci/workflows.sh; else echo "lint: left out the workflows: make workflows-check builds actionlint, once"; fi

clippy: rust ## Run clippy on the host, and for the filter on wasm32-wasip1
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked --workspace --test e2e --test laboratory --test kube --test conformance --test graph --test release -- -D warnings
	$(CARGO) clippy --locked -p tidegate-core -p tidegate-sim --features tidegate-sim/ablation --all-targets -- -D warnings
	$(CARGO) clippy --locked -p tidegate-testbed --no-default-features --bin demo -- -D warnings
	$(CARGO) clippy --locked -p tidegate-filter --target wasm32-wasip1 --all-features -- -D warnings

rustdoc: rust ## Check the links and the form of the documentation comments
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps

layers: rust ## Check which crates each crate may depend on, that files have no circular imports, no two types one name, and programs and tests the same features
	@ci/layers.sh
	@ci/circles_test.py
	@ci/circles.py
	@ci/names_test.py
	@ci/names.py
	@ci/features_test.py
	@ci/features.py

scripts-check: ## Test the scripts that publish a release, with fake programs
	@ci/release_test.py

docs: rust ## Write the generated references and benchmark tables in docs/
	@ci/generate.sh
	@ci/bench-tables.py
	@ci/chart_reference.py

docs-check: rust ## Check that generated files are up to date, and paths, links and targets in *.md
	@ci/generate.sh --check
	@ci/bench-tables.py --check
	@ci/chart_reference_test.py
	@ci/chart_reference.py --check
	@ci/adversaries.py check
	@ci/docs_test.py
	@ci/access_log_test.py
	@ci/access_log.py
	@ci/dependencies_test.py
	@ci/dependencies.py
	@ci/site_test.py
	@ci/docs.py
	@ci/fresh.sh --check

docs-run: module tools ## Run the commands in documents, and check the options that they name
	@$(CARGO) build --locked --bin tidegate
	@ci/docs_flags.py "$${CARGO_TARGET_DIR:-target}/debug/tidegate"
	@ci/docs-run.py

dashboards: ## Write the generated dashboard
	@ci/dashboards.sh --write

dashboards-check: ## Check and test the dashboard, the rules and the graph's queries (builds promtool with Go, once)
	@ci/dashboards.sh

trip-test: ## Compute the figures of docs/laws/evidence.md from the code's constants
	@ci/evidence.py

.PHONY: examples-check
examples-check: ## Check the compose files of the examples (needs Go, once)
	@ci/compose.sh

coverage: rust ## Check that the tests of core run 95 % of its lines (builds cargo-llvm-cov once; ARGS="filter+worker=85 control=85" measures others)
	@ci/coverage.sh $(ARGS)

deny: rust ## Check licenses, sources and banned crates (builds cargo-deny once)
	@ci/deny.sh

advisories: rust ## Check dependencies against the advisory database; needs the network
	@ci/deny.sh advisories

.PHONY: govulncheck
govulncheck: ## Check tools that are built with Go against Go's vulnerability database; needs the network
	@ci/govulncheck.sh

## Documentation site
.PHONY: site site-serve site-test screenshots
site: ## Build the documentation site from docs/ in out/site, and check its links (fetches mdBook and mermaid once)
	@ci/site.sh build

site-serve: ## Build the documentation site, and serve it on loopback (PORT=8000)
	@ci/site.sh serve $(PORT)

site-test: site ## Test the built site in a headless Chromium, which it fetches: own requests only, no complaints, playground, search
	@ci/chromium.sh
	@ci/site_browser_test.py out/site .tools/bin/chromium

screenshots: module tools playground-build ## Take the screenshots in docs/images again, in a headless Chromium (ARGS="--only page,cli"; builds Prometheus with Go, once)
	@$(CARGO) build --locked --profile $(PROFILE) --bin tidegate --bin demo
	@$(CARGO) build --locked --profile $(PROFILE) --package tidegate-control --example demo_graph
	@ci/prometheus.sh prometheus
	@ci/chromium.sh
	@ci/screenshots.py --profile $(PROFILE) $(ARGS)

## Tidy up
.PHONY: clean
clean: ## Remove everything built here; keep the cache outside the clone
	$(CARGO) clean
	rm -rf dist out .tools
