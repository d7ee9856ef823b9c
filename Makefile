# The front door. Everything runs in .venv, made here from requirements.lock; nothing but pip's
# cache is written outside this folder.
BIN := .venv/bin
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses auto --dist worksteal
# Begin with these, so that no core is left alone at the end.
LONGEST := 09 08 01 02 15 10 05 03 14 12 11
PYTHONS := 3.13 3.12 3.11
version = "%d.%d" % __import__("sys").version_info[:2]
supported = -c 'exit($(version) not in "$(PYTHONS)".split())' 2> /dev/null

# Set up when .venv lacks the marker of this folder, lock and entry points: with the newest Python
# that is found, or with PYTHON=/path/to/another.
MARKER := ready-$(shell (pwd; cat requirements.lock; grep -A1 entry-points pyproject.toml) | cksum | cut -d' ' -f1)
ifdef PYTHON
READY := .venv/$(MARKER)-$(shell '$(PYTHON)' -c 'print($(version))')
else
PYTHON = $(shell for p in $(PYTHONS:%=python%) python3; do $$p $(supported) && echo $$p && break; done)
READY := $(or $(if $(wildcard $(BIN)/python),$(wildcard .venv/$(MARKER)-*)),.venv/$(MARKER))
endif

# Ctrl-C waits until Python can answer it (where env knows how), and is then one line.
CALM := $(shell env --block-signal=INT true 2> /dev/null && echo env --block-signal=INT)
WORKFLOW = @$(CALM) $(BIN)/python -m workflow

# Keep the settings, kernels and caches of whoever runs this out of it, and ours out of theirs.
export JUPYTER_CONFIG_DIR := $(CURDIR)/.venv/jupyter/config
export JUPYTER_DATA_DIR := $(CURDIR)/.venv/jupyter/data
export JUPYTER_RUNTIME_DIR := $(CURDIR)/.venv/jupyter/runtime
export IPYTHONDIR := $(CURDIR)/.venv/ipython
export MPLCONFIGDIR := $(CURDIR)/.venv/matplotlib
export PYTHONNOUSERSITE := 1
export PYTHONUTF8 := 1
unexport PYTHONDONTWRITEBYTECODE JUPYTER_PATH PYTHONPATH PYTHONHOME MPLBACKEND MATPLOTLIBRC FIRMLIB_OUTPUT PYTHONWARNINGS PYTEST_ADDOPTS

.PHONY: help setup reproduce sweep accept-sweep accept test test-slow test-strange test-other test-lowest test-cpus test-kill test-slurm test-browser mutants bench lint format lab site dist archive lock clean
.DEFAULT_GOAL := help

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: $(READY)  ## make .venv (the other targets do so by themselves)

$(READY):
	@'$(PYTHON)' $(supported) || { echo "Python $(PYTHONS) is needed, any of them: make PYTHON=/path/to/it"; exit 1; }
	@$(CALM) '$(PYTHON)' -m workflow setup $(MARKER)

reproduce: $(READY)  ## execute what has changed into build/ and compare with what is committed (all: FORCE=1)
	$(WORKFLOW) reproduce $(if $(FORCE),--force)

sweep: $(READY)  ## run a notebook at every point of GRID=workflow/sweeps/….yaml (cluster: PROFILE=…)
	$(WORKFLOW) sweep "$$GRID" $(if $(PROFILE),--profile "$$PROFILE")

accept-sweep: $(READY)  ## copy the table of a sweep, GRID=…, to data/sweep_….csv
	$(WORKFLOW) accept "$$GRID"

accept: $(READY)  ## copy the results of `make reproduce` into the tracked files
	$(WORKFLOW) accept
	$(WORKFLOW) manifest

