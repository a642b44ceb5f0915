"""Notebooks that run locally beside the cluster: their inputs, reported progress, and remaining files."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.features.notebooks.local_runs import LocalRuns
from argosy.kube.resource_key import ResourceKey
from support.deadlines import HANG_SECONDS
from support.notebook_jobs import NAMESPACE, Desk, desk, notebook

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="folders are mounted on Linux alone"),
]
GIVEN = """
import json, os, pathlib
pathlib.Path('/models/fraud').mkdir(exist_ok=True)
pathlib.Path('/models/fraud/model.json').write_text(json.dumps({'rate': rate}))
pathlib.Path('/models/link').symlink_to('/etc')
pathlib.Path('/tmp/here').write_text('x')
pathlib.Path('beside').write_text('x')
print(os.environ['PLAIN'], os.environ['TOKEN'], os.environ['A_KEY'], os.environ['VALIDATION_LEVEL'], os.environ['HOME'])
print(pathlib.Path('/settings/a.txt').read_text(), pathlib.Path('/keys/token').read_text(), os.getcwd())
print(pathlib.Path('../data/table.csv').read_text())
"""
FILES = {
    "notebooks/given.ipynb": notebook(("rate = 1", ["parameters"]), GIVEN, "import not_here_at_all", "1"),
    "notebooks/good.ipynb": notebook("x = 1", "print(x)", "open('/models/out', 'w').write('y')"),
    "notebooks/long.ipynb": notebook("print('begun')", "import time\ntime.sleep(300)"),
    "data/table.csv": "a,b",
}
VOLUMES = {
    "volumes": [
        {"name": "models", "persistentVolumeClaim": {"claimName": "models"}},
        {"name": "settings", "configMap": {"name": "settings", "items": [{"key": "a", "path": "a.txt"}]}},
        {"name": "keys", "secret": {"secretName": "keys"}},
    ],
    "volumeMounts": [
        {"name": "models", "mountPath": "/models"},
        {"name": "settings", "mountPath": "/settings"},
        {"name": "keys", "mountPath": "/keys"},
    ],
}
ENV = {
    "env": [
        {"name": "PLAIN", "value": "plain"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
    ],
    "envFrom": [{"configMapRef": {"name": "variables"}}],
}


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk(tmp_path, FILES) as new_desk:
        coded = base64.b64encode(b"secret").decode()
        for kind, name, data in (
            ("ConfigMap", "settings", {"a": "alpha"}),
            ("ConfigMap", "variables", {"A_KEY": "b"}),
            ("Secret", "keys", {"token": coded}),
        ):
            metadata = {"name": name, "namespace": NAMESPACE}
            await new_desk.cluster.create({"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data})
        yield new_desk


def list_run_files(folder: Path) -> list[str]:
    """List all files below the folder `runs`."""
    return sorted(str(path.relative_to(folder)) for path in folder.glob("runs/**/*") if not path.is_dir())


async def test_run_gets_volumes_env_and_parameters_and_reports_every_cell(at: Desk) -> None:
    job = at.job("notebooks/given.ipynb", podConfig={**VOLUMES, **ENV}, parameters={"rate": 0.5})
    outcome = await at.outcome(job)
    assert outcome.category == "dependency_install_failed"
    assert outcome.message.startswith("cell 2: ModuleNotFoundError: No module named 'not_here_at_all'; local runs")
    assert not outcome.retriable
    standing = await at.runs.observe(job, _first(job), at.context)
    assert [cell["status"] for cell in standing.cells] == ["Success", "Success", "Failure", "Skipped"]
    lines = standing.cells[1]["output"].splitlines()
    assert lines == ["plain secret b development /workspace", "alpha secret /workspace/repo/notebooks", "a,b"]
    assert (standing.pod, standing.cell_count) == ("job-validation", 4)
    assert standing.revision == (await _head(at))
    claim = at.folder / "volumes" / NAMESPACE / "models"
    assert json.loads((claim / "fraud" / "model.json").read_text()) == {"rate": 0.5}
    expected_names = ["events.jsonl", "outcome.json", "output.ipynb", "results.json", "run.json"]
    assert [os.path.basename(name) for name in list_run_files(at.folder)] == expected_names
    # argosy does not follow a link that a notebook left in a claim
    through = {"volumes": VOLUMES["volumes"], "volumeMounts": [
        {"name": "models", "mountPath": "/etc-of-the-machine", "subPath": "link"}]}  # fmt: skip
    refused = await at.outcome(at.job("notebooks/good.ipynb", "second", podConfig=through))
    assert "points outside of its volume" in refused.message
    await at.end(job)
    assert not [name for name in list_run_files(at.folder) if "/job/" in name]


@pytest.mark.tier("all")
async def test_artefacts_in_claims_have_digests_and_survive_a_restart(at: Desk) -> None:
    job = at.job("notebooks/good.ipynb", podConfig=VOLUMES)
    outcome = await at.outcome(job)
    assert (outcome.passed, outcome.message) == (
        True,
        "Validation completed: 3/3 cells succeeded (100.0% success rate)",
    )
    digest = "sha256:a1fce4363854ff888cff4b8e7875d600c2682390412a8cf79b37d0b11148b0fa"
    assert outcome.artefacts == ({"path": "/models/out", "digest": digest},)
    again = LocalRuns()
    async with again.open_backend(at.folder):
        observation = await again.observe(job, _first(job), at.context)
        assert observation.state == "ended" and observation.outcome == outcome


async def test_cancelled_run_leaves_no_files_and_is_absent(at: Desk) -> None:
    job = at.job("notebooks/long.ipynb")
    run = await at.begin(job)
    await at.becomes(job, run, lambda standing: len(standing.cells) == 1)
    await at.end(job, run)
    assert list_run_files(at.folder) == []
    assert (await at.runs.observe(job, run, at.context)).state == "absent"


@pytest.mark.tier("all")
async def test_run_timeout_is_a_notebook_failure_and_not_retriable(at: Desk) -> None:
    for seconds in (4, 30, HANG_SECONDS):  # a longer timeout if the first cell did not finish in time
        outcome = await at.outcome(at.job("notebooks/long.ipynb", f"job-{seconds:g}", timeout=f"{seconds:g}s"))
        if outcome.results.get("cells"):
            break
    assert (outcome.category, outcome.retriable) == ("notebook_timeout", False)
    assert [cell["status"] for cell in outcome.results["cells"]] == ["succeeded", "failed"]


@pytest.mark.tier("all")
async def test_parallel_limit_queues_runs(tmp_path: Path) -> None:
    async with desk(tmp_path, FILES, parallel="1") as at:
        jobs = [at.job("notebooks/long.ipynb", f"job-{number}") for number in range(3)]
        runs = [await at.begin(job) for job in jobs]
        await at.becomes(jobs[0], runs[0], lambda standing: len(standing.cells) == 1)
        states = [(await at.runs.observe(job, run, at.context)).state for job, run in zip(jobs, runs, strict=True)]
        assert states == ["running", "waiting", "waiting"]
        await at.end(jobs[1])
        await at.end(jobs[0])
        await at.becomes(jobs[2], runs[2], lambda standing: standing.state == "running")


@pytest.mark.parametrize(
    ("spec", "said", "retriable"),
    [
        ({"notebook": {"git": {"url": "https://git.example.com/notebooks.git", "ref": "no-such"}, "path": "a.ipynb"}},
         "no-such", False),
        ({"notebook": {"git": {"url": "file:///etc", "ref": "main"}, "path": "a.ipynb"}}, "not a readable", False),
        ({}, "file a.ipynb not found at this revision; correct spec.notebook.path", False),
        ({"podConfig": {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "no", "key": "k"}}}]},
          "path": "notebooks/good.ipynb"}, "Secret no: not found; create it", True),
        ({"podConfig": {"volumes": [{"name": "m", "emptyDir": {}}],
                        "volumeMounts": [{"name": "m", "mountPath": "/usr/lib/x"}]},
          "path": "notebooks/good.ipynb"}, "cannot confine the notebook", True),
    ],
)  # fmt: skip
async def test_run_that_cannot_start_reports_the_cause_and_if_it_is_retriable(
    at: Desk, spec: dict[str, Any], said: str, retriable: bool
) -> None:
    outcome = await at.outcome(at.job(**spec))
    assert said in outcome.message
    assert (outcome.passed, outcome.retriable) == (False, retriable)


async def test_missing_jupyter_packages_are_reported_with_the_install_command(
    at: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "argosy.features.notebooks.jupyter_package_check.REQUIRED_PACKAGES", ("nbformat", "not_here_at_all")
    )
    outcome = await at.outcome(at.job("notebooks/good.ipynb"))
    advice = "pip install 'argosy[notebooks]'"
    assert outcome.message == f"not_here_at_all: not installed, but required to run notebooks; {advice}"
    assert (outcome.passed, outcome.retriable, outcome.category) == (False, False, "environment_setup_failed")


async def test_init_container_shares_volumes_and_env_and_its_failure_fails_the_run(at: Desk) -> None:
    script = "echo $WORD > /models/out; pwd; echo no >&2; exit $CODE"
    init = {"name": "prepare", "command": ["sh", "-c", script], "env": [{"name": "WORD", "value": "first"}]}
    pod = {**VOLUMES, "initContainers": [init], "env": [{"name": "CODE", "value": "3"}]}
    outcome = await at.outcome(at.job("notebooks/good.ipynb", podConfig=pod))
    assert outcome.message == "init container prepare: exited with 3: /workspace\nno; correct its command"
    assert (at.folder / "volumes" / NAMESPACE / "models" / "out").read_text() == "first\n"


async def test_git_credentials_are_read_from_the_namespace_of_the_job(at: Desk) -> None:
    git = {"url": "https://git.example.com/notebooks.git", "ref": "main", "credentialsSecret": "keys"}
    outcome = await at.outcome(at.job(notebook={"git": git, "path": "notebooks/good.ipynb"}))
    assert outcome.message == (
        f"Secret {NAMESPACE}/keys: has neither ssh-privatekey nor username with password or token; add one of them"
    )


def _first(job: Any) -> Any:
    from argosy.features.notebooks.run_backend import RunKey

    return RunKey(job.uid, 1, 1)


async def _head(at: Desk) -> str:
    process = await asyncio.create_subprocess_exec(
        "git", "rev-parse", "HEAD", cwd=at.repository.folder, stdout=asyncio.subprocess.PIPE
    )
    return (await process.communicate())[0].decode().strip()


def test_run_folder_rejects_a_namespace_with_dots() -> None:
    from argosy.features.notebooks.local_runs.run_record_folder import get_run_folder

    with pytest.raises(ValueError, match="cannot be used as a folder name"):
        get_run_folder(Path("/data"), ResourceKey("g", "K", "..", "x"), None)
