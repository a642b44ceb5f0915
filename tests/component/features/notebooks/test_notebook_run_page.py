"""The page of a notebook run of another machine: its cell sources come from Git."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from argosy.features.notebooks import cell_sources_from_git, run_detail_page
from argosy.features.notebooks.cell_sources_from_git import NotebookSources
from argosy.kube.objects import Manifest
from argosy.web.page_templates import render_macro
from argosy.web.site_services import Site
from support import model_manifests
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Repository
from support.watched_site import HOST, project, request, watched_site

pytestmark = pytest.mark.anyio
CELLS = [
    {"cell_type": "markdown", "metadata": {}, "source": "# Frauds"},
    {"cell_type": "code", "metadata": {}, "execution_count": 9, "source": ["rows = 7\n", "print(rows)"],
     "outputs": [{"output_type": "stream", "name": "stdout", "text": "an output of the author's\n"}]},
    {"cell_type": "code", "metadata": {}, "execution_count": None, "source": "save(rows)", "outputs": []},
]  # fmt: skip


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the page timeout, because a busy machine may need longer."""
    monkeypatch.setattr(cell_sources_from_git, "PAGE_WAIT_SECONDS", HANG_SECONDS)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    new_repository = Repository(tmp_path / "notebooks")
    new_repository.push({"train.ipynb": json.dumps({"cells": CELLS, "nbformat": 4, "metadata": {}})})
    return new_repository


def job(repository: Repository, commit: str = "", **status: Any) -> Manifest:
    job_manifest = model_manifests.job(**status)
    del job_manifest["metadata"]["uid"]
    tracking = "frauds:mlops.mlops.dev/NotebookValidationJob:ml/train"
    job_manifest["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": tracking}
    job_manifest["spec"]["notebook"]["git"]["url"] = f"{HOST}/notebooks"
    for attempt in job_manifest["status"]["attempts"]:
        attempt["gitCommit"] = commit or repository.head
    return job_manifest


def application() -> Manifest:
    resource = {"group": "mlops.mlops.dev", "kind": "NotebookValidationJob", "namespace": "ml", "name": "train"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "frauds", "namespace": CONTROL},
        "spec": {
            "project": "default",
            "source": {"repoURL": "https://git.example/ml.git", "path": "."},
            "destination": {"name": "in-cluster", "namespace": "ml"},
        },
        "status": {"resources": [{**resource, "version": "v1alpha1", "status": "Synced"}]},
    }


async def render_run_page(site: Site, manifest: Manifest, **values: str) -> tuple[dict[str, Any], str]:
    """The values of the page, and its cells as HTML."""
    page_request = replace(request(site, "/notebooks/ml/train", ns="ml", name="train", **values), subject=manifest)
    page_values = await run_detail_page.build_values(page_request, NotebookSources())
    return page_values, render_macro(
        "notebooks/parts.html",
        "cell_list",
        page_values["cells"],
        page_values["source_note"],
        page_values["view"].is_last,
    )


async def test_sources_come_from_the_commit_of_the_run(tmp_path: Path, repository: Repository) -> None:
    manifest = job(repository)
    repository.push({"train.ipynb": json.dumps({"cells": [], "nbformat": 4, "metadata": {}})}, "Another notebook")
    async with watched_site(tmp_path, [project(), application(), manifest]) as site:
        values, html = await render_run_page(site, manifest)
    assert [(cell.index, cell.type, cell.state) for cell in values["cells"]] == [
        (0, "markdown", "waiting"), (1, "code", "ok"), (2, "code", "ok"),
    ]  # fmt: skip
    assert "print(rows)" in html and "# Frauds" in html
    assert "&lt;b&gt;7&lt;/b&gt;" in html  # output of the run, from the status of the job
    assert "an output of the author" not in html  # saved with the notebook, not printed by this run
    assert "said nothing" not in html and "No output" not in html


async def test_earlier_run_shows_sources_with_unknown_cell_states(tmp_path: Path, repository: Repository) -> None:
    manifest = job(repository)
    async with watched_site(tmp_path, [project(), application(), manifest]) as site:
        values, html = await render_run_page(site, manifest, id="1")
    assert [cell.state for cell in values["cells"] if cell.type == "code"] == ["unknown", "unknown"]
    assert "print(rows)" in html and "not run" not in html


async def test_repository_not_permitted_by_the_project_is_not_read(tmp_path: Path, repository: Repository) -> None:
    manifest = job(repository)
    permitted = project("default", "https://git.example/*")
    async with watched_site(tmp_path, [permitted, application(), manifest]) as site:
        values, html = await render_run_page(site, manifest)
    assert "print(rows)" not in html
    assert "is not permitted in project default" in values["source_note"] and values["source_note"] in html


async def test_missing_commit_is_reported(tmp_path: Path, repository: Repository) -> None:
    manifest = job(repository, commit="d" * 40)
    async with watched_site(tmp_path, [project(), application(), manifest]) as site:
        values, html = await render_run_page(site, manifest)
    assert values["source_note"].startswith("Cannot read the sources:") and "dddddddd" in values["source_note"]
    assert "said nothing" not in html
    assert html.count("No output") == 1  # cell 2 ran and printed nothing; cell 0 was not run


async def test_a_running_cell_is_shown_as_running(tmp_path: Path, repository: Repository) -> None:
    results = [{"cellIndex": 0, "status": "Skipped"}, {"cellIndex": 1, "status": "Success", "executionTime": "0.1s"}]
    manifest = job(
        repository, phase="ValidationRunning", message="Validating notebook: 2 of 3 cells done", results=results
    )
    del manifest["status"]["completionTime"]
    async with watched_site(tmp_path, [project(), application(), manifest]) as site:
        values, _ = await render_run_page(site, manifest)
    assert [cell.state for cell in values["cells"]] == ["waiting", "ok", "running"]
