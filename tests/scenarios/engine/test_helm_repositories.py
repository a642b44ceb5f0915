"""Applications whose source is a chart of a Helm repository, as in Argo CD: `chart` and a version."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from argosy.gitops.render.helm.chart_lock import compute_lock_digest
from argosy.kube.client import PatchKind
from argosy.kube.objects import key_of
from argosy.kube.resource_key import ResourceKey
from support.chart_server import ChartServer, chart_files, chart_server, pack
from support.deadlines import wait_until_async
from support.engine import CONTROL, Room
from support.helm_charts import needs_helm

pytestmark = [pytest.mark.anyio, needs_helm]
PASSWORD = "hunter22-very-secret"
AUTOMATED = {"automated": {}}


@pytest.fixture
def host() -> Iterator[ChartServer]:
    with chart_server() as server:
        yield server


async def allow_http(room: Room) -> None:
    await room.configure({"source.protocols": "https, ssh, http"}, "argosy-cm")


async def config(room: Room, name: str = "models") -> dict[str, Any]:
    config_map = await room.cluster.get(ResourceKey("", "ConfigMap", "ml", name))
    assert config_map is not None
    return dict(config_map["data"])


async def has_size(room: Room, size: str) -> bool:
    return (await config(room))["size"] == size


def chart_source(host: ChartServer, version: str, **more: Any) -> dict[str, Any]:
    return {"repoURL": host.url, "chart": "shop", "targetRevision": version, **more}


async def test_chart_is_delivered_with_its_version_as_revision_and_follows_its_range(
    room: Room, host: ChartServer
) -> None:
    await allow_http(room)
    host.publish("shop", "1.0.0")
    source = chart_source(host, "1.x", helm={"valuesObject": {"size": "big"}})
    await room.deliver(source=source, syncPolicy=AUTOMATED)
    app = await room.until_synced("1.0.0")
    assert await config(room) == {"version": "1.0.0", "size": "big"}
    assert app["status"]["sourceType"] == "Helm"
    host.publish("shop", "1.1.0")
    await room.annotate(refresh="normal")
    app = await room.until_synced("1.1.0")
    assert (await config(room))["version"] == "1.1.0"
    assert [entry["revision"] for entry in app["status"]["history"]] == ["1.0.0", "1.1.0"]
    assert app["status"]["operationState"]["syncResult"]["revision"] == "1.1.0"


async def test_earlier_version_is_synced_again_as_a_rollback_does(room: Room, host: ChartServer) -> None:
    await allow_http(room)
    for version in ("1.0.0", "1.1.0"):
        host.publish("shop", version)
    source = chart_source(host, "1.0.0")
    await room.deliver(source=source, syncPolicy=AUTOMATED)
    await room.until_synced("1.0.0")
    await room.patch_app({"spec": {"source": {"targetRevision": "1.1.0"}}})
    await room.until_synced("1.1.0")
    await room.patch_app({"spec": {"syncPolicy": None}})
    host.code = 503  # the host is not needed
    await room.sync(revision="1.0.0", source=source)
    app = await room.until(lambda status: status["history"][-1]["revision"] == "1.0.0")
    assert (await config(room))["version"] == "1.0.0"
    assert app["status"]["history"][-1]["source"]["chart"] == "shop"


async def test_values_come_from_a_git_repository(room: Room, host: ChartServer) -> None:
    await allow_http(room)
    host.publish("shop", "1.0.0")
    commit = room.repository.push({"env/prod.yaml": "size: huge\n"})
    chart = chart_source(host, "1.0.0", helm={"valueFiles": ["$values/env/prod.yaml"], "releaseName": "shop"})
    values = {"repoURL": room.repository.url, "targetRevision": "main", "ref": "values"}
    await room.deliver(source=None, sources=[chart, values], syncPolicy=AUTOMATED)
    await room.until(lambda status: status["sync"]["revisions"] == ["1.0.0", commit])
    await room.until_over()
    assert await config(room, "shop") == {"version": "1.0.0", "size": "huge"}
    room.repository.push({"env/prod.yaml": "size: small\n"})
    await room.annotate(refresh="normal")
    await room.until(lambda status: status["sync"]["revisions"] == ["1.0.0", room.repository.head])
    await room.until_over()


async def test_credentials_of_a_helm_secret_are_used_and_not_shown(room: Room, host: ChartServer) -> None:
    await allow_http(room)
    host.publish("shop", "1.0.0")
    host.wanted = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    await room.deliver(source=chart_source(host, "1.0.0"), syncPolicy=AUTOMATED)
    assert "the host wants other credentials" in await room.until_condition("ComparisonError")
    metadata = {"name": "charts", "namespace": CONTROL, "labels": {"argocd.argoproj.io/secret-type": "repository"}}
    fields = {"type": "helm", "name": "charts", "url": host.url, "username": "me", "password": PASSWORD}
    await room.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": fields})
    app = await room.until_synced("1.0.0")
    assert PASSWORD not in str(app)


async def test_repository_that_the_project_does_not_permit_is_never_asked(room: Room, host: ChartServer) -> None:
    await allow_http(room)
    host.publish("shop", "1.0.0")
    await room.project("team", sourceRepos=["https://charts.example.com/*"])
    await room.deliver(project="team", source=chart_source(host, "1.0.0"))
    message = await room.until_condition("InvalidSpecError")
    assert f"application repo {host.url} is not permitted in project 'team'" in message
    assert host.seen == []


async def test_missing_version_and_oci_registries_are_conditions(room: Room, host: ChartServer) -> None:
    await allow_http(room)
    await room.deliver("none", source=chart_source(host, ""))
    message = await room.until_condition("InvalidSpecError", "none")
    assert "targetRevision is required if the manifest source is a helm chart" in message
    await room.deliver(source={"repoURL": "registry.example.com/x", "chart": "shop", "targetRevision": "1.0.0"})
    assert "charts in OCI registries are not supported" in await room.until_condition("ComparisonError")


async def test_hard_refresh_delivers_a_version_that_was_published_again(room: Room, host: ChartServer) -> None:
    await allow_http(room)
    host.publish("shop", "1.0.0")
    await room.deliver(source=chart_source(host, "1.0.0"), syncPolicy={"automated": {"selfHeal": True}})
    await room.until_synced("1.0.0")
    host.entries.clear()
    host.publish("shop", "1.0.0", archive=pack({**chart_files("shop", "1.0.0"), "values.yaml": "size: big"}, "shop"))
    await room.annotate(refresh="hard")
    await wait_until_async(lambda: has_size(room, "big"))


# -- dependencies of a chart in Git ------------------------------------------------------------------------------------


def parent_chart(*dependencies: dict[str, Any], folder: str = "app") -> dict[str, str]:
    """Return the files of a chart that has only dependencies."""
    chart = {"apiVersion": "v2", "name": "parent", "version": "0.1.0", "dependencies": list(dependencies)}
    return {f"{folder}/Chart.yaml": yaml.safe_dump(chart)}


async def declare_helm_repository(room: Room, name: str, url: str, **fields: str) -> None:
    metadata = {"name": name, "namespace": CONTROL, "labels": {"argocd.argoproj.io/secret-type": "repository"}}
    values = {"type": "helm", "name": name, "url": url, **fields}
    await room.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": values})


async def test_dependencies_that_are_not_in_git_are_fetched(room: Room, host: ChartServer) -> None:
    await allow_http(room)
    for version in ("1.0.0", "1.2.0", "2.0.0"):
        host.publish("shop", version)
    dependency = {"name": "shop", "version": "^1.0", "repository": host.url}
    room.repository.push({**parent_chart(dependency), "app/values.yaml": "shop: {size: big}\n"})
    await room.deliver(syncPolicy=AUTOMATED)
    await room.until_synced()
    assert await config(room) == {"version": "1.2.0", "size": "big"}


async def test_locked_version_is_used_and_a_lock_of_other_dependencies_is_an_error(
    room: Room, host: ChartServer
) -> None:
    await allow_http(room)
    for version in ("1.0.0", "1.2.0"):
        host.publish("shop", version)
    dependency = {"name": "shop", "version": ">=1.0.0", "repository": host.url}
    locked = {"name": "shop", "version": "1.0.0", "repository": host.url}
    lock = {"dependencies": [locked], "digest": compute_lock_digest([dependency], [locked])}
    room.repository.push({**parent_chart(dependency), "app/Chart.lock": yaml.safe_dump(lock)})
    await room.deliver(syncPolicy=AUTOMATED)
    await room.until_synced()
    assert (await config(room))["version"] == "1.0.0"
    room.repository.push(parent_chart({**dependency, "version": ">=1.1.0"}))
    await room.annotate(refresh="normal")
    assert "the lock file (Chart.lock) is out of sync" in await room.until_condition("ComparisonError")


async def test_repository_is_found_by_the_name_of_its_secret_with_its_credentials(
    room: Room, host: ChartServer
) -> None:
    await allow_http(room)
    host.publish("shop", "1.0.0")
    host.wanted = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    room.repository.push(parent_chart({"name": "shop", "version": "v1.0.0", "repository": "@team"}))
    await room.deliver(syncPolicy=AUTOMATED)
    assert "no repository Secret has that name" in await room.until_condition("ComparisonError")
    await declare_helm_repository(room, "team", host.url, username="me", password=PASSWORD)
    await room.annotate(refresh="hard")
    app = await room.until_synced()
    assert (await config(room))["version"] == "1.0.0" and PASSWORD not in str(app)


async def test_two_charts_of_one_name_are_both_delivered(room: Room, host: ChartServer) -> None:
    await allow_http(room)
    for version in ("1.0.0", "2.0.0"):
        template = (
            "kind: ConfigMap\napiVersion: v1\nmetadata: {name: {{ .Chart.Name }}}\ndata: {v: {{ .Chart.Version }}}"
        )
        host.publish(
            "shop", version, archive=pack({**chart_files("shop", version), "templates/config.yaml": template}, "shop")
        )
    first = {"name": "shop", "version": "1.0.0", "repository": host.url}
    room.repository.push(parent_chart(first, {**first, "version": "2.0.0", "alias": "store"}))
    await room.deliver(syncPolicy=AUTOMATED)
    await room.until_synced()
    assert [await config(room, name) for name in ("shop", "store")] == [{"v": "1.0.0"}, {"v": "2.0.0"}]


async def test_dependencies_that_the_project_does_not_permit_are_never_asked_for(room: Room, host: ChartServer) -> None:
    await allow_http(room)
    host.publish("shop", "1.0.0")
    shop = {"name": "shop", "version": "1.0.0", "repository": host.url}
    registry = {"name": "cart", "version": "1.0.0", "repository": "oci://registry.example.com/charts"}
    room.repository.push(parent_chart(shop, registry))
    await room.project("team", sourceRepos=[room.repository.url])
    await room.deliver(project="team")
    message = await room.until_condition("ComparisonError")
    assert f"helm repos {host.url}, registry.example.com/charts are not permitted in project 'team'" in message
    assert host.seen == []


async def test_cached_render_is_not_used_if_the_project_permits_a_dependency_no_more(
    room: Room, host: ChartServer
) -> None:
    await allow_http(room)
    host.publish("shop", "1.0.0")
    room.repository.push(parent_chart({"name": "shop", "version": "1.0.0", "repository": host.url}))
    project = await room.project("team", sourceRepos=["*"])
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    await room.until_synced()
    permitted = {"spec": {"sourceRepos": [room.repository.url]}}
    await room.cluster.patch(key_of(project), permitted, kind_of_patch=PatchKind.MERGE)
    await room.annotate(refresh="normal")
    assert f"helm repos {host.url} are not permitted" in await room.until_condition("ComparisonError")


async def test_dependency_is_not_fetched_if_the_project_requires_signatures(room: Room, host: ChartServer) -> None:
    await allow_http(room)
    host.publish("shop", "1.0.0")
    room.repository.push(parent_chart({"name": "shop", "version": "1.0.0", "repository": host.url}))
    policy = {
        "repos": [{"url": f"{host.url}/*"}, {"url": host.url}],
        "gpg": {"mode": "head", "keys": ["4AEE18F83AFDEB23"]},
    }
    await room.project("team", sourceIntegrity={"git": {"policies": [policy]}})
    await room.deliver(project="team")
    assert "requires signatures for this repository" in await room.until_condition("ComparisonError")
    assert host.seen == []
