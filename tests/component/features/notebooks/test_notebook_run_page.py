"""The page of a notebook's run where this machine did not run it: its sources come from Git."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from argosy.features.notebooks import cell_sources, detail_page
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
    """A busy machine may need longer than a page waits."""
    monkeypatch.setattr(cell_sources, "PAGE_WAIT_SECONDS", HANG_SECONDS)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "notebooks")
    made.push({"train.ipynb": json.dumps({"cells": CELLS, "nbformat": 4, "metadata": {}})})
    return made


def job(repository: Repository, commit: str = "", **status: Any) -> Manifest:
    made = model_manifests.job(**status)
    del made["metadata"]["uid"]
    tracking = "frauds:mlops.mlops.dev/NotebookValidationJob:ml/train"
    made["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": tracking}
    made["spec"]["notebook"]["git"]["url"] = f"{HOST}/notebooks"
    for attempt in made["status"]["attempts"]:
        attempt["gitCommit"] = commit or repository.head
    return made


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


async def shown(site: Site, manifest: Manifest, **values: str) -> tuple[dict[str, Any], str]:
    """The values of the page, and its cells as HTML."""
    asked = replace(request(site, "/notebooks/ml/train", ns="ml", name="train", **values), subject=manifest)
    found = await detail_page.build_values(asked)
    return found, render_macro(
        "notebooks/parts.html", "cell_list", found["cells"], found["source_note"], found["view"].is_last
    )


async def test_sources_are_those_of_the_commit_that_was_run(tmp_path: Path, repository: Repository) -> None:
    manifest = job(repository)
    repository.push({"train.ipynb": json.dumps({"cells": [], "nbformat": 4, "metadata": {}})}, "Another notebook")
    async with watched_site(tmp_path, [project(), application(), manifest]) as site:
        found, html = await shown(site, manifest)
    assert [(each.index, each.type, each.state) for each in found["cells"]] == [
        (0, "markdown", "waiting"), (1, "code", "ok"), (2, "code", "ok"),
    ]  # fmt: skip
    assert "print(rows)" in html and "# Frauds" in html
    assert "&lt;b&gt;7&lt;/b&gt;" in html  # what the run printed, as the job's status has it
    assert "an output of the author" not in html  # saved with the notebook; this run did not print it
    assert "said nothing" not in html and "No output" not in html


async def test_an_earlier_run_shows_sources_and_does_not_call_its_cells_skipped(
    tmp_path: Path, repository: Repository
) -> None:
    manifest = job(repository)
    async with watched_site(tmp_path, [project(), application(), manifest]) as site:
        found, html = await shown(site, manifest, id="1")
    assert [each.state for each in found["cells"] if each.type == "code"] == ["unknown", "unknown"]
    assert "print(rows)" in html and "not run" not in html


async def test_a_repository_that_the_project_does_not_permit_is_not_read(
    tmp_path: Path, repository: Repository
) -> None:
    manifest = job(repository)
    permitted = project("default", "https://git.example/*")
    async with watched_site(tmp_path, [permitted, application(), manifest]) as site:
        found, html = await shown(site, manifest)
    assert "print(rows)" not in html
    assert "is not permitted in project default" in found["source_note"] and found["source_note"] in html


async def test_a_commit_that_is_gone_is_told(tmp_path: Path, repository: Repository) -> None:
    manifest = job(repository, commit="d" * 40)
    async with watched_site(tmp_path, [project(), application(), manifest]) as site:
        found, html = await shown(site, manifest)
    assert found["source_note"].startswith("Cannot read the sources:") and "dddddddd" in found["source_note"]
    assert "said nothing" not in html
    assert html.count("No output") == 1  # cell 2 ran and printed nothing; cell 0 was not run


async def test_a_running_cell_is_shown_as_running(tmp_path: Path, repository: Repository) -> None:
    results = [{"cellIndex": 0, "status": "Skipped"}, {"cellIndex": 1, "status": "Success", "executionTime": "0.1s"}]
    manifest = job(
        repository, phase="ValidationRunning", message="Validating notebook: 2 of 3 cells done", results=results
    )
    del manifest["status"]["completionTime"]
    async with watched_site(tmp_path, [project(), application(), manifest]) as site:
        found, _ = await shown(site, manifest)
    assert [each.state for each in found["cells"]] == ["waiting", "ok", "running"]
