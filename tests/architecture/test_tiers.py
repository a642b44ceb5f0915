"""Every test belongs to a tier that a make target runs, and a failing test says how to look into it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.deadlines import HANG_SECONDS
from support.paths import ROOT, TESTS
from support.tiers import TIERS

MARKED = '''"""Some stories."""
import pytest
from hypothesis import given, strategies

def test_unmarked(): pass
@pytest.mark.tier("all")
def test_in_all(): pass
@pytest.mark.tier("test", "prove")
def test_proof(): pass
@pytest.mark.tier("prove")
def test_only_proof(): pass
@pytest.mark.parametrize("row", [1, pytest.param(2, marks=pytest.mark.tier("all"))])
@pytest.mark.tier("test")
def test_rows(row): pass
@given(strategies.integers())
def test_property(number): pass
@pytest.mark.tier("realcluster")
def test_real(): pass
'''
EXPECTED = {
    "test": {"unmarked", "proof", "rows[1]", "property"},
    "all": {"unmarked", "proof", "rows[1]", "rows[2]", "in_all", "property"},
    "prove": {"proof", "only_proof", "property"},
    "realcluster": {"real"},
}


def pytest_in(folder: Path, text: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_some.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "--disable-plugin-autoload", "-p", "support.tiers"]
    command += ["-p", "support.failure_report", "-q", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONDONTWRITEBYTECODE": "1", **env}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )


def test_every_tier_is_run_by_a_make_target_of_its_name_and_ci_runs_make_test() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.split(r"^(?=[a-z-]+:)", makefile, flags=re.M)
    runs = {target.partition(":")[0]: set(re.findall(r"--tier (\w+)", target)) for target in targets}
    assert {name: tiers for name, tiers in runs.items() if tiers} == {
        "test": {"test"}, "test-all": {"all"}, "prove": {"prove"}, "realcluster": {"realcluster"}, "coverage": {"test"}
    }  # fmt: skip
    assert set.union(*runs.values()) == set(TIERS)
    assert "make test " in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("tier", TIERS)
def test_a_tier_runs_the_tests_that_are_marked_for_it(tmp_path: Path, tier: str) -> None:
    done = pytest_in(tmp_path, MARKED, "--collect-only", "--tier", tier, "-p", "_hypothesis_pytestplugin")
    assert set(re.findall(r"::test_(\S+)", done.stdout)) == EXPECTED[tier]


@pytest.mark.parametrize("marker", ['tier("nightly")', 'tier("test", "nightly")', "tier()"])
def test_a_tier_that_nobody_runs_is_refused(tmp_path: Path, marker: str) -> None:
    done = pytest_in(tmp_path, f"import pytest\n@pytest.mark.{marker}\ndef test_it(): pass\n", "--tier", "test")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "test_some.py::test_it: no make target runs tier" in done.stderr


FAILING = '''"""A server that is asked for a page."""
from support.failure_report import record_log, record_seed

def test_the_page_has_a_title(tmp_path, request):
    log = record_log(tmp_path / "server.log")
    log.write_text("could not read the title")
    record_seed(request.node, "ARGOSY_PROOF_SEED=42")
    assert False
'''


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_failing_test_prints_its_story_its_seed_and_its_logs(tmp_path: Path, ci: str) -> None:
    printed = pytest_in(tmp_path, FAILING, f"--basetemp={tmp_path / 'work'}", CI=ci).stdout
    assert "A server that is asked for a page.\nthe page has a title" in printed
    assert "ARGOSY_PROOF_SEED=42" in printed
    assert "could not read the title" in printed
    kept = [path.read_text() for path in (tmp_path / "test-logs").rglob("*.log")]
    assert kept == (["could not read the title"] if ci else [])


def test_proofs_print_the_seeds_of_tests_that_pass(tmp_path: Path) -> None:
    passing = FAILING.replace("assert False", "")
    assert "ARGOSY_PROOF_SEED=42 test_some.py::test_the_page_has_a_title" not in pytest_in(tmp_path, passing).stdout
    marked = passing.replace("def test", "import pytest\n\n@pytest.mark.tier('prove')\ndef test")
    printed = pytest_in(tmp_path, marked, "--tier", "prove").stdout
    assert "ARGOSY_PROOF_SEED=42 test_some.py::test_the_page_has_a_title" in printed


OUTSIDE = """import os, socket, subprocess, sys

def test_a_process(): subprocess.run([sys.executable, "--version"])
def test_a_fork(): os.fork() or os._exit(0)
def test_a_server(): socket.create_server(("127.0.0.1", 0))
def test_a_name(): socket.getaddrinfo("localhost", 80)
def test_nothing_outside(): pass
"""


def test_a_unit_test_that_uses_a_process_or_a_socket_is_refused(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((TESTS / "unit" / "conftest.py").read_text())
    printed = pytest_in(tmp_path, OUTSIDE, "-rA").stdout
    assert re.findall(r"^PASSED test_some.py::test_(\w+)", printed, flags=re.M) == ["nothing_outside"]
    assert printed.count("move it to tests/component") >= 4


def test_the_limit_for_hangs_grows_with_patience() -> None:
    def limit(factor: str) -> float:
        command = [sys.executable, str(TESTS / "support" / "deadlines.py")]
        env = {**os.environ, "ARGOSY_TEST_PATIENCE": factor}
        return float(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)

    assert limit("3") == 3 * limit("1")
