"""`align` also compares Applications that were not named, if they read a file that it changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.features.align_git.proposal_search_by_trial import AlignOptions
from argosy.features.align_git.service import align_applications
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.app_state_reader import open_reader
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.engine import CONTROL, Repository, config_map, furnish

pytestmark = pytest.mark.anyio
LABELS = "resources: [deployment.yaml]\nlabels:\n- pairs: {stage: two}\n  includeSelectors: true\n"


def deployment(name: str) -> Manifest:
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "x:1"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def application(name: str, url: str) -> Application:
    source = {"repoURL": url, "path": name, "targetRevision": "main"}
    destination = {"server": "https://kubernetes.default.svc", "namespace": "ml"}
    spec = {"project": "default", "source": source, "destination": destination}
    return read_application({"metadata": {"name": name, "namespace": CONTROL}, "spec": spec})


async def test_align_compares_only_applications_that_read_a_changed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The selector of `one` is immutable, so the base must change; `two` uses the same base and `three` does not."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    repository = Repository(tmp_path / "repository")
    overlay = "namePrefix: {}-\nresources: [../base]\n"
    repository.push(
        {
            "base/deployment.yaml": deployment("web"),
            "base/kustomization.yaml": LABELS,
            "one/kustomization.yaml": overlay.format("one"),
            "two/kustomization.yaml": overlay.format("two"),
            "three/settings.yaml": config_map(a="one"),
        }
    )
    apps = [application(name, repository.url) for name in ("one", "two", "three")]
    async with EmbeddedCluster.open() as cluster:
        await furnish(cluster, CONTROL, "ml")
        settings = {"name": "argosy-cm", "namespace": CONTROL}
        await cluster.create({**config_map(**{"source.local.roots": str(tmp_path)}), "metadata": settings})
        live = deployment("one-web")
        await cluster.create({**live, "metadata": {**live["metadata"], "namespace": "ml"}})
        async with open_reader(ApplicationService(cluster, "a test", CONTROL, CONTROL)) as reader:
            alignment = await align_applications(reader, apps[:1], None, AlignOptions(siblings=apps))
    assert [proposal.file for proposal in alignment.apps[0].done] == ["base/kustomization.yaml"]
    assert [aligned.app.name for aligned in alignment.apps] == ["one", "two"]
