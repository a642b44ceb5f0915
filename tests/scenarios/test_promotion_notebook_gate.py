"""The notebook gate of `argosy promote`: it opens if the notebook succeeded after the release was committed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.objects import key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.app_commands import write_kubeconfig
from support.clusters import served
from support.promotion_repository import ALONE, DELIVERY, Said, Shelf, chdir, make, typed

pytestmark = pytest.mark.anyio
CONTROL = "argocd"
GATED = "staging: {application: web-staging, path: staging, after: dev, gates: [{notebook: eval}]}"
JOB = ResourceKey("mlops.mlops.dev", "NotebookValidationJob", "dev", "eval")


class Site:
    def __init__(self, cluster: EmbeddedCluster, shelf: Shelf, kubeconfig: Path) -> None:
        self.cluster, self.shelf, self.kubeconfig = cluster, shelf, kubeconfig

    async def plan(self, code: int) -> Said:
        def run() -> Said:
            with chdir(self.shelf.folder):
                return typed("promote", "plan", "--to", "staging", "--kubeconfig", str(self.kubeconfig), code=code)

        return await asyncio.to_thread(run)

    async def ended(self, phase: str, after: timedelta, message: str = "") -> None:
        """Set the job's last run: it ended in this phase, this long after the release was committed."""
        committed = datetime.fromtimestamp(int(self.shelf.git("log", "-1", "--format=%ct")), UTC)
        at = (committed + after).strftime("%Y-%m-%dT%H:%M:%SZ")
        status = {"phase": phase, "completionTime": at, "message": message}
        await self.cluster.patch(JOB, {"status": status}, subresource="status")


async def _put(cluster: EmbeddedCluster, **manifest: Any) -> None:
    status = manifest.pop("status", None)
    await cluster.create(manifest)
    if status:
        # An Application has no status subresource, a NotebookValidationJob has one.
        await cluster.patch(key_of(manifest), {"status": status})


@pytest.fixture
async def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    for name, value in {**ALONE, "XDG_CACHE_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    shelf = make(tmp_path / "web")
    old = next(line for line in DELIVERY.splitlines() if line.strip().startswith("staging:"))
    shelf.write("argosy.yaml", DELIVERY.replace(old.strip(), GATED).replace("path: dev,", "path: dev, namespace: dev,"))
    shelf.commit("a gate")
    revision = shelf.pin("dev", "1.1")
    async with served(tmp_path / "plane") as api_server:
        cluster = EmbeddedCluster(api_server.plane)
        for kind in ("applications.argoproj.io", "notebookvalidationjobs.mlops.mlops.dev"):
            await cluster.create(load_definition(kind))
        for namespace in (CONTROL, "dev"):
            await _put(cluster, apiVersion="v1", kind="Namespace", metadata={"name": namespace})
        source = {"repoURL": "https://example.com/web.git", "path": "dev", "targetRevision": "main"}
        await _put(
            cluster, apiVersion="argoproj.io/v1alpha1", kind="Application",
            metadata={"name": "web-dev", "namespace": CONTROL},
            spec={"project": "default", "source": source, "destination": {"namespace": "dev"}},
            status={"health": {"status": "Healthy"}, "sync": {"status": "Synced", "revision": revision},
                    "history": [{"id": 0, "revision": revision, "deployedAt": "2026-01-01T00:00:00Z"}]},
        )  # fmt: skip
        git = {"url": "https://example.com/notebooks.git", "ref": "main"}
        await _put(
            cluster, apiVersion="mlops.mlops.dev/v1alpha1", kind="NotebookValidationJob",
            metadata={"name": "eval", "namespace": "dev"},
            spec={"notebook": {"git": git, "path": "eval.ipynb"}, "podConfig": {"containerImage": "python:3.12"}},
        )  # fmt: skip
        write_kubeconfig(tmp_path / "kubeconfig", api_server)
        yield Site(cluster, shelf, tmp_path / "kubeconfig")


async def test_notebook_gate_opens_only_after_a_success_newer_than_the_release(site: Site) -> None:
    result = await site.plan(code=1)
    assert "✖ notebook eval" in result.out and "NotebookValidationJob/eval in dev has not run yet" in result.out
    await site.ended("Failed", timedelta(minutes=1), "accuracy is 0.4")
    assert "is Failed: accuracy is 0.4" in (await site.plan(code=1)).out
    await site.ended("Succeeded", timedelta(hours=-1))
    plan_result = await site.plan(code=1)
    assert "succeeded before this release was committed" in plan_result.out
    assert f"argosy --kubeconfig {site.kubeconfig} notebook trigger eval -n dev" in plan_result.out + plan_result.err
    await site.ended("Succeeded", timedelta(seconds=1))
    assert "✔ notebook eval" in (await site.plan(code=0)).out
    site.shelf.pin("dev", "1.2")
    late_plan = await site.plan(code=1)
    assert "web-dev does not run this release yet" in late_plan.out, "what the notebook judged is not what would move"
