# The service with its default model inside. Build: docker build -t constrained .
# PyPI's torch for Linux carries CUDA; --build-arg PIP_EXTRA_INDEX_URL=... names an index with the CPU's, which is far smaller.
FROM python:3.11-slim-bookworm AS build

RUN apt-get update \
    && apt-get install --yes --no-install-recommends make \
    && rm -rf /var/lib/apt/lists/*
ARG PIP_EXTRA_INDEX_URL
WORKDIR /app
COPY Makefile pyproject.toml README.md LICENSE requirements.lock requirements-model.lock ./
COPY constrained constrained
COPY api api
COPY schemas schemas
ENV XDG_CACHE_HOME=/app/cache HF_HUB_OFFLINE=1
RUN make model PYTHON=python3.11

FROM python:3.11-slim-bookworm

RUN useradd --system --create-home --uid 10001 constrained
COPY --from=build --chown=constrained /app /app
WORKDIR /app
USER constrained
# Kernels are compiled at the first start and kept in the cache.
ENV PATH=/app/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/app/cache \
    HF_HUB_OFFLINE=1 \
    CONSTRAINED_HOST=0.0.0.0 \
    CONSTRAINED_LOG_LEVEL=info \
    CONSTRAINED_LOG_FORMAT=json
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=120s --interval=15s --timeout=3s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz')"]
ENTRYPOINT ["constrained", "serve"]
