"""Test tiers: a make target runs each tier, and a failing test prints its logs and how to rerun it."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from support.deadlines import HANG_SECONDS, PATIENCE_FACTOR, TEST_HANG_SECONDS
from support.paths import ROOT, TESTS
from support.tiers import TIERS, in_test_all

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
@pytest.mark.tier("argocd")
def test_beside_argocd(): pass
'''
PYTEST = ("--disable-plugin-autoload", "-p", "support.tiers", "-p", "support.failure_report", "-q")
EXPECTED = {
    "test": {"unmarked", "proof", "rows[1]", "property"},
    "all": {"unmarked", "proof", "rows[1]", "rows[2]", "in_all", "property"},
    "prove": {"proof", "only_proof", "property"},
    "realcluster": {"real"},
    "argocd": {"beside_argocd"},
}


class Run(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def pytest_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Run pytest in this process: starting another process would take longer than the run."""

    def run(text: str, *arguments: str, **env: str) -> Run:
        out, err = io.StringIO(), io.StringIO()
        monkeypatch.chdir(write(tmp_path, text))
        sys.modules.pop("test_some", None)  # from the previous run
        # A process has only one faulthandler, and the outer pytest run uses it.
        words = [*PYTEST, "-p", "no:faulthandler", "--import-mode=importlib", *arguments]
        with patch.dict(os.environ, env), redirect_stdout(out), redirect_stderr(err):
            return Run(int(pytest.main(words)), out.getvalue(), err.getvalue())

    return run


