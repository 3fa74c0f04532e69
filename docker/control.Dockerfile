# The control service: the command `tidegate` and nothing else, as a user without rights.
#
#   docker build -f docker/control.Dockerfile --build-arg TIDEGATE_COMMIT="$(git rev-parse HEAD)" -t registry.example.com/tidegate/control:0.1.0 .

# By digest, of the index for all platforms; the tag is for people, and that of rust-toolchain.toml. docker/README.md
# says how to take another (make dockerfiles-check compares).
FROM rust:1.95.0-slim-bookworm@sha256:d7482085ff5b415f84dba5647ae71606650bdef00db7aeb69f4b3d170c3e4082 AS build
WORKDIR /tidegate
COPY . .
# What the program states about itself; git is not in the context.
ARG TIDEGATE_COMMIT=unknown
RUN cargo build --locked --release --package tidegate-control --bin tidegate

# glibc and libgcc of the same Debian as above; no shell, no package manager.
FROM gcr.io/distroless/cc-debian12:nonroot@sha256:9dac0a79194e45a7da0158a9c6da57b217585af0786db3845d1f0ec1a0dd182f
LABEL org.opencontainers.image.title="tidegate" \
      org.opencontainers.image.description="Control service of Tidegate, an adaptive circuit breaker and load shedder for Envoy" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /tidegate/target/release/tidegate /usr/bin/tidegate
# By number, so that Kubernetes can tell that it is not root.
USER 65532:65532
EXPOSE 18000 18080 18081
ENTRYPOINT ["/usr/bin/tidegate"]
CMD ["--help"]
