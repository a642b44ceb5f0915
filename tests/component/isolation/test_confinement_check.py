"""Reporting of missing confinement to operators: log line, /healthz and metrics."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

import pytest

from argosy.errors import TransientError
from argosy.gitops.engine.metrics import collect_confinement_metrics
from argosy.isolation import Confinement, landlock, seccomp
from argosy.isolation.confinement_health import ConfinementCheck
from argosy.isolation.confinement_requirement import POD_VARIABLE, VARIABLE
from argosy.isolation.untrusted_program_runner import probe_confinement
from argosy.observability.metrics import render_families
from support import weaker_kernel
from support.deadlines import HANG_SECONDS

needs_both = pytest.mark.skipif(
    not seccomp.is_supported() or landlock.find_abi_version() < 4,
    reason="needs a kernel with Landlock for TCP, and the filter",
)
CHECK = """
import asyncio, json, logging, sys
from argosy.isolation.confinement_health import ConfinementCheck
logging.basicConfig(stream=sys.stderr, level="WARNING")
check = ConfinementCheck()
asyncio.run(check.run())
print(json.dumps({"troubles": check.list_problems(), "protections": check.get_protections()}))
"""


def check_on(*lacking: str, **environment: str) -> tuple[dict, str]:
    done = subprocess.run(
        [*weaker_kernel.command(*lacking), sys.executable, "-c", CHECK], capture_output=True, timeout=HANG_SECONDS,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"], **environment}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr.decode()


@needs_both
def test_missing_protection_in_a_pod_is_in_healthz_and_one_warning():
    report, logged = check_on("seccomp", **{POD_VARIABLE: "10.0.0.1"})
    (trouble,) = report["troubles"]
    assert "system calls (no seccomp filter)" in trouble and "ARGOSY_CONFINE=best-effort" in trouble
    (line,) = logged.splitlines()
    assert line.startswith("WARNING:") and "untrusted code is refused" in line and "mode=required" in line
    assert report["protections"]["system-calls"] is False and report["protections"]["files"] is True


@needs_both
def test_missing_protection_outside_a_pod_is_only_logged_once():
    report, logged = check_on("landlock", "namespaces", "seccomp")
    assert report["troubles"] == []
    (line,) = logged.splitlines()
    assert line.startswith("WARNING:") and "mode=best-effort" in line and "files (neither Landlock" in line
    assert not any(report["protections"][name] for name in ("files", "network", "system-calls"))


@needs_both
@pytest.mark.anyio
async def test_full_confinement_reports_no_problems_and_sets_metrics(monkeypatch, caplog):
    monkeypatch.setenv(VARIABLE, "required")
    check = ConfinementCheck(probe_confinement)
    with caplog.at_level(logging.WARNING):
        await check.run()
    assert (check.list_problems(), check.list_missing_protections(), caplog.records) == ([], [], [])
    metrics = render_families(collect_confinement_metrics(check))
    assert "argosy_confinement_required 1\n" in metrics
    for name in ("files", "network", "system-calls", "keyrings"):
        assert f'argosy_confinement{{protection="{name}"}} 1\n' in metrics


@pytest.mark.anyio
async def test_failing_check_is_a_problem_when_confinement_is_required(monkeypatch):
    def fail() -> Confinement:
        raise TransientError("no new process can be started")

    monkeypatch.setenv(VARIABLE, "required")
    check = ConfinementCheck(fail)
    await check.run()
    assert check.list_problems() == ["cannot check the confinement: no new process can be started"]
    assert check.get_protections() == {}
