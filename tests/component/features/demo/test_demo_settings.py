"""A restarted demo keeps the settings that users changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from argosy.features.demo.content import create_demo_repository
from argosy.features.demo.initial_demo_state import InitialStateSetup
from argosy.features.demo.stages_example_cluster_setup import StagesInitialState
from argosy.features.demo.stages_example_repository import REPOSITORY_URL
from argosy.features.init.template_files import DEFAULT_REPO_URL
from argosy.gitops.application.repository_url_parser import parse_url
from argosy.gitops.source.repository_access_settings import read_source_settings
from argosy.gitops.workspace.hosted_bare_repository import BareRepository
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

NAMESPACE = "openshift-gitops"
SETTINGS = ResourceKey("", "ConfigMap", NAMESPACE, "argosy-cm")
OF_USER = "# our mirrors\nhttps://github.com/acme https://mirror.acme.example\n"


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster.open() as embedded_cluster:
        await embedded_cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for name in ("applications.argoproj.io", "appprojects.argoproj.io"):
            await embedded_cluster.create(load_definition(name))
        yield embedded_cluster


@pytest.fixture
def repository(tmp_path: Path) -> BareRepository:
    return create_demo_repository(tmp_path / "repositories" / "demo.git")


async def data(cluster: EmbeddedCluster) -> dict[str, str]:
    settings = await cluster.get(SETTINGS)
    assert settings is not None
    return dict(settings["data"])


def arranger(cluster: EmbeddedCluster, repository: BareRepository) -> InitialStateSetup:
    return InitialStateSetup(cluster, repository, NAMESPACE, lambda _: None)


@pytest.mark.anyio
async def test_user_settings_are_kept_after_a_restart(cluster: EmbeddedCluster, repository: BareRepository) -> None:
    await arranger(cluster, repository).create_objects()
    first = (await data(cluster))["source.mirrors"]
    assert first == f"{DEFAULT_REPO_URL} file://{repository.folder}\n"
    user_settings = {"source.mirrors": OF_USER + first, "sync.massPrune": "5"}
    await cluster.patch(SETTINGS, {"data": user_settings}, manager="kubectl-edit")
    await arranger(cluster, repository).create_objects()
    assert await data(cluster) == user_settings


@pytest.mark.anyio
async def test_user_mirrors_are_kept_and_the_demo_mirror_is_added_again(
    cluster: EmbeddedCluster, repository: BareRepository
) -> None:
    await arranger(cluster, repository).create_objects()
    await cluster.patch(SETTINGS, {"data": {"source.mirrors": OF_USER.rstrip("\n")}}, manager="kubectl-edit")
    await arranger(cluster, repository).create_objects()
    settings = await data(cluster)
    assert settings["source.mirrors"] == f"{OF_USER}{DEFAULT_REPO_URL} file://{repository.folder}\n"
    located = read_source_settings(settings).locate(parse_url("https://github.com/acme/models"))
    assert str(located) == "https://mirror.acme.example/models"


@pytest.mark.anyio
async def test_user_mirror_for_the_demo_url_is_kept(cluster: EmbeddedCluster, repository: BareRepository) -> None:
    user_mirrors = f"{DEFAULT_REPO_URL} https://git.acme.example/llmops\n"
    await arranger(cluster, repository).create_objects()
    await cluster.patch(SETTINGS, {"data": {"source.mirrors": user_mirrors}}, manager="kubectl-edit")
    await arranger(cluster, repository).create_objects()
    assert (await data(cluster))["source.mirrors"] == user_mirrors


@pytest.mark.anyio
async def test_copied_demo_reads_its_own_repository(
    cluster: EmbeddedCluster, repository: BareRepository, tmp_path: Path
) -> None:
    await arranger(cluster, repository).create_objects()
    copied = create_demo_repository(tmp_path / "copy" / "repositories" / "demo.git")
    await cluster.patch(SETTINGS, {"data": {"source.mirrors": OF_USER + (await data(cluster))["source.mirrors"]}})
    await arranger(cluster, copied).create_objects()
    assert (await data(cluster))["source.mirrors"] == f"{OF_USER}{DEFAULT_REPO_URL} file://{copied.folder}\n"


@pytest.mark.anyio
async def test_stages_demo_keeps_user_mirrors(cluster: EmbeddedCluster, repository: BareRepository) -> None:
    metadata = {"name": SETTINGS.name, "namespace": NAMESPACE}
    user_settings = {"source.mirrors": OF_USER}
    await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": user_settings})
    await StagesInitialState(cluster, repository, NAMESPACE, lambda _: None).set_mirror(REPOSITORY_URL)
    assert (await data(cluster))["source.mirrors"] == f"{OF_USER}{REPOSITORY_URL} file://{repository.folder}\n"
