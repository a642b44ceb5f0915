"""Required confinement refuses to run without the protections; best-effort confinement uses the ones available."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys

import pytest

from argosy.isolation import landlock, seccomp
from argosy.isolation.confinement_requirement import BEST_EFFORT, POD_VARIABLE, REQUIRED, VARIABLE, read_mode
from support import weaker_kernel
from support.deadlines import HANG_SECONDS

needs_both = pytest.mark.skipif(
    not seccomp.is_supported() or landlock.find_abi_version() < 4,
    reason="needs a kernel with Landlock for TCP, and the filter",
)
TRY = """
import asyncio, dataclasses, json, os, sys, tempfile
from pathlib import Path
from argosy.isolation import ConfinedError, WorkerPool, RefusedError
from argosy.isolation import ProgramLimits
from argosy.isolation.untrusted_program_runner import run
from argosy.isolation.long_running_program import start_program

def program():
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        try:
            done = run(("echo", "ran"), folder=Path(name))
            return {"said": done.stdout.decode(), **dataclasses.asdict(done.confinement)}
        except RefusedError as problem:
            return {"refused": str(problem)}

async def worker():
    pool = WorkerPool(workers=1)
    try:
        answer = await pool.run("argosy.kube.resource_key:split_api_version", "apps/v1")
        return {"said": answer, **dataclasses.asdict(pool.get_confinement())}
    except RefusedError as problem:
        return {"refused": str(problem)}
    finally:
        await pool.close()

async def resident():
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        started = await start_program(("echo", "ran"), folder=Path(name), limits=ProgramLimits())
        ended = await started.exit_task
        return {"refused": ended.refused} if ended.refused else {"said": started.read_output_tail()}

print(json.dumps({"program": program(), "worker": asyncio.run(worker()), "resident": asyncio.run(resident())}))
"""
SAID = {"program": "ran\n", "worker": ["apps", "v1"]}
FILES, NETWORK, CALLS = "confine files", "network (neither", "system calls (no seccomp filter)"


@functools.cache
def attempt(*lacking: str, **environment: str) -> dict:
    done = subprocess.run(
        [*weaker_kernel.command(*lacking), sys.executable, "-c", TRY], capture_output=True, timeout=HANG_SECONDS,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"], **environment}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("environment", "mode"),
    [
        ({}, BEST_EFFORT),
        ({POD_VARIABLE: "10.0.0.1"}, REQUIRED),
        ({POD_VARIABLE: "10.0.0.1", VARIABLE: "best-effort"}, BEST_EFFORT),
        ({VARIABLE: "required"}, REQUIRED),
        ({VARIABLE: " Required "}, REQUIRED),
        ({VARIABLE: "best effort"}, REQUIRED),  # misspelled: fail closed
        ({VARIABLE: ""}, BEST_EFFORT),
    ],
)
def test_confinement_is_required_in_a_pod_unless_the_variable_overrides_it(environment, mode):
    assert read_mode(environment) == mode


@needs_both
@pytest.mark.parametrize("who", [*SAID, "resident"])
@pytest.mark.parametrize(
    ("lacking", "reasons"),
    [(("landlock", "namespaces"), (FILES,)), (("seccomp",), (CALLS,)),
     (("landlock", "namespaces", "seccomp"), (FILES, NETWORK, CALLS))],
)  # fmt: skip
def test_pod_refuses_to_run_code_without_required_protections(who, lacking, reasons):
    result = attempt(*lacking, **{POD_VARIABLE: "10.0.0.1"})[who]
    assert "said" not in result
    assert all(part in result["refused"] for part in reasons), result
    assert "ARGOSY_CONFINE=best-effort" in result["refused"]


@needs_both
def test_best_effort_runs_and_reports_missing_protections():
    results = attempt("landlock", "namespaces", "seccomp")
    assert results["resident"] == {"said": "ran\n"}
    for who, expected in SAID.items():
        assert results[who]["said"] == expected
        assert not results[who]["seccomp"] and not results[who]["landlock"]
        missing = " ".join(results[who]["missing"])
        assert all(part in missing for part in ("landlock:", "seccomp:", "network:"))


@needs_both
def test_pod_can_confine_without_namespaces_or_keyrings():
    results = attempt("namespaces", "keyrings", **{POD_VARIABLE: "10.0.0.1"})
    for who, expected in SAID.items():
        assert results[who]["said"] == expected
        assert (
            results[who]["network"] in ("none", "no-sockets") and results[who]["landlock"] and results[who]["seccomp"]
        )
