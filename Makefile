# Every target creates what it needs in .venv by itself; python3 (3.11 to 3.14), make and g++ are all that must be there.

PYTHON  ?= python3
WORKERS ?= 2
ARGS    ?=

BIN   := .venv/bin
STAMP := .venv/installed
AIMET := .venv-aimet/installed
ATTENTION := .venv-attention/installed
SITE  := .venv-docs/installed
FRAMEWORKS := .venv-frameworks/installed
EXPLORER := .venv-explorer/installed

.DEFAULT_GOAL := help
.PHONY: help demo test slow mutated search attention check format docs pages sbom bench models providers aimet explorer frameworks clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(STAMP) ## Show the whole job on a real photo network: convert, quantize, compile, run, report
	@$(BIN)/openqnn demo build/demo

test: $(STAMP) models providers ## Run the tests (ARGS="tests/ops -x" to choose, WORKERS=4 for more processes)
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

slow: $(STAMP) models providers ## Run the long sweeps that `make test` leaves out
	$(BIN)/python -m pytest -n $(WORKERS) --maxschedchunk=1 -m slow -v --durations=15 $(ARGS)

mutated: $(STAMP) ## Give 10,000 mutated files of every kind to the tools that read them
	$(BIN)/python -m pytest -n $(WORKERS) -m slow -v tests/fuzz/test_every_kind.py $(ARGS)

search: $(STAMP) ## Hold random small graphs against libQnnHtp: OPENQNN_SEEDS=100-200 make search
	$(BIN)/python -m pytest -n $(WORKERS) -m slow -v tests/htp/test_random_graphs.py $(ARGS)

attention: $(ATTENTION) $(STAMP) models ## Export attention models by torch, and hold them against libQnnHtp
	.venv-attention/bin/python tests/models/export_attention.py \
	  $$($(BIN)/python -c "from tests.htp.attention_models import folder; print(folder())")
	$(BIN)/python -m pytest -n $(WORKERS) --maxschedchunk=1 -m slow -v tests/htp/test_attention_models.py $(ARGS)

check: $(STAMP) ## Lint, formatting, types and import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports

format: $(STAMP) ## Format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(SITE) $(STAMP) models ## Build the site into build/site, and run every code block of the pages
	.venv-docs/bin/sphinx-build -q -E -W --keep-going -c docs/site . build/site
	$(BIN)/python -m pytest -q -m "slow or not slow" tests/docs $(ARGS)
	@echo "open build/site/index.html in a browser"

pages: $(STAMP) ## Write the pages anew that are generated from the code
	@for page in tests.map_page tests.errors_page tests.ops.page tests.cli.flags.page tests.docs.reference_pages \
	  tests.docs.schema_pages; do $(BIN)/python -m $$page; done

sbom: ## List what `pip install openqnn` brings, with versions and licences, in build/sbom.cdx.json (CycloneDX)
	@rm -rf .venv-sbom && $(PYTHON) -m venv --without-pip .venv-sbom && mkdir -p build
	@$(PYTHON) -m venv .venv-sbom-tool && .venv-sbom-tool/bin/python -m pip install -q --disable-pip-version-check \
	  'cyclonedx-bom==7.*'
	@.venv-sbom-tool/bin/python -m pip --python .venv-sbom/bin/python install -q --disable-pip-version-check .
	@.venv-sbom-tool/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  -o build/sbom.cdx.json .venv-sbom/bin/python
	@rm -rf .venv-sbom .venv-sbom-tool && echo build/sbom.cdx.json

bench: $(STAMP) models ## Measure speed and memory side by side with the peers
	$(BIN)/python -m benchmarks $(ARGS)

models: $(STAMP) ## Fetch the models that tests use into a cache outside the repository
	@$(BIN)/openqnn models fetch --quiet

providers: $(STAMP) ## Install the two versions of ONNX Runtime's QNN provider that tests use, in .venv-ep*
	@$(BIN)/python -m tests.providers

