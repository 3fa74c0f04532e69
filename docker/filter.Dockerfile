# The module as an image of one layer with plugin.wasm, as Istio and Envoy Gateway take it.
#
#   docker build -f docker/filter.Dockerfile --build-arg TIDEGATE_COMMIT="$(git rev-parse HEAD)" -t registry.example.com/tidegate/filter:0.1.0 .
#
# `make oci` packs the same module without Docker, and to the same digest on every machine; an image that is
# built here has times in it. The module itself has the same bytes either way (ci/reproducible.sh), if both state the same commit.

# By digest, of the index for all platforms; the tag is for people, and that of rust-toolchain.toml. docker/README.md
# says how to take another (make dockerfiles-check compares).
FROM rust:1.95.0-slim-bookworm@sha256:d7482085ff5b415f84dba5647ae71606650bdef00db7aeb69f4b3d170c3e4082 AS build
WORKDIR /tidegate
COPY . .
# What the module states about itself; git is not in the context.
ARG TIDEGATE_COMMIT=unknown
RUN ["bash", "-euc", ". ci/say.sh; . ci/version.sh; TIDEGATE_VERSION=$(module_version \"$TIDEGATE_COMMIT\"); export TIDEGATE_VERSION; ci/rust.sh; ci/filter.sh release"]

FROM scratch
LABEL org.opencontainers.image.title="tidegate" \
      org.opencontainers.image.description="Adaptive circuit breaker and load shedder for Envoy" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /tidegate/dist/tidegate.wasm /plugin.wasm
