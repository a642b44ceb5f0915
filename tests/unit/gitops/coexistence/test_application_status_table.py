"""The status table lists Applications in promotion order."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from argosy.gitops.coexistence.application_refresh import build_status_table, list_applications_to_show
from argosy.kube.client import Cluster
from argosy.kube.schema.bundled_crds import load_definition

pytestmark = pytest.mark.anyio


@pytest.fixture
async def gitops(cluster: Cluster) -> AsyncIterator[Cluster]:
    await cluster.apply(load_definition("applications.argoproj.io"), manager="test")
    yield cluster


async def create_and_list_names(cluster: Cluster, *names: str) -> list[str]:
    for name in names:
        destination = {"namespace": "x", "server": "https://kubernetes.default.svc"}
        source = {"repoURL": "https://example.com/r.git", "path": "x"}
        await cluster.create(
            {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Application",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"project": "default", "destination": destination, "source": source},
            }
        )
    return [row[0] for row in build_status_table(await list_applications_to_show(cluster, "default")).rows]


async def test_environments_are_listed_in_promotion_order(gitops: Cluster) -> None:
    expected = ["llmops-dev", "llmops-staging", "llmops-production"]
    assert await create_and_list_names(gitops, *sorted(expected)) == expected


async def test_products_are_grouped_and_other_names_are_sorted(gitops: Cluster) -> None:
    names = ["a-dev", "a-prod", "argocd", "b-dev", "b-staging", "dev", "web"]
    assert await create_and_list_names(gitops, *reversed(names)) == names
