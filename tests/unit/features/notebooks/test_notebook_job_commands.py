"""`argosy notebook list` and `argosy notebook cells`: table and JSON output."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

import pytest

from argosy.features.notebooks.jobs_cli import _print_cells, _print_jobs
from argosy.features.notebooks.notebook_job_lookup_and_rerun import NOUN, NotebookJobClient
from argosy.kube.objects import key_of
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

pytestmark = pytest.mark.anyio
RAN = [{"cellIndex": 0, "status": "Success"}, {"cellIndex": 1, "status": "Failure", "errorMessage": "KeyError: 'auc'"}]


@pytest.fixture
async def desk(cluster: EmbeddedCluster) -> NotebookJobClient:
    await cluster.create(load_definition("notebookvalidationjobs.mlops.mlops.dev"))
    for name in ("train", "waits"):
        metadata = {"name": name, "namespace": "default"}
        spec = {
            "notebook": {"path": "a.ipynb", "git": {"url": "https://example.org/a.git", "ref": "main"}},
            "podConfig": {"containerImage": "python:3"},
        }
        api = "mlops.mlops.dev/v1alpha1"
        job = await cluster.create({"apiVersion": api, "kind": NOUN.kind.kind, "metadata": metadata, "spec": spec})
        if name == "train":
            status = {"phase": "Failed", "gitCommit": "c0ffee1234567", "results": RAN}
            await cluster.patch(key_of(job), {"status": status}, subresource="status")
    return NotebookJobClient(cluster, "here")


def options(output: str = "text", name: str = "train") -> Namespace:
    return Namespace(output=output, name=name, namespace="default")


async def test_cells_are_printed_as_a_table(desk: NotebookJobClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert await _print_cells(desk, options()) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["CELL", "STATUS", "TIME", "MESSAGE"]
    assert [line[:2] for line in lines[1:]] == [["0", "Success"], ["1", "Failure"]]


async def test_cells_are_printed_as_json(desk: NotebookJobClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert await _print_cells(desk, options("json")) == 0
    assert json.loads(capsys.readouterr().out) == {"items": RAN}
    await _print_cells(desk, options("json", "waits"))
    assert json.loads(capsys.readouterr().out) == {"items": []}


async def test_job_without_results_prints_a_hint(desk: NotebookJobClient, capsys: pytest.CaptureFixture[str]) -> None:
    await _print_cells(desk, options(name="waits"))
    printed = capsys.readouterr()
    assert printed.out == "" and "no cell of waits has run yet; see: argosy notebook get waits" in printed.err


@pytest.mark.parametrize("output", ["text", "json"])
async def test_jobs_are_listed(desk: NotebookJobClient, capsys: pytest.CaptureFixture[str], output: str) -> None:
    assert await _print_jobs(desk, options(output)) == 0
    out = capsys.readouterr().out
    if output == "json":
        jobs: list[dict[str, Any]] = json.loads(out)["items"]
        assert [job["metadata"]["name"] for job in jobs] == ["train", "waits"]
    else:
        assert [line.split()[0] for line in out.splitlines()] == ["NAME", "train", "waits"]
        assert "c0ffee1" in out and "c0ffee12" not in out