def write(folder: Path, text: str) -> Path:
    (folder / "test_some.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


def test_every_tier_has_a_make_target_and_ci_runs_make_test() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.split(r"^(?=[a-z-]+:)", makefile, flags=re.M)
    runs = {target.partition(":")[0]: set(re.findall(r"--tier (\w+)", target)) for target in targets}
    assert {name: tiers for name, tiers in runs.items() if tiers} == {
        "test": {"test"}, "test-all": {"all"}, "prove": {"prove"}, "realcluster": {"realcluster"}, "coverage": {"test"},
        "test-argocd": {"argocd"},
    }  # fmt: skip
    assert set.union(*runs.values()) == set(TIERS)
    assert "make test " in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("tier", TIERS)
def test_tier_runs_exactly_the_tests_marked_for_it(pytest_here: Callable[..., Run], tier: str) -> None:
    done = pytest_here(MARKED, "--collect-only", "--tier", tier)
    assert set(re.findall(r"::test_(\S+)", done.out)) == EXPECTED[tier]


@pytest.mark.parametrize(
    "marker", ["tier('nightly')", "tier()", in_test_all("tier('test', 'nightly')"), in_test_all("tier(name='all')")]
)
def test_unknown_tier_marker_is_a_collection_error(pytest_here: Callable[..., Run], marker: str) -> None:
    done = pytest_here(f"import pytest\n@pytest.mark.{marker}\ndef test_it(): pass\n", "--tier", "test")
    assert done.code == pytest.ExitCode.INTERRUPTED
    refusal = f"test_some.py::test_it: no make target runs {marker}; use test, all, prove, realcluster or argocd"
    assert refusal in done.out


@pytest.mark.parametrize("processes", [in_test_all("0"), "1"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@pytest.mark.tier('nightly')\ndef test_it(): pass", "test_it: no make target runs tier('nightly')"),
        ("@pytest.mark.tier('all')\ndef test_it(): pass", "no test here is in tier 'test'; choose --tier all"),
    ],
)
def test_run_without_tests_prints_the_reason(tmp_path: Path, text: str, said: str, processes: str) -> None:
    command = [sys.executable, "-m", "pytest", *PYTEST, "-p", "xdist.plugin", "-n", processes, "--tier", "test"]
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    assert said in read_stdout(command, cwd=write(tmp_path, f"import pytest\n{text}\n"), env=env)


def test_missing_path_is_named_in_the_error() -> None:
    command = [sys.executable, "-m", "pytest", "-n", "1", "tests/unit/no_such_folder"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_SECONDS)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "file or directory not found: tests/unit/no_such_folder" in done.stderr


FAILING = '''"""A server that is asked for a page."""
from support.failure_report import record_log, record_seed

def test_the_page_has_a_title(tmp_path, request):
    log = record_log(tmp_path / "server.log")
    log.write_text("could not read the title")
    record_seed(request.node, "ARGOSY_PROOF_SEED=42")
    assert False
'''


@pytest.mark.parametrize("ci", ["", "true"])
def test_failing_test_prints_its_title_logs_and_rerun_command(
    tmp_path: Path, pytest_here: Callable[..., Run], ci: str
) -> None:
    printed = pytest_here(FAILING, f"--basetemp={tmp_path / 'work'}", CI=ci).out
    assert "A server that is asked for a page.\nthe page has a title" in printed
    assert "ARGOSY_PROOF_SEED=42 .venv/bin/python -m pytest 'test_some.py::test_the_page_has_a_title'" in printed
    assert "could not read the title" in printed
    logs = [path.read_text() for path in (tmp_path / "test-logs").rglob("*.log")]
    assert logs == (["could not read the title"] if ci else [])


def test_prove_tier_prints_seeds_of_passing_tests(tmp_path: Path, pytest_here: Callable[..., Run]) -> None:
    passing = FAILING.replace("assert False", "")
    marked = passing.replace("def test", "import pytest\n\n@pytest.mark.tier('test', 'prove')\ndef test")
    for tier, is_printed in (("test", False), ("prove", True)):
        done = pytest_here(marked, "--tier", tier, f"--basetemp={tmp_path / 'work'}")
        assert "1 passed" in done.out
        assert ("ARGOSY_PROOF_SEED=42 test_some.py::test_the_page_has_a_title" in done.out) == is_printed


OUTSIDE = """import os, socket, subprocess, sys
import pytest

@pytest.fixture(scope="module")
def server(): socket.create_server(("127.0.0.1", 0))

def test_a_server_of_the_module(server): pass
def test_a_process(): subprocess.run([sys.executable, "--version"])
def test_a_fork(): os.fork() or os._exit(0)
def test_a_server(): socket.create_server(("127.0.0.1", 0))
def test_a_name(): socket.getaddrinfo("localhost", 80)
def test_a_datagram(): socket.socket(type=socket.SOCK_DGRAM).sendto(b"", ("127.0.0.1", 9))
def test_nothing_outside(): pass
"""


def test_unit_tests_that_use_processes_or_sockets_fail(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((TESTS / "unit" / "conftest.py").read_text())
    (tmp_path / "test_import.py").write_text("import os\nos.system('true')\ndef test_after_it(): pass\n")
    options = "-rA", "--tb=line", "-p", "no:cacheprovider", "--continue-on-collection-errors"
    command = [sys.executable, "-m", "pytest", *PYTEST, *options]
    output = read_stdout(command, cwd=write(tmp_path, OUTSIDE), env={**os.environ, "PYTHONPATH": str(TESTS)})
    assert re.findall(r"^PASSED test_some.py::test_(\w+)", output, flags=re.M) == ["nothing_outside"]
    assert output.count("move it to tests/component") >= 7
    assert re.findall(r"^ERROR (\S+)", output, flags=re.M) == [
        "test_import.py",
        "test_some.py::test_a_server_of_the_module",
    ]


def test_hang_limit_scales_with_argosy_test_patience() -> None:
    command = [sys.executable, str(TESTS / "support" / "deadlines.py")]
    limit = read_stdout(command, cwd=TESTS, env={**os.environ, "ARGOSY_TEST_PATIENCE": f"{3 * PATIENCE_FACTOR}"})
    assert float(limit) == 3 * TEST_HANG_SECONDS


def read_stdout(command: list[str], **options: Any) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS, **options)
    return str(done.stdout)
