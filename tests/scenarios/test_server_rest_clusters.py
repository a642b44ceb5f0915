"""Clusters, certificates and GPG keys over the REST API: valid requests, invalid input, missing permissions."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.kube.resource_key import ResourceKey
from support.rest_api import World, code, denied, denied_by_name, path, rest_world, secrets_of, value
from support.sample_keys import HOST_KEY, KEY

pytestmark = pytest.mark.anyio
CLUSTERS = "/api/v1/clusters"
PROD: dict[str, Any] = {
    "server": "https://prod.example.com:6443",
    "name": "prod",
    "config": {"bearerToken": "canary-token-1"},
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with rest_world(tmp_path_factory.mktemp("clusters")) as world:
        await world.application("models", "team")
        await world.seen("argoproj.io", "Application", "models")
        yield world


async def test_in_cluster_exists_without_a_secret_and_cannot_be_changed(world: World) -> None:
    (here,) = (await world.get("ann", CLUSTERS))["items"]
    assert (here["server"], here["name"]) == ("https://kubernetes.default.svc", "in-cluster")
    assert here["connectionState"]["status"] == "Successful" and here["info"]["applicationsCount"] == 1
    assert {"v1", "v1/ConfigMap", "apps/v1/Deployment"} <= set(here["info"]["apiVersions"])
    figures = here["info"]["cacheInfo"]
    assert figures["apisCount"] > 10 and figures["resourcesCount"] > 10
    assert figures["lastCacheSyncTime"].endswith("Z")
    where = f"{CLUSTERS}/{path(here['server'])}"
    assert (await world.get("ann", f"{CLUSTERS}/in-cluster?id.type=name"))["name"] == "in-cluster"
    assert (await world.ask("ann", "POST", f"{where}/invalidate-cache", {})).code == 200
    for method, endpoint, sent in (("DELETE", where, None), ("POST", f"{where}/rotate-auth", {})):
        assert (await code(world, "ann", method, endpoint, sent))[0] == 400


async def test_change_of_the_own_cluster_gives_it_a_secret(world: World) -> None:
    """argo"""
    where = f"{CLUSTERS}/{path('https://kubernetes.default.svc')}"
    changed = await world.ask(
        "ann", "PUT", f"{where}?updatedFields=labels", {"labels": {"team": "ml"}, "name": "other"}
    )
    assert changed.json()["labels"] == {"team": "ml"}
    again = await world.ask("ann", "PUT", f"{where}?updatedFields=annotations", {"annotations": {"a": "b"}})
    assert (again.json()["name"], again.json()["labels"]) == ("in-cluster", {"team": "ml"})
    (own,) = (await world.get("ann", CLUSTERS))["items"]
    assert (own["annotations"], own["labels"]) == ({"a": "b"}, {"team": "ml"})
    assert (await world.ask("ann", "DELETE", where)).code == 200


async def test_project_user_cannot_redefine_the_own_cluster(world: World) -> None:
    own = {"server": "https://kubernetes.default.svc", "name": "taken", "project": "team"}
    for query in ("", "?upsert=true"):
        await denied(world, "cid", "POST", f"{CLUSTERS}{query}", own)
    assert await secrets_of(world, "cluster") == []


async def test_cluster_is_stored_as_a_secret_and_read_without_token(world: World) -> None:
    response = await world.ask("ann", "POST", CLUSTERS, {**PROD, "labels": {"env": "prod"}, "namespaces": ["a", "b"]})
    assert response.code == 200 and b"canary" not in response.body
    where = f"{CLUSTERS}/{path(PROD['server'])}"
    got = await world.ask("ann", "GET", where)
    document = got.json()
    assert b"canary" not in got.body and document["config"] == {"tlsClientConfig": {"insecure": False}}
    assert document["labels"] == {"env": "prod"} and document["namespaces"] == ["a", "b"]
    assert document["connectionState"]["status"] == "Unknown"
    (secret,) = await secrets_of(world, "cluster")
    assert secret["metadata"]["name"].startswith("cluster-prod.example.com-")
    assert json.loads(value(secret, "config")) == {"bearerToken": "canary-token-1"}
    await world.ask("ann", "DELETE", where)
    assert await secrets_of(world, "cluster") == []


async def test_masked_annotations_are_not_returned(world: World) -> None:
    key = ResourceKey("", "ConfigMap", "argocd", "argocd-cm")
    await world.cluster.patch(key, {"data": {"resource.sensitive.mask.annotations": "team/token"}})
    await world.until(lambda: bool(world.lookout.rules.diff.masked_annotations))
    marks = {"team/token": "canary-annotation", "team/name": "seen"}
    got = await world.ask("ann", "POST", CLUSTERS, {**PROD, "annotations": marks})
    assert got.json()["annotations"] == {"team/name": "seen"} and b"canary" not in got.body
    await world.ask("ann", "DELETE", f"{CLUSTERS}/{path(PROD['server'])}")


async def test_update_drops_the_token_when_tls_verification_is_disabled(world: World) -> None:
    await world.ask("ann", "POST", CLUSTERS, {**PROD, "namespaces": ["a", "b"]})
    where = f"{CLUSTERS}/{path(PROD['server'])}"
    changed = await world.ask("ann", "PUT", f"{where}?updatedFields=name", {"name": "live", "namespaces": []})
    assert changed.json()["name"] == "live" and changed.json()["namespaces"] == ["a", "b"]
    (secret,) = await secrets_of(world, "cluster")
    assert "canary-token-1" in value(secret, "config")
    await world.ask("ann", "PUT", where, {"name": "live", "config": {"tlsClientConfig": {"insecure": True}}})
    (secret,) = await secrets_of(world, "cluster")
    assert "canary" not in value(secret, "config")
    assert (await code(world, "ann", "PUT", where, {"server": "https://elsewhere"}))[0] == 400
    assert (await code(world, "ann", "POST", CLUSTERS, PROD))[1].endswith('; difference in keys "name,config"')
    assert (await world.ask("ann", "POST", f"{CLUSTERS}?upsert=true", PROD)).code == 200
    assert "refreshRequestedAt" in (await world.ask("ann", "POST", f"{where}/invalidate-cache", {})).json()
    assert (await world.ask("ann", "DELETE", where)).code == 200


@pytest.mark.parametrize(
    "sent", [{}, {"server": 5}, {"server": "x"}, {**PROD, "namespaces": "a"}, {**PROD, "config": []}]
)
async def test_invalid_cluster_is_refused(world: World, sent: Any) -> None:
    assert (await code(world, "ann", "POST", CLUSTERS, sent))[0] == 400


async def test_clusters_are_denied_without_permission(world: World) -> None:
    await world.ask("ann", "POST", CLUSTERS, {**PROD, "project": "team"})
    where = f"{CLUSTERS}/{path(PROD['server'])}"
    assert [cluster["name"] for cluster in (await world.get("cid", CLUSTERS))["items"]] == ["prod"]
    await world.ask("ann", "POST", CLUSTERS, {"server": "https://hidden:6443", "name": "hidden"})
    for query in ("", "?upsert=true"):  # the existence of the cluster must not be revealed
        await denied(world, "cid", "POST", f"{CLUSTERS}{query}", {"server": "https://hidden:6443", "project": "team"})
    await world.ask("ann", "DELETE", f"{CLUSTERS}/{path('https://hidden:6443')}")
    await denied(world, "cid", "PUT", where, {**PROD, "project": "other"})
    await denied(world, "cid", "PUT", where, {**PROD, "project": ""})
    assert (await world.ask("cid", "PUT", where, {**PROD, "project": "team"})).code == 200
    await world.ask("ann", "DELETE", where)
    for method, endpoint, sent in (
        ("GET", where, None),
        ("PUT", where, PROD),
        ("DELETE", where, None),
        ("POST", f"{where}/invalidate-cache", {}),
        ("POST", f"{where}/rotate-auth", {}),
        ("GET", f"{CLUSTERS}/{path('https://kubernetes.default.svc')}", None),
    ):
        await denied(world, "bob", method, endpoint, sent)
    permission = await denied_by_name(world, "bob", "POST", CLUSTERS, PROD)
    assert permission == f"clusters, create, {PROD['server']}, sub: bob"  # argo


# -- certificates and keys ---------------------------------------------------------------------------------------

KNOWN = {
    "serverName": "git.example.com",
    "certType": "ssh",
    "certSubType": "ssh-ed25519",
    "certData": base64.b64encode(HOST_KEY.encode()).decode(),
}


async def test_ssh_known_hosts_are_added_listed_and_deleted(world: World) -> None:
    where = "/api/v1/certificates"
    assert (await world.ask("ann", "POST", where, {"items": [KNOWN]})).code == 200
    config_map = await world.cluster.get(ResourceKey("", "ConfigMap", "argocd", "argocd-ssh-known-hosts-cm"))
    assert config_map and config_map["data"]["ssh_known_hosts"] == f"git.example.com ssh-ed25519 {HOST_KEY}\n"
    (one,) = (await world.get("ann", f"{where}?hostNamePattern=*.example.com"))["items"]
    assert one["certInfo"].startswith("SHA256:") and "certData" not in one
    assert (await world.get("ann", f"{where}?certType=https"))["items"] == []
    assert (await code(world, "ann", "DELETE", where))[0] == 400
    assert len((await world.ask("ann", "DELETE", f"{where}?certType=ssh")).json()["items"]) == 1
    assert (await world.get("ann", where))["items"] == []
    for method, sent in (("GET", None), ("POST", {"items": [KNOWN]}), ("DELETE", None)):
        await denied(world, "bob", method, where, sent)
    assert (await code(world, "ann", "POST", where, {"items": [{}]}))[0] == 400


async def test_gpg_keys_are_added_listed_and_deleted(world: World) -> None:
    where = "/api/v1/gpgkeys"
    assert (await world.ask("ann", "POST", where, {"keyData": KEY})).json()["created"]["items"][0]["trust"] == "unknown"
    assert (await world.ask("ann", "POST", where, {"keyData": KEY})).json()["skipped"] == ["18381E5CA4728E1E"]
    (one,) = (await world.get("ann", where))["items"]
    assert one["owner"] == "Ann Example <ann@example.com>" and "keyData" not in one
    assert (await world.get("ann", f"{where}/18381E5CA4728E1E"))["keyData"] == KEY
    assert (await code(world, "ann", "GET", f"{where}/absent"))[0] == 400
    await denied(world, "bob", "GET", f"{where}/absent")
    assert (await code(world, "ann", "DELETE", f"{where}?keyID=absent"))[0] == 400
    assert (await code(world, "ann", "DELETE", where))[0] == 400
    assert (await world.ask("ann", "DELETE", f"{where}?keyID=18381E5CA4728E1E")).code == 200
    assert (await code(world, "ann", "POST", where, {"keyData": "nonsense"}))[0] == 400
    for method, sent in (("GET", None), ("POST", {"keyData": KEY}), ("DELETE", None)):
        await denied(world, "bob", method, where, sent)
