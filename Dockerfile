# Build: docker build -t turnfold .
# Run:   docker run -p 8787:8787 -v ./turnfold.yaml:/etc/turnfold/turnfold.yaml:ro turnfold
FROM python:3.12-slim AS build
WORKDIR /src
RUN python -m venv /opt/turnfold
COPY requirements.lock ./
RUN /opt/turnfold/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY config config
COPY providers providers
COPY gateway gateway
COPY turnfold turnfold
RUN /opt/turnfold/bin/pip install --no-cache-dir --no-deps .

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/turnfold --create-home turnfold
COPY --from=build /opt/turnfold /opt/turnfold
COPY config/turnfold.yaml /etc/turnfold/turnfold.yaml
ENV PATH=/opt/turnfold/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
WORKDIR /var/lib/turnfold
EXPOSE 8787 8788
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8787/healthz', timeout=2)"]
# On SIGTERM running streams end within server.shutdown_grace; give the container a little longer than that.
STOPSIGNAL SIGTERM
ENTRYPOINT ["turnfold"]
# --open: who reaches the container's port is decided by what publishes it. With a key of yours in the configuration, publish it to
# machines you trust alone.
CMD ["serve", "--config", "/etc/turnfold/turnfold.yaml", "--host", "0.0.0.0", "--open", "--log-format", "json"]
