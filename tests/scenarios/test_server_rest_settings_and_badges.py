"""Settings, notifications, ApplicationSets and badges over the REST API, with bad input and missing permissions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from xml.etree import ElementTree

import pytest

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from support.rest_api import World, code, denied, rest_world

pytestmark = pytest.mark.anyio
SETS = "/api/v1/applicationsets"
CM = ResourceKey("", "ConfigMap", "argocd", "argocd-cm")
OIDC = """
name: Keycloak
issuer: https://id.example.com
clientID: argosy
clientSecret: canary-secret
requestedScopes: [openid, groups]
"""
SETTINGS = {
    "url": "https://argosy.example.com",
    "oidc.config": OIDC,
    "help.chatUrl": "https://chat.example.com",
    "resource.customizations.health.apps_Deployment": "return {}",
    "resource.customizations.ignoreDifferences.all": "jsonPointers: [/spec/replicas]",
    "resource.customizations.health.x_y_z": "x",
    "application.instanceLabelKey": "my/instance",
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with rest_world(tmp_path_factory.mktemp("more")) as world:
        await world.cluster.patch(CM, {"data": SETTINGS})
        data = {"service.slack": "token: x", "service.webhook.ci": "url: x", "template.a": "x", "trigger.on-b": "x"}
        await world.make("ConfigMap", "argocd-notifications-cm", data=data)
        for name, project, health, sync in (
            ("good", "team", "Healthy", "Synced"),
            ("bad", "team", "Degraded", "OutOfSync"),
            ("other", "default", "Progressing", "Synced"),
        ):
            await world.application(name, project)
            status = {"health": {"status": health}, "sync": {"status": sync, "revision": "1234567890abcdef"}}
            key = ResourceKey("argoproj.io", "Application", "argocd", name)
            await world.cluster.patch(key, {"status": status})
        await world.seen("", "ConfigMap", "argocd-notifications-cm")
        await world.until(lambda: _has_status(world, "other"))
        yield world


def _has_status(world: World, name: str) -> bool:
    application: Any = world.lookout.cache.get(ResourceKey("argoproj.io", "Application", "argocd", name)) or {}
    return bool(application.get("status", {}).get("sync"))


# -- settings and notifications ----------------------------------------------------------------------------------


async def test_anonymous_settings_contain_only_login_information(world: World) -> None:
    got = await world.raw("GET", "/api/v1/settings")
    assert got.code == 200 and b"canary" not in got.body
    assert got.json() == {
        "url": "https://argosy.example.com",
        "userLoginsDisabled": False,
        "oidcConfig": {
            "name": "Keycloak",
            "issuer": "https://id.example.com",
            "clientID": "argosy",
            "scopes": ["openid", "groups"],
        },
    }
    wrong = await world.raw("GET", "/api/v1/settings", authorization="Bearer nonsense")
    assert wrong.body == got.body
    assert (await world.raw("GET", "/api/v1/settings/plugins")).code == 401


async def test_settings_of_a_logged_in_user_contain_overrides_and_tracking(world: World) -> None:
    settings = await world.get("bob", "/api/v1/settings")
    assert "canary" not in json.dumps(settings)
    assert (settings["appLabelKey"], settings["trackingMethod"]) == ("my/instance", "annotation")
    assert settings["resourceOverrides"] == {
        "apps/Deployment": {"healthLua": "return {}"},
        "*/*": {"ignoreDifferences": {"jsonPointers": ["/spec/replicas"]}},
    }
    assert settings["help"]["chatUrl"] == "https://chat.example.com" and settings["execEnabled"] is False
    assert (await world.get("bob", "/api/v1/settings/plugins")) == {"plugins": []}


async def test_notification_services_templates_and_triggers_are_listed(world: World) -> None:
    where = "/api/v1/notifications"
    assert (await world.get("bob", f"{where}/services"))["items"] == [{"name": "ci"}, {"name": "slack"}]
    assert (await world.get("bob", f"{where}/templates"))["items"] == [{"name": "a"}]
    assert (await world.get("bob", f"{where}/triggers"))["items"] == [{"name": "on-b"}]
    assert (await world.raw("GET", f"{where}/services")).code == 401


# -- ApplicationSets ---------------------------------------------------------------------------------------------


def a_set(name: str, project: str = "team", **more: Any) -> dict[str, Any]:
    source = {"repoURL": "https://x/y", "path": "p"}
    spec = {"project": project, "source": source, "destination": {"namespace": "n", **more}}
    template = {"metadata": {"name": "{{name}}"}, "spec": spec}
    return {"metadata": {"name": name}, "spec": {"generators": [{"list": {"elements": []}}], "template": template}}


async def test_application_set_is_stored_updated_and_deleted_without_generating(world: World) -> None:
    response = await world.ask("cid", "POST", SETS, a_set("one"))
    assert response.code == 200, response.body
    assert (await world.get("cid", f"{SETS}/one"))["spec"]["template"]["spec"]["project"] == "team"
    assert [application_set["metadata"]["name"] for application_set in (await world.get("cid", SETS))["items"]] == [
        "one"
    ]
    assert (await world.get("cid", f"{SETS}?projects=other"))["items"] == []
    assert (await world.get("cid", f"{SETS}/one/resource-tree")) == {"nodes": []}
    assert (await world.get("cid", f"{SETS}/one/events"))["items"] == []
    status_code, message = await code(world, "cid", "POST", f"{SETS}/generate", a_set("one"))
    assert status_code == 400 and "generating ApplicationSets" in message
    changed = a_set("one", server="https://elsewhere")
    assert (await code(world, "cid", "POST", SETS, changed))[1].endswith("use upsert flag to force update")
    assert (await world.ask("cid", "POST", f"{SETS}?upsert=true", changed)).code == 200
    assert (await world.ask("cid", "DELETE", f"{SETS}/one")).code == 200
    await denied(world, "cid", "GET", f"{SETS}/one")


@pytest.mark.parametrize(
    "sent",
    [{}, {"metadata": {"name": "x"}}, {**a_set("x"), "metadata": {"name": "x", "namespace": "y"}}, {"metadata": 5}],
)
async def test_invalid_application_set_is_refused(world: World, sent: Any) -> None:
    assert (await code(world, "ann", "POST", SETS, sent))[0] == 400


async def test_application_sets_are_denied_without_permission(world: World) -> None:
    await world.ask("ann", "POST", SETS, a_set("foreign", "default"))
    assert (await world.get("cid", SETS))["items"] == []
    for method, where in (("GET", ""), ("DELETE", ""), ("GET", "/resource-tree"), ("GET", "/events")):
        for name in ("foreign", "absent"):
            await denied(world, "cid", method, f"{SETS}/{name}{where}")
    strange = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", **a_set("strange")}
    await world.cluster.create({**strange, "metadata": {"name": "strange", "namespace": "ml"}})
    await denied(world, "cid", "GET", f"{SETS}/strange?appsetNamespace=ml")  # no project allows that namespace
    assert (await world.get("cid", SETS))["items"] == []
    await denied(world, "cid", "POST", SETS, a_set("mine", "default"))
    await denied(world, "cid", "POST", SETS, a_set("mine", "{{project}}"))
    await denied(world, "cid", "POST", f"{SETS}?upsert=true", a_set("foreign", "team"))
    await denied(world, "cid", "POST", f"{SETS}/generate", a_set("x", "default"))


# -- badges ------------------------------------------------------------------------------------------------------


async def badge(world: World, query: str) -> list[str]:
    got = await world.raw("GET", f"/api/badge?{query}")
    assert got.code == 200 and got.headers["content-type"] == "image/svg+xml"
    root = ElementTree.fromstring(got.body)
    return [str(element.text) for element in root.iter("{http://www.w3.org/2000/svg}text")]


async def test_badges_show_status_only_if_enabled(world: World) -> None:
    absent, there = [await world.raw("GET", f"/api/badge?name={name}") for name in ("absent", "good")]
    assert (absent.code, absent.body) == (there.code, there.body) and absent.code == 200 and b"Unknown" in there.body
    await world.cluster.patch(CM, {"data": {"statusbadge.enabled": "true"}})
    await world.until(lambda: "statusbadge.enabled" in ((world.lookout.cache.get(CM) or {}).get("data") or {}))
    assert await badge(world, "name=good") == ["Healthy", "Synced"]
    assert await badge(world, "name=bad&revision=true&showAppName=true") == ["bad", "Degraded", "OutOfSync", "1234567"]
    whole = await badge(world, "name=bad&revision=true&keepFullRevision=true")
    wide = await world.raw("GET", "/api/badge?name=good&width=300")
    assert whole[-1] == "1234567890abcdef" and b'width="300" viewBox' in wide.body
    assert await badge(world, "name=absent&revision=true") == ["Unknown", "Unknown"]
    assert await badge(world, "name=good&namespace=elsewhere") == ["Unknown", "Unknown"]
    assert await badge(world, "name=good&project=default") == ["Unknown", "Unknown"]
    assert await badge(world, "project=team") == ["Degraded", "OutOfSync"]
    assert await badge(world, "project=default&project=team&revision=true") == ["Degraded", "OutOfSync"]
    assert await badge(world, "project=nobody") == ["Unknown", "Unknown"]
    for wrong in ("name=%3Cscript%3E", "name=a&namespace=..", "name=a&revision=perhaps", "project=" + "x" * 300):
        assert (await world.raw("GET", f"/api/badge?{wrong}")).code == 400
    assert (await world.raw("GET", "/api/badge?" + "&".join(["project=a"] * 30))).code == 400


async def test_application_set_update_retries_after_a_write_conflict(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ResourceKey("argoproj.io", "ApplicationSet", "argocd", "contended")
    assert (await world.ask("ann", "POST", SETS, a_set("contended"))).code == 200
    cluster = world.site.service.cluster
    replace_in_peace = cluster.replace

    async def replace_too_late(manifest: Manifest, **options: Any) -> Manifest:
        if "by-a-controller" not in (manifest["metadata"].get("labels") or {}):
            await world.cluster.patch(key, {"metadata": {"labels": {"by-a-controller": "yes"}}})
        return await replace_in_peace(manifest, **options)

    monkeypatch.setattr(cluster, "replace", replace_too_late)
    got = await world.ask("ann", "POST", f"{SETS}?upsert=true", a_set("contended", server="https://elsewhere"))
    assert got.code == 200, got
    application_set = await world.cluster.get(key)
    assert application_set and application_set["metadata"]["labels"] == {"by-a-controller": "yes"}
    assert "https://elsewhere" in json.dumps(application_set["spec"])
    await world.cluster.delete(key)
