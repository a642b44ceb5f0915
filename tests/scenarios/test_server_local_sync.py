"""Sync of local manifests over Argo CD's REST API: permissions, refusals, results and redaction."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.gitops.reconciler.local_manifests import MAX_LOCAL_MANIFESTS_BYTES
from argosy.kube.objects import Manifest
from support.api_with_engine import AT, ApiScene, api_scene
from support.engine import config_map

pytestmark = pytest.mark.anyio
DENIED = b'{"error":"permission denied","code":7,"message":"permission denied"}'
PASSWORD = "local-Passw0rd-17"
FORMS = [PASSWORD.encode(), base64.b64encode(PASSWORD.encode())]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def syncer(resource: str, action: str, thing: str) -> bool:
    return action in ("get", "sync", "create")


@pytest.fixture(scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApiScene]:
    async with api_scene(tmp_path_factory.mktemp("api"), {"syn": syncer}) as opened_scene:
        opened_scene.room.repository.push({"app/settings.yaml": config_map(a="git")})
        yield opened_scene


def to_text(*manifests: Manifest) -> list[str]:
    return [json.dumps(manifest) for manifest in manifests]


def build_secret(name: str = "token") -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"password": PASSWORD}}


async def deliver(api: ApiScene, **spec: Any) -> str:
    name = f"app-{uuid.uuid4().hex[:8]}"
    await api.room.deliver(name, **spec)
    await api.seen(name, lambda app: app["status"]["sync"]["status"] != "Unknown")
    return name


async def test_local_manifests_are_synced(api: ApiScene) -> None:
    name = await deliver(api)
    texts = to_text(config_map(name, a="local"))
    response = await api.ask("POST", f"{name}/sync", {"manifests": texts, "revision": "main"})
    assert response.code == 200, response
    assert response.json()["operation"]["sync"]["manifests"] == texts
    state = (await api.over(name))["status"]["operationState"]
    assert (state["phase"], state["syncResult"]["revision"]) == ("Succeeded", "")
    live = await api.room.get("ConfigMap", name)
    assert live is not None and live["data"] == {"a": "local"}
    await api.seen(name, lambda app: app["status"]["sync"]["status"] == "Synced")
    diffs = (await api.get(f"{name}/managed-resources"))["items"]
    targets = {
        item["name"]: json.loads(item["targetState"]) for item in diffs if item.get("targetState", "null") != "null"
    }
    assert targets[name]["data"] == {"a": "local"}
    for page in ("diff", "history", "manifest", "operation", "events", "rollback?id=0", "resources", "sync"):
        response = await api.ask("GET", f"/apps/argocd/{name}/{page}")
        assert response.code == 200, (page, response)
    rendered = (await api.get(f"{name}/manifests"))["manifests"]
    assert [json.loads(text)["metadata"]["name"] for text in rendered] == ["settings"]


async def test_local_sync_needs_the_override_permission(api: ApiScene) -> None:
    name = await deliver(api)
    body = {"manifests": to_text(config_map(name))}
    response = await api.ask("POST", f"{name}/sync", body, "syn")
    assert (response.code, response.body) == (403, DENIED)
    application = {
        "metadata": {"name": f"{name}-new"},
        "spec": (await api.room.app(name))["spec"],
        "operation": {"sync": body},
    }
    response = await api.ask("POST", AT, application, "syn")
    assert (response.code, response.body) == (403, DENIED)
    assert (await api.ask("POST", AT, application)).code == 200
    assert (await api.over(f"{name}-new"))["status"]["operationState"]["phase"] == "Succeeded"


async def test_local_sync_with_automated_sync_is_refused_unless_it_is_a_dry_run(api: ApiScene) -> None:
    name = await deliver(api, syncPolicy={"automated": {}})
    await api.over(name)
    body = {"manifests": to_text(config_map(name))}
    response = await api.ask("POST", f"{name}/sync", body)
    assert response.code == 400 and response.json()["code"] == 9
    message = "cannot use local sync when Automatic Sync Policy is enabled unless for dry run"
    assert response.json()["message"].startswith(message)
    response = await api.ask("POST", f"{name}/sync", {**body, "dryRun": True})
    assert response.code == 200, response
    state = await api.seen(name, lambda app: app["status"]["operationState"]["operation"]["sync"].get("dryRun"))
    assert await api.room.get("ConfigMap", name) is None, state


REFUSED = {
    "no texts": ({"manifests": [{"kind": "ConfigMap"}]}, "manifests"),
    "no JSON": ({"manifests": ["kind: ConfigMap"]}, "invalid character 'k'"),
    "empty": ({"manifests": ["{}"]}, "has no kind"),
    "too deep": ({"manifests": ['{"a":' * 200 + "1" + "}" * 200]}, "levels deep"),
    "too large": ({"manifests": to_text(config_map(a='"' * (MAX_LOCAL_MANIFESTS_BYTES // 3)))}, "bytes, more than the"),
}


@pytest.mark.parametrize(("body", "message"), REFUSED.values(), ids=REFUSED)
async def test_invalid_local_manifests_are_refused_before_anything_is_written(
    api: ApiScene, body: dict[str, Any], message: str
) -> None:
    name = await deliver(api)
    version = (await api.room.app(name))["metadata"]["resourceVersion"]
    response = await api.ask("POST", f"{name}/sync", body)
    assert response.code == 400 and message in response.json()["message"], response
    assert PASSWORD not in response.json()["message"]
    application = {
        "metadata": {"name": f"{name}-new"}, "spec": (await api.room.app(name))["spec"], "operation": {"sync": body},
    }  # fmt: skip
    response = await api.ask("POST", AT, application)
    assert response.code == 400 and message in response.json()["message"], response
    app = await api.room.app(name)
    assert "operation" not in app and (app["metadata"]["resourceVersion"] == version or app.get("status"))


async def test_local_manifests_are_refused_if_the_project_requires_signatures(api: ApiScene) -> None:
    await api.room.project("signed", signatureKeys=[{"keyID": "4AEE18F83AFDEB23"}])
    name = f"app-{uuid.uuid4().hex[:8]}"
    await api.room.deliver(name, project="signed")
    await api.seen(name, lambda app: app["status"]["conditions"])
    response = await api.ask("POST", f"{name}/sync", {"manifests": to_text(config_map(name))})
    assert response.code == 400 and response.json()["code"] == 9
    assert "Cannot use local manifests when source integrity is enforced" in response.json()["message"]


@pytest.mark.parametrize("dry_run", [True, False])
async def test_secrets_in_local_manifests_are_masked(api: ApiScene, dry_run: bool) -> None:
    parent = await deliver(api)
    name = f"app-{uuid.uuid4().hex[:8]}"
    child = {**(await api.room.app(parent)), "metadata": {"name": name, "namespace": "argocd"}}
    child = {field: child[field] for field in ("apiVersion", "kind", "metadata", "spec")}
    response = await api.ask("POST", f"{parent}/sync", {"manifests": to_text(child)})
    assert response.code == 200, response
    await api.seen(name, lambda app: app["status"]["sync"]["status"])
    secret = build_secret(name)
    response = await api.ask("POST", f"{name}/sync", {"manifests": to_text(secret), "dryRun": dry_run})
    assert response.code == 200 and "++++++++" in response.body.decode(), response
    bodies = [response.body]
    await api.over(name)
    for path in (
        name, AT, f"{name}/managed-resources", f"{name}/manifests", f"{AT}/{name}/events",
        f"{parent}/resource?group=argoproj.io&version=v1alpha1&kind=Application&namespace=argocd&resourceName={name}",
        f"{parent}/managed-resources",
        f"/apps/argocd/{name}", f"/apps/argocd/{name}/manifest", f"/apps/argocd/{name}/diff",
        f"/apps/argocd/{name}/operation",
        *(f"/apps/argocd/{parent}/r/argoproj.io/Application/argocd/{name}?tab={tab}"
          for tab in ("live", "desired", "diff", "summary", "last-applied", "fields")),
    ):  # fmt: skip
        response = await api.ask("GET", path)
        assert response.code == 200, (path, response)
        bodies.append(response.body)
    assert any(b"operationState" in body for body in bodies[-6:])  # one page shows the operation with its manifests
    for body in bodies:
        assert not any(form in body for form in FORMS), body