long = $(foreach n,$(LONGEST),$(wildcard notebooks/$(n)_*.ipynb))
test: $(READY)  ## test firmlib and the notebooks' outputs, as many at a time as there are cores
	@rm -rf build/test
	TQDM_DISABLE=1 FIRMLIB_OUTPUT="$(CURDIR)/build/test" $(PYTEST) -o addopts= -p no:warnings -p workflow.warm \
	  --dist loadscope --no-loadscope-reorder --nbval --nbval-current-env --nbval-sanitize-with=tests/sanitize.cfg \
	  --nbval-cell-timeout=300 $(long) $(filter-out $(long),$(wildcard notebooks/*.ipynb))
	FIRMLIB_FRESH="$(CURDIR)/build/test" $(PYTEST)

test-slow: $(READY)  ## the tests that simulate for long, and more examples of the invariances
	HYPOTHESIS_PROFILE=long $(PYTEST) -m 'slow or hypothesis'

test-strange: $(READY)  ## odd surroundings: folder names, failing set-ups; says what it skips
	$(BIN)/python -m pytest -q tests/strange

test-other: $(READY)  ## the library's tests and three notebooks: for another PYTHON=/path/to/it
	$(PYTEST)
	@$(BIN)/python -m tests.cpus --as-is 04 06 11

test-lowest: $(READY)  ## test the library with the lowest versions that pyproject.toml declares
	@$(BIN)/python -m tests.lowest

test-cpus: $(READY)  ## the notebooks as five other CPUs would compute them (some: ONLY="06 07")
	@$(BIN)/python -m tests.cpus $(ONLY)

test-kill: $(READY)  ## kill a sweep at 25 random moments; nothing may be lost or run twice
	@$(BIN)/python -m tests.kill_sweep

test-slurm: $(READY)  ## a sweep on a Slurm of two nodes, one of which dies (needs Debian's slurm and munge)
	@$(BIN)/python -m tests.slurm

mutants: $(READY)  ## change the library, then the notebooks; each change must be noticed (some: ONLY="08 09")
	@test -n "$(ONLY)" || $(BIN)/python -m tests.mutants_library
	@$(BIN)/python -m tests.mutants $(ONLY)

bench: $(READY)  ## speed, as ratios in one run, into benchmarks/ (some, or intervals: ONLY="kernel poim")
	@$(BIN)/python benchmarks/run.py $(ONLY)

lint: $(READY)  ## check style with ruff, types with pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(READY)  ## let ruff put the style right
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lab: $(READY)  ## open JupyterLab on the notebooks
	$(BIN)/python -m jupyterlab notebooks

site: $(READY) build/explorer.js  ## build the site into build/site, without running a notebook
	$(BIN)/python -m docs.site.build

build/explorer.js: docs/site/export.py firmlib/datasets.py $(wildcard firmlib/strings/*.py data/splice_*) | $(READY)
	@mkdir -p build && $(BIN)/python -m docs.site.export $@

test-browser: site  ## test the site and JupyterLab in Chromium, which must be installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses 3 tests/browser

dist: $(READY)  ## build wheel and source distribution, and try the wheel in an empty environment
	@rm -rf build/dist && mkdir -p build/dist
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/dist .
	$(BIN)/python -c 'from flit_core import buildapi; buildapi.build_sdist("build/dist")'
	sed -nE 's/^([a-z0-9.-]+==[^ ;]+).*/\1/p' requirements.lock > build/dist/pins
	$(BIN)/python -m venv build/dist/venv
	build/dist/venv/bin/pip install --quiet --disable-pip-version-check --constraint build/dist/pins build/dist/*.whl
	cd build/dist && venv/bin/python -c 'import firmlib, numpy; print(firmlib.firm([0, 1, 1, 2], numpy.eye(4)[:, :2]))'
	@rm -rf build/dist/venv build/dist/pins && ls -l build/dist

archive:  ## write the last commit into one zip: the same bytes each time
	@mkdir -p build && git diff --quiet HEAD || echo "Note: what is not committed is not in it."
	@name=firmlib-$$(sed -n 's/^version: //p' CITATION.cff) && \
	  TZ=UTC git archive -0 --prefix=$$name/ --output build/$$name.zip HEAD && sha256sum build/$$name.zip

lock:  ## resolve requirements.lock and environment.yml again from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-emit-index-url --quiet --output-file requirements.lock
	@$(PYTHON) -m workflow environment

clean:  ## remove .venv, build/ and caches
	rm -rf .venv .venv-* .venv.lock build .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
