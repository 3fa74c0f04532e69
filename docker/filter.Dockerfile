# The module as an image of one layer with plugin.wasm, as Istio and Envoy Gateway take it.
#
#   docker build -f docker/filter.Dockerfile -t registry.example.com/tidegate/filter:0.1.0 .
#
# `make oci` packs the same module without Docker, and to the same digest on every machine; an image that is
# built here has times in it. The module itself has the same bytes either way (ci/reproducible.sh).

# By tag and not by digest, because this repository's checks reach no registry of images. To pin it for good:
# crane digest rust:1.95.0-slim-bookworm. The tag is that of rust-toolchain.toml (make dockerfiles-check compares).
FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /tidegate
COPY . .
RUN ci/rust.sh && ci/filter.sh release

FROM scratch
LABEL org.opencontainers.image.title="tidegate" \
      org.opencontainers.image.description="Adaptive circuit breaker and load shedder for Envoy" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /tidegate/dist/tidegate.wasm /plugin.wasm
