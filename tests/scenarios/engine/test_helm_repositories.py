"""Applications whose source is a chart of a Helm repository, as in Argo CD: `chart` and a version."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

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
