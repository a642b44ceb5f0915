"""Projects, repositories, clusters, certificates and settings through argocd-python-client, a third-party client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from support.rest_api import World, rest_world

pytestmark = pytest.mark.anyio
argocd = pytest.importorskip("argocd_python_client", reason="argocd-python-client: pip install argosy[dev]")
apis = pytest.importorskip("argocd_python_client.apis")
URL = "https://git.example.invalid/team/app"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with rest_world(tmp_path_factory.mktemp("client")) as world:
        world.repository.push({"app/a.yaml": "{}"}, "first")
        yield world


def service(world: World, name: str) -> Any:
    configuration = argocd.Configuration(host=f"http://127.0.0.1:{world.client.port}")
    return getattr(apis, name)(argocd.ApiClient(configuration, "Authorization", "Bearer ann"))


async def called(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    return await asyncio.to_thread(call, *arguments, _check_return_type=False, **named)


async def test_client_creates_reads_updates_and_deletes_projects(world: World) -> None:
    from argocd_python_client.models import (
        ProjectProjectCreateRequest,
        ProjectProjectUpdateRequest,
        V1alpha1AppProject,
        V1alpha1AppProjectSpec,
        V1ObjectMeta,
    )

    projects = service(world, "ProjectServiceApi")

    def project(about: str) -> Any:
        spec = V1alpha1AppProjectSpec(description=about, source_repos=["*"])
        return V1alpha1AppProject(metadata=V1ObjectMeta(name="theirs"), spec=spec)

    created = await called(projects.project_service_create, ProjectProjectCreateRequest(project=project("x")))
    assert created["metadata"]["name"] == "theirs"
    names = [item["metadata"]["name"] for item in (await called(projects.project_service_list))["items"]]
    assert names == ["default", "theirs"]
    changed = ProjectProjectUpdateRequest(project=project("y"))
    assert (await called(projects.project_service_update, "theirs", changed))["spec"]["description"] == "y"
    assert (await called(projects.project_service_get, "theirs"))["spec"]["description"] == "y"
    await called(projects.project_service_delete, "theirs")


async def test_client_creates_repositories_and_lists_their_refs(world: World) -> None:
    from argocd_python_client.models import V1alpha1Repository

    repositories = service(world, "RepositoryServiceApi")
    created = await called(
        repositories.repository_service_create_repository,
        V1alpha1Repository(repo=world.repository.url, username="u", password="canary-password"),
    )
    assert created["repo"] == world.repository.url and "canary" not in str(created)
    (one,) = (await called(repositories.repository_service_list_repositories))["items"]
    assert one["connectionState"]["status"] == "Successful"
    assert (await called(repositories.repository_service_list_refs, world.repository.url))["branches"] == ["main"]
    await called(repositories.repository_service_delete_repository, world.repository.url)


async def test_client_creates_reads_and_deletes_clusters(world: World) -> None:
    from argocd_python_client.models import V1alpha1Cluster, V1alpha1ClusterConfig

    clusters = service(world, "ClusterServiceApi")
    body = V1alpha1Cluster(
        server="https://prod:6443", name="prod", config=V1alpha1ClusterConfig(bearer_token="canary-token-2")
    )
    assert "canary" not in str(await called(clusters.cluster_service_create, body))
    names = [item["name"] for item in (await called(clusters.cluster_service_list))["items"]]
    assert names == ["in-cluster", "prod"]
    assert (await called(clusters.cluster_service_get, "https://prod:6443"))["name"] == "prod"
    await called(clusters.cluster_service_delete, "https://prod:6443")


async def test_client_reads_settings_version_and_certificates(world: World) -> None:
    settings = await called(service(world, "SettingsServiceApi").settings_service_get)
    assert settings["app_label_key"] == "app.kubernetes.io/instance"
    version = await called(service(world, "VersionServiceApi").version_service_version)
    assert version["version"] == "1.2.3"
    certificates = service(world, "CertificateServiceApi")
    assert (await called(certificates.certificate_service_list_certificates))["items"] == []
