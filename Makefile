# Every target does its own set-up, in .venv and build/ alone. On a new machine: make demo, make test.
# PYTHON=PATH names the interpreter, JOBS=N says how many tests run at a time, GT4PY=VERSION tests with another gt4py,
# ARGS='...' goes to pytest, the demo or the benchmarks. WHAT=WORD names the part of 'make bench' and 'make gpu'.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
.PHONY: help demo granule captured-diffusion model fortran-demo test quick suite soak lint format warnings asan tsan valgrind browser
.PHONY: picture bench arm gpu wheel bounds fuzz wheel-test release generated check-generated site links clean
.PHONY: .bench-calls .bench-dace .bench-starts .bench-build
.PHONY: .arm-all .arm-hosts .arm-python
.PHONY: .gpu-all .gpu-tests .gpu-programs .gpu-bench .gpu-wheels .gpu-build

export PYTHON
JOBS ?= 2

BIN := .venv/bin
SOURCES := CMakeLists.txt $(shell find generator templates runtime -type f -not -path '*/__pycache__/*')
C_SOURCES := $(filter %.c %.h,$(SOURCES)) $(wildcard tests/c/*.[ch] tests/benchmarks/*.[ch] tests/faults/*.[ch] \
    tests/fortran/*.c tests/bounds/*.c tests/frameworks/dace/*.c tests/gpu/fake/*.[ch] tests/cmake/project/*.c* \
    examples/*/*.c tests/granule/*.c tests/weak_memory/*.[ch])

# Ends a recipe if WHAT is no word of the list.
one_of = @[ "$(words $(WHAT))" -le 1 -a "$(filter $(or $(WHAT),$(firstword $(1))),$(1))" ] || \
    { echo "$@: WHAT=$(WHAT) is none of: $(1)"; exit 1; }

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- Set-up -----------------------------------------------------------------------------------------------------------

.venv/.dependencies: pyproject.toml
	@echo "== Installing what gtstub needs into .venv: gt4py, DaCe, icon4py (the first time: a few minutes)"
	.ci/install dependencies gt4py icon4py test
	@touch $@

.venv/.gtstub: $(SOURCES) .venv/.dependencies
	@echo "== Installing gtstub from its sources into .venv"
	.ci/install gtstub
	@touch $@

# What calls Python from Fortran. icon4py's own two packages come without what they require: of icon4py-bindings that is
# GHEX, which only many processes need, and which is compiled with Boost; of icon4py-tools another clang-format than lint's.
.venv/.py2fgen: .venv/.dependencies
	.ci/install dependencies py2fgen
	.ci/install --no-deps icon4py-tools==0.4.1 icon4py-bindings==0.4.1
	@touch $@

.venv/.lint .venv/.site .venv/.browser .venv/.model: .venv/.%: .venv/.dependencies
	.ci/install dependencies $*
	@touch $@

# --- What users run ---------------------------------------------------------------------------------------------------

# A persistent cache: what the demo has built can be looked at afterwards, and a second run finds it.
demo: .venv/.gtstub ## build a program of icon4py, show its slots, call it, compare results and call times
	mkdir -p build/demo
	GT4PY_BUILD_CACHE_DIR=$(CURDIR)/build/demo GT4PY_BUILD_CACHE_LIFETIME=persistent \
	    $(BIN)/python examples/quickstart/demo.py $(ARGS)

# One thread: a tiny grid gains nothing by more.
granule: .venv/.gtstub ## run icon4py's diffusion and velocity advection, compare results and times with gt4py's
	mkdir -p build/granule
	GT4PY_BUILD_CACHE_DIR=$(CURDIR)/build/granule GT4PY_BUILD_CACHE_LIFETIME=persistent OMP_NUM_THREADS=1 \
	    $(BIN)/python -O -m examples.granule.run $(ARGS)

captured-diffusion: .venv/.gtstub ## run icon4py's diffusion as a captured step, and compare results and times with the granule's
	mkdir -p build/granule
	GT4PY_BUILD_CACHE_DIR=$(CURDIR)/build/granule GT4PY_BUILD_CACHE_LIFETIME=persistent OMP_NUM_THREADS=1 \
	    $(BIN)/python -O -m examples.captured_diffusion.run

# Variants that the run does not call are not built.
model: .venv/.gtstub .venv/.model ## run icon4py's driver on a global grid that is made here: times, memory, a picture
	mkdir -p build/model
	GT4PY_BUILD_CACHE_DIR=$(CURDIR)/build/model/cache GT4PY_BUILD_CACHE_LIFETIME=persistent GTSTUB_LAZY=1 \
	    OMP_NUM_THREADS=1 $(BIN)/python -O -m examples.model.run $(ARGS)

fortran-demo: .venv/.gtstub .venv/.py2fgen ## drive icon4py's diffusion from Fortran, without Python and through it
	mkdir -p build/fortran-host/cache
	GT4PY_BUILD_CACHE_DIR=$(CURDIR)/build/fortran-host/cache GT4PY_BUILD_CACHE_LIFETIME=persistent OMP_NUM_THREADS=1 \
	    $(BIN)/python -O -m examples.fortran_host.run $(ARGS)

# The tests of one run share their SDFG builds, and start without those of the run before. -O1: without what DaCe's own
# flags add to CMake's. serial: a build process of gt4py imports gt4py first; 1: so does each that a test asks for. One
# thread for OpenMP: on small fields, threads wait for each other most of the time. All tests share DaCe's caches, also
# those with a cache of their own; what gtstub does without these variables has its own tests.
DACE_CACHES = DACE_BUILD_CACHE_DIR=$(1) DACE_compiler_configure_cache=1 DACE_compiler_command_cache=1
ifndef GT4PY
test: CACHE := $(CURDIR)/build/test-cache
test: .venv/.gtstub .venv/.py2fgen ## run the tests; some part of them: make test ARGS=tests/unit
	rm -rf $(CACHE)
	mkdir -p $(CACHE)
	GT4PY_BUILD_CACHE_DIR=$(CACHE) GT4PY_BUILD_CACHE_LIFETIME=persistent GTSTUB_CACHE_DIR=$(CACHE)/gtstub \
	    GT4PY_BUILD_JOBS_MODE=serial GT4PY_BUILD_JOBS=1 OMP_NUM_THREADS=1 CXXFLAGS="$${CXXFLAGS:--O1}" \
	    $(call DACE_CACHES,$(CACHE)/dace) $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup $(ARGS)
else
# The tests that need nothing of icon4py, which requires one version of gt4py, in an environment with another version.
test: export VENV := build/gt4py-$(GT4PY)
test: $(SOURCES)
	.ci/install dependencies gt4py test
	.ci/install gt4py==$(GT4PY)
	.ci/install gtstub
	rm -rf $(VENV)/cache
	GTSTUB_CACHE_DIR=$(CURDIR)/$(VENV)/cache GT4PY_BUILD_JOBS_MODE=serial CXXFLAGS="$${CXXFLAGS:--O1}" \
	    $(call DACE_CACHES,$(CURDIR)/$(VENV)/cache/dace) \
	    $(VENV)/bin/python -m pytest -n $(JOBS) $(ARGS) \
	    $(addprefix tests/frameworks/gt4py/,test_calls.py test_language.py test_stages.py test_runner.py test_versions.py)
endif

# What needs neither gt4py nor a build of an SDFG. Compiling the runtime with a sanitizer takes 20 s: each worker does it
# for builds of its own (loadgroup), and the build of a second compiler is left to 'make test'.
quick: .venv/.gtstub ## run the unit tests and the C programs (of gcc), a part that takes a few minutes
	GTSTUB_CACHE_DIR=$(CURDIR)/build/quick-cache OMP_NUM_THREADS=1 \
	    $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -k 'not clang-address' tests/unit tests/c $(ARGS)

# gt4py's own tests, which its sdist lacks: SUITE names a folder with them and a program 'run' that runs them on a backend.
# In an environment of their own, because pytest-mpi, which they need, skips all tests that are marked 'mpi'.
suite: export VENV := build/suite
suite: $(SOURCES) ## run gt4py's own tests, which are in the folder SUITE=PATH, on gtstub's backend
	@[ "$(SUITE)" ] || { echo "suite: name the folder with gt4py's tests: make suite SUITE=PATH"; exit 1; }
	@[ -x "$(SUITE)/run" ] || { echo "suite: '$(SUITE)' has no program 'run' for tests of gt4py"; exit 1; }
	.ci/install dependencies gt4py test suite
	.ci/install gt4py==$(or $(GT4PY),1.2.1)
	.ci/install gtstub
	mkdir -p $(VENV)/cache
	GTSTUB_CACHE_DIR=$(CURDIR)/$(VENV)/cache SUITE_BACKEND=ours:cpu $(call DACE_CACHES,$(CURDIR)/$(VENV)/cache/dace) \
	    $(SUITE)/run $(VENV)/bin/python -n $(JOBS) $(ARGS)

# In an environment with the newest gt4py, which users install; icon4py requires an older one, and works with it here.
build/bench/.ready: pyproject.toml
	VENV=build/bench .ci/install dependencies gt4py icon4py test bench
	VENV=build/bench .ci/install --no-deps gt4py==1.2.3
	@touch $@

bench: ## measure WHAT=calls, dace (calls of DaCe's programs), starts or build (two jobs), and write docs/performance.md
	$(call one_of,calls dace starts build)
	@$(MAKE) .bench-$(or $(WHAT),calls)

.bench-calls .bench-starts: build/bench/.ready $(SOURCES)
	VENV=build/bench .ci/install gtstub
	build/bench/bin/python -m tests.benchmarks.$(if $(findstring calls,$@),run,starts) $(ARGS)

.bench-dace: .venv/.gtstub
	OMP_NUM_THREADS=1 $(BIN)/python -O -m tests.benchmarks.dace_programs $(ARGS)

# How much faster two jobs build twelve programs of icon4py than one, which takes a quarter of an hour.
.bench-build: .venv/.gtstub
	$(BIN)/python -m tests.benchmarks.build_set $(ARGS)

# For another processor, which qemu-user emulates: tests compile runtime, committed stubs and hosts for it. Left out are
# valgrind, sanitizers, which do not run in an emulator, and descriptors, which are the same on all machines.
# tests/support/target.py says how a test names compilers.
ARM := aarch64-linux-gnu
arm: ## for aarch64 in an emulator: WHAT=hosts (stubs, C and Fortran hosts, their tests), python (CPython), or both
	$(call one_of,all hosts python)
	@$(MAKE) .arm-$(or $(WHAT),all)

.arm-all: .arm-hosts .arm-python

.arm-hosts: .venv/.gtstub
	@for program in $(ARM)-gcc $(ARM)-g++ $(ARM)-gfortran qemu-aarch64-static; do \
	    command -v $$program >/dev/null || { echo "arm: '$$program' is missing: apt-get install" \
	        gcc-$(ARM) g++-$(ARM) gfortran-$(ARM) qemu-user-static; exit 1; }; \
	done
	CROSS_COMPILE=$(ARM)- $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup -m 'not valgrind' \
	    tests/c tests/fortran --ignore tests/fortran/test_descriptors.py $(ARGS)

.arm-python: .venv/.gtstub
	.ci/arm-root
	$(BIN)/python -m pytest tests/arm $(ARGS)

# NVIDIA's compiler, in an environment of its own. Tests marked 'nvcc' run here alone, because each builds programs.
build/nvcc/.ready: pyproject.toml
	VENV=build/nvcc .ci/install dependencies nvcc
	@touch $@

# On a machine with a GPU: tests (tests/gpu and compute-sanitizer), programs (all of icon4py, compared with the CPU), bench
# (the section of docs/performance.md), or all three. Each fits into ten minutes on 16 cores; .ci/gpu also runs where
# there is no make. Elsewhere: wheels and build.
gpu: ## on a machine with a GPU: WHAT=all, tests, programs or bench; elsewhere: WHAT=wheels (for there) or build
	$(call one_of,all tests programs bench wheels build)
	@$(MAKE) .gpu-$(or $(WHAT),all)

.gpu-all .gpu-tests .gpu-programs .gpu-bench: .gpu-%:
	@.ci/gpu $*

# Fills build/gpu-wheels, which is carried to the machine with the GPU.
.gpu-wheels: .venv/.gtstub
	$(BIN)/python .ci/gpu-wheels

# Programs of icon4py, which nvcc builds and tests call without a GPU.
.gpu-build: .venv/.gtstub build/nvcc/.ready
	.ci/with-nvcc $(BIN)/python -m pytest -m nvcc tests/gpu $(ARGS)
	GTSTUB_GPU_STAND_IN=1 GTSTUB_ARCH=sm_90 GTSTUB_CACHE_DIR=$(CURDIR)/build/gpu/cache \
	    .ci/with-nvcc $(BIN)/python -m pytest -m device tests/gpu/device $(ARGS)

# --- What developers run ----------------------------------------------------------------------------------------------

lint: .venv/.lint warnings ## check style, types and the C warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPYPATH=generator $(BIN)/mypy --cache-dir build/mypy -p gtstub
	$(BIN)/clang-format --dry-run -Werror $(C_SOURCES)

format: .venv/.lint ## write Python and C as lint wants them
	$(BIN)/ruff check --fix --fixable I,RUF100 --exit-zero .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(C_SOURCES)

warnings: .venv/.dependencies ## compile the C with warnings as errors, by each of gcc and clang that is there
	@found=0; for compiler in gcc clang; do \
	    command -v $$compiler >/dev/null || { echo "warnings: $$compiler is not installed; left out"; continue; }; \
	    found=1; echo "== Warnings of $$compiler"; \
	    $(BIN)/cmake --preset warnings-$$compiler -DPython_ROOT_DIR=$(CURDIR)/.venv \
	        >build/warnings-$$compiler.log || { cat build/warnings-$$compiler.log; exit 1; }; \
	    $(BIN)/cmake --build --preset warnings-$$compiler || exit 1; \
	done; [ $$found = 1 ] || { echo "warnings: install a C compiler (apt-get install gcc)"; exit 1; }

generated: .venv/.gtstub ## write the committed stubs of examples/icon4py anew (lowers what has changed of icon4py)
	$(BIN)/python -m examples.icon4py.committed $(ARGS)

check-generated: .venv/.gtstub ## say which committed stubs are out of date, and which programs of icon4py have changed
	$(BIN)/python -m examples.icon4py.committed --check

SPHINX := $(BIN)/sphinx-build --fail-on-warning --keep-going --fresh-env --quiet -c docs
site: .venv/.gtstub .venv/.site ## write the site to build/site; warnings and broken links within the site are errors
	@command -v doxygen >/dev/null || { echo "site: install doxygen (apt-get install doxygen)"; exit 1; }
	rm -rf build/site
	mkdir -p build/doxygen
	doxygen docs/Doxyfile
	$(SPHINX) . build/site

links: site ## check the links of the site to other sites, which needs the internet
	$(SPHINX) -b linkcheck . build/links

# Runtime, host and stubs are compiled for the sanitizers; the interpreter is not, so its own leaks are left out.
# The flags stand in the recipe, because make would hand a target's variables on to its prerequisite, .venv/.gtstub.
ASAN_FLAGS := -g -fsanitize=address,undefined -fno-sanitize-recover=all
asan: .venv/.gtstub ## run the tests of runtime, host and stubs under ASan and UBSan
	@command -v gcc >/dev/null || { echo "asan: install gcc (apt-get install gcc)"; exit 1; }
	rm -rf build/asan
	CC=gcc $(BIN)/python -m pip install -q --no-deps --no-build-isolation --target build/asan \
	    '--config-settings=cmake.define.GTSTUB_SANITIZE=address;undefined' --config-settings=install.strip=false .
	CC=gcc CFLAGS='$(ASAN_FLAGS)' PYTHONPATH=build/asan LD_PRELOAD=$$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
	    GTSTUB_CACHE_DIR=$(CURDIR)/build/asan/cache $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup \
	    tests/unit tests/python_host tests/property tests/fuzz \
	    -m sanitizer $(ARGS)

# The interpreter is not compiled for TSan, but its GIL is a mutex, which TSan sees. It does not see how threads of OpenMP
# wait for each other, and no process that a test starts may have the preloaded library: left out are tests with those.
TSAN_TESTS := $(addprefix tests/python_host/test_,threads_and_ends.py bound_calls.py capture.py checks.py dispatcher.py \
    guard.py handed_over_ends.py offset_provider.py overloads.py steps.py)
tsan: .venv/.gtstub ## run tests of the Python host that have threads under TSan
	@command -v gcc >/dev/null || { echo "tsan: install gcc (apt-get install gcc)"; exit 1; }
	rm -rf build/tsan
	CC=gcc $(BIN)/python -m pip install -q --no-deps --no-build-isolation --target build/tsan \
	    --config-settings=cmake.define.GTSTUB_SANITIZE=thread --config-settings=install.strip=false .
	CC=gcc CFLAGS='-g -fsanitize=thread' PYTHONPATH=build/tsan LD_PRELOAD=$$(gcc -print-file-name=libtsan.so) \
	    TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.suppressions:log_path=$(CURDIR)/build/tsan/report:exitcode=66 \
	    GTSTUB_CACHE_DIR=$(CURDIR)/build/tsan/cache \
	    $(BIN)/python -c 'import os, pytest; del os.environ["LD_PRELOAD"]; raise SystemExit(pytest.main())' $(TSAN_TESTS) \
	    -k 'two_programs or one_call_of or thread and not test_threads_and_ends or take_turns' $(ARGS) || \
	    { cat build/tsan/report* 2>/dev/null; exit 1; }

MINUTES ?= 20
soak: .venv/.gtstub ## kill processes and fail system calls around one cache for MINUTES=20, and write docs/reliability.md
	$(BIN)/python -m tests.faults.soak --minutes $(MINUTES) $(ARGS)

fuzz: .venv/.gtstub ## hand 100,000 changed archives, entries, claims, recordings and signatures to gtstub (ARGS='--seed 2')
	$(BIN)/python -m tests.fuzz.run $(ARGS)

bounds: .venv/.gtstub ## judge the bounds of all programs of the tests and of icon4py in guarded memory (half an hour)
	GTSTUB_BOUNDS_ALL=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup tests/bounds $(ARGS)

browser: .venv/.gtstub .venv/.browser ## look at the pages of 'gtstub report' in Debian's chromium
	@command -v chromium >/dev/null || { echo "browser: install it (apt-get install chromium)"; exit 1; }
	$(BIN)/python -m pytest -m browser tests/browser $(ARGS)

picture: .venv/.browser demo ## draw docs/report.png, the README's picture of a report
	$(BIN)/python docs/picture.py

valgrind: .venv/.gtstub ## run the tests that need valgrind
	@command -v valgrind >/dev/null || { echo "valgrind: install it (apt-get install valgrind)"; exit 1; }
	$(BIN)/python -m pytest -m valgrind $(ARGS)

# The time of all files in the wheel: equal sources give equal bytes, in any folder and at any time.
wheel release: export SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),$(shell stat -c %Y pyproject.toml))
wheel: .venv/.dependencies ## build the sdist and the wheel into dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation $(ONLY)

# Of the sdist alone, unless PACKAGE names a wheel: 'make test' builds the wheel in tests/packaging, and looks into it.
wheel-test: MINOR := 13
wheel-test: ONLY := --sdist
wheel-test: PACKAGE = $$(echo dist/gtstub-*.tar.gz)
wheel-test: $(if $(PACKAGE),,wheel) ## install the sdist with CPython 3.MINOR into an empty environment, and run the tests that need no gt4py
	rm -rf build/wheel-test
	interpreter=$$(.ci/find-python $(MINOR)) && PYTHON=$$interpreter VENV=build/wheel-test \
	    .ci/install "gtstub[test] @ file://$(CURDIR)/$(PACKAGE)"
	build/wheel-test/bin/python -m pytest -n $(JOBS) --dist loadgroup \
	    tests/unit tests/python_host tests/docs tests/property $(ARGS)

# A wheel for each CPython, built from the sdist: the extension module reads objects of Python by their structure, which
# the limited API hides. The wheel of a CPython that is not here is left out. Nothing is uploaded.
MINORS ?= 12 13 14
release: .venv/.dependencies ## check versions and changelog; fill dist/: sdist, manylinux wheels; test; site
	@$(BIN)/python .ci/release check
	@$(MAKE) wheel ONLY=--sdist
	rm -rf build/release
	@left_out=; for minor in $(MINORS); do \
	    interpreter=$$(PYTHON= .ci/find-python $$minor) || { left_out="$$left_out 3.$$minor"; continue; }; \
	    echo "== The wheel for CPython 3.$$minor"; \
	    $$interpreter -m pip wheel -q --no-cache-dir --no-deps -w build/release/3.$$minor dist/gtstub-*.tar.gz || exit 1; \
	    wheel=$$($(BIN)/python .ci/release repair build/release/3.$$minor/*.whl) || exit 1; \
	    $(MAKE) wheel-test PYTHON= MINOR=$$minor PACKAGE=$$wheel || exit 1; \
	done; \
	$(MAKE) site || exit 1; \
	echo "== dist/, and the site in build/site"; \
	$(BIN)/python .ci/release list; \
	[ -z "$$left_out" ] || echo "== Left out, because this machine has no such CPython:$$left_out"

clean: ## remove everything that make has made
	rm -rf .venv build dist
