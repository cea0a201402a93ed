# PostgreSQL's image with the extension: docker build --build-arg PG=17 --tag pg_neardup .
ARG PG=19

FROM docker.io/library/postgres:${PG}-trixie AS build
ARG PG
RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential ca-certificates clang libclang-dev \
        postgresql-server-dev-${PG} rustup \
    && rm --recursive /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN version="$(sed --quiet 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml | sort --version-sort | tail -1)" \
    && rustup toolchain install --profile minimal "$version" && rustup default "$version" \
    && cargo xtask package --pg ${PG}

# The extension alone, to be mounted at the paths in extension_control_path and dynamic_library_path:
# docker build --target extension
FROM scratch AS extension
COPY --from=build /source/target/image/ /

FROM docker.io/library/postgres:${PG}-trixie
RUN --mount=type=bind,from=build,source=/source/target/dist,target=/packages dpkg --install /packages/*.deb