aimet: $(AIMET) models ## Run the tests with aimet-onnx, which gets an environment of its own, .venv-aimet
	OPENQNN_TEST_AIMET=$(CURDIR)/.venv-aimet/bin/python $(BIN)/python -m pytest tests/quant/test_aimet.py $(ARGS)

explorer: $(EXPLORER) models ## Run the tests with Google's Model Explorer, which gets an environment of its own, .venv-explorer
	OPENQNN_TEST_EXPLORER=$(CURDIR)/.venv-explorer/bin/python \
	  $(BIN)/python -m pytest -m slow tests/integrations $(ARGS)

frameworks: $(FRAMEWORKS) $(STAMP) models ## Run the tests with TensorFlow and PyTorch, and the sweeps, in .venv-frameworks
	OPENQNN_TENSORFLOW_PYTHON=$(CURDIR)/.venv-frameworks/bin/python \
	  $(BIN)/python -m pytest -m "frameworks or slow" tests/frontends/tensorflow tests/frontends/tflite $(ARGS)
	.venv-frameworks/bin/python -m pytest -m "slow or not slow" tests/frontends/torch tests/op_packages/test_frontends.py $(ARGS)
	.venv-frameworks/bin/python -m pytest -m frameworks tests/docs $(ARGS)
	.venv-frameworks/bin/python -m pytest -m "frameworks or slow" tests/frontends/zoo $(ARGS)

clean: ## Remove the virtual environments and everything built (the model cache stays)
	rm -rf .venv .venv-ep* .venv-aimet .venv-attention .venv-frameworks .venv-explorer .venv-docs .venv-sbom* build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || \
	  { rm -rf .venv; echo "error: $(PYTHON) cannot create a virtual environment (on Debian: apt install python3-venv)"; exit 1; }
	@echo "installing openqnn and its tools into .venv ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev,qnn]' || { \
	  echo "note: the vendor wheel could not be installed: going on without it"; \
	  $(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'; }
	@$(BIN)/python -m pip show -q onnxruntime-qnn 2>/dev/null || \
	  echo "note: without Qualcomm's libraries (Linux x86-64 only), models run on the built-in CPU backend"
	@touch $@

$(AIMET): $(STAMP)
	@echo "installing aimet-onnx into .venv-aimet ..."
	@$(BIN)/python -m venv .venv-aimet
	@.venv-aimet/bin/python -m pip install -q --disable-pip-version-check 'aimet-onnx==2.42.*'
	@touch $@

$(SITE): docs/site/requirements.txt
	@echo "installing Sphinx into .venv-docs ..."
	@$(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install -q --disable-pip-version-check -r $<
	@touch $@

$(EXPLORER): $(STAMP)
	@echo "installing Model Explorer into .venv-explorer ..."
	@$(BIN)/python -m venv .venv-explorer
	@.venv-explorer/bin/python -m pip install -q --disable-pip-version-check --no-deps ai-edge-model-explorer==0.1.34
	@.venv-explorer/bin/python -m pip install -q --disable-pip-version-check -e '.[qnn]' \
	  flask requests termcolor portpicker packaging typing_extensions ipython watchdog psutil dacite
	@touch $@

$(ATTENTION):
	@echo "installing torch, timm and transformers into .venv-attention ..."
	@$(PYTHON) -m venv .venv-attention
	@.venv-attention/bin/python -m pip install -q --disable-pip-version-check 'torch==2.13.0' 'timm==1.0.31' \
	  'transformers==5.23.0' 'onnxscript==0.7.2' 'onnx==1.23.2'
	@touch $@

$(FRAMEWORKS): pyproject.toml
	@$(PYTHON) -m venv .venv-frameworks
	@echo "installing TensorFlow and PyTorch into .venv-frameworks ..."
	@.venv-frameworks/bin/python -m pip install -q --disable-pip-version-check 'tensorflow-cpu==2.21.*'
	@.venv-frameworks/bin/python -m pip install -q --disable-pip-version-check -e '.[dev,qnn,torch]' expecttest \
	  'transformers==5.23.0'
	@.venv-frameworks/bin/python -m pip install -q --disable-pip-version-check --no-deps 'torchvision==0.28.0'
	@touch $@
