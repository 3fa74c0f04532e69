# The control service: the command `tidegate` and nothing else, as a user without rights.
#
#   docker build -f docker/control.Dockerfile -t registry.example.com/tidegate/control:0.1.0 .

# By tag and not by digest, because this repository's checks reach no registry of images. To pin both for good:
# crane digest rust:1.95.0-slim-bookworm, crane digest gcr.io/distroless/cc-debian12:nonroot. The tag is that of
# rust-toolchain.toml (make dockerfiles-check compares).
FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /tidegate
COPY . .
RUN cargo build --locked --release --package tidegate-control --bin tidegate

# glibc and libgcc of the same Debian as above; no shell, no package manager.
FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="tidegate" \
      org.opencontainers.image.description="Control service of Tidegate, an adaptive circuit breaker and load shedder for Envoy" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /tidegate/target/release/tidegate /usr/bin/tidegate
# By number, so that Kubernetes can tell that it is not root.
USER 65532:65532
EXPOSE 18000 18080 18081
ENTRYPOINT ["/usr/bin/tidegate"]
CMD ["--help"]
