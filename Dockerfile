# Builds Heliostat and runs it; docs/docker.md says which capabilities the container needs, and why.
FROM rust:1-bookworm AS build
WORKDIR /src
COPY Cargo.toml Cargo.lock build.rs ./
# Cargo wants the files of every target that Cargo.toml names; the shipped files become part of the program.
COPY topologies topologies
COPY policies policies
COPY workloads workloads
COPY python/heliostat python/heliostat
COPY benches benches
COPY spark spark
COPY src src
RUN cargo build --release --locked --bin heliostat && strip target/release/heliostat

FROM debian:bookworm-slim
# For `heliostat exec`: people's own tools inside the hosts. The binary itself needs none of them.
RUN apt-get update \
    && apt-get install -y --no-install-recommends iperf3 iproute2 iputils-ping \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/target/release/heliostat /usr/local/bin/heliostat
COPY topologies /etc/heliostat/topologies
COPY policies /etc/heliostat/policies
COPY workloads /etc/heliostat/workloads
WORKDIR /etc/heliostat
STOPSIGNAL SIGTERM
ENTRYPOINT ["heliostat"]
CMD ["run", "topologies/hybrid-8x2.yaml", "--policy", "policies/c-through.yaml"]
