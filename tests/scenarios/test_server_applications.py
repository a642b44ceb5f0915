"""Argo CD's REST API for Applications: every route with a valid request and with invalid ones."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from argosy.annotations import MANAGED_BY_URL
from argosy.kube.objects import dump_yaml
from argosy.kube.resource_key import ResourceKey
from support.api_client import definition, version, widget
from support.api_with_engine import AT, CONTROL, LINES, SECRET_VALUE, ApiScene, a_folder, api_scene
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio
DENIED = b'{"error":"permission denied","code":7,"message":"permission denied"}'


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def of_team(resource: str, action: str, thing: str) -> bool:
    """Allow everything in project team, and nothing else."""
    return thing.startswith("team/")


def reader(resource: str, action: str, thing: str) -> bool:
    return (resource, action) == ("applications", "get")


def creator(resource: str, action: str, thing: str) -> bool:
    return (resource, action) in (("applications", "create"), ("applications", "get"))


def of_pods(resource: str, action: str, thing: str) -> bool:
    return action in ("delete//Pod/ml/one", "action/apps/Deployment/restart")


@pytest.fixture(scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApiScene]:
    allowed = {"tim": of_team, "rea": reader, "cre": creator, "pod": of_pods}
    async with api_scene(tmp_path_factory.mktemp("api"), allowed) as opened_scene:
        opened_scene.room.repository.push(a_folder(), "the first commit\n\nwith a body")
        await opened_scene.room.project("team", destinations=[{"server": "*", "namespace": "ml"}])
        await opened_scene.room.deliver(syncPolicy={"automated": {"prune": True}})
        await opened_scene.room.until_synced()
        await opened_scene.seen("models", lambda app: app["status"]["sync"]["status"] == "Synced")
        yield opened_scene


def fresh(project: str = "default", **spec: Any) -> dict[str, Any]:
    """Return an Application with a unique name and manual sync."""
    return {
        "metadata": {"name": f"app-{uuid.uuid4().hex[:8]}"},
        "spec": {
            "project": project,
            "source": {"repoURL": "https://git.example/nowhere", "path": "app", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "ml"},
            **spec,
        },
    }


async def create_application(api: ApiScene, who: str = "ann", **spec: Any) -> str:
    application = fresh(**spec)
    name: str = application["metadata"]["name"]
    response = await api.ask("POST", AT, application, who)
    assert response.code == 200, response
    return name


# -- list and get --------------------------------------------------------------------------------------------------


async def test_list_supports_filters_paging_and_fields(api: ApiScene) -> None:
    name = await create_application(api, project="team")
    names = [app["metadata"]["name"] for app in (await api.get(AT))["items"]]
    assert {"models", name} <= set(names) and names == sorted(names)
    assert [app["metadata"]["name"] for app in (await api.get(f"{AT}?projects=team&name={name}"))["items"]] == [name]
    fields = "items.metadata.name,items.status.sync.status"
    same_repository = (await api.get(f"{AT}?repo={api.room.repository.url}&fields={fields}"))["items"]
    assert {"metadata": {"name": "models"}, "status": {"sync": {"status": "Synced"}}} in same_repository
    assert name not in [app["metadata"]["name"] for app in same_repository]
    page = await api.get(f"{AT}?limit=1&offset=1")
    assert [app["metadata"]["name"] for app in page["items"]] == names[1:2]
    assert page["metadata"].get("remainingItemCount", 0) == len(names) - 2
    assert (await api.get(f"{AT}?selector=env%3Dnone"))["items"] == []
    assert (await api.get(f"{AT}?appNamespace=ml"))["items"] == []
    assert "status" not in (await api.get(f"{AT}?fields=-items.status&name=models"))["items"][0]


async def test_list_contains_only_applications_visible_to_the_caller(api: ApiScene) -> None:
    name = await create_application(api, project="team")
    visible_names = [app["metadata"]["name"] for app in (await api.get(AT, "tim"))["items"]]
    assert name in visible_names and "models" not in visible_names
    assert (await api.get(AT, "bob"))["items"] == []


async def test_get_with_refresh_waits_for_the_engine(api: ApiScene) -> None:
    head = api.room.repository.push({"other/note.yaml": a_map("note", a="1")})
    after = await api.get("models?refresh=hard")
    assert after["status"]["sync"]["revision"] == head
    head = api.room.repository.push({"other/note.yaml": a_map("note", a="2")})
    assert (await api.get("models?refresh=true"))["status"]["sync"]["revision"] == head  # clients also send "true"
    assert "argocd.argoproj.io/refresh" not in (after["metadata"].get("annotations") or {})


async def test_get_has_health_of_each_resource_and_list_has_none(api: ApiScene) -> None:
    app = await api.get("models")
    stored = app["status"]["resourceHealthSource"]
    fares = {resource["name"]: (resource.get("health") or {}).get("status") for resource in app["status"]["resources"]}
    assert stored == "appTree" and fares["web"] in ("Healthy", "Progressing", "Suspended") and fares["hidden"] is None
    listed = (await api.get(f"{AT}?name=models"))["items"][0]
    assert not any("health" in resource for resource in listed["status"]["resources"])  # as in Argo CD's list


# -- write ---------------------------------------------------------------------------------------------------------


async def test_application_is_created_updated_patched_and_deleted(api: ApiScene) -> None:
    name = await create_application(api)
    events = (await api.get(f"{name}/events"))["items"]
    assert events[0]["message"] == "ann created application" and events[0]["reason"] == "ResourceCreated"
    app = await api.get(name)
    app["metadata"]["labels"] = {"env": "dev"}
    app["spec"]["source"]["path"] = "other"
    put = await api.ask("PUT", name, app)
    assert put.code == 200 and put.json()["metadata"]["labels"] == {"env": "dev"}
    spec = {**app["spec"], "revisionHistoryLimit": 3}
    assert (await api.ask("PUT", f"{name}/spec", spec)).json()["revisionHistoryLimit"] == 3
    merge = {"name": name, "patch": '{"spec": {"source": {"path": "third"}}}', "patchType": "merge"}
    assert (await api.ask("PATCH", name, merge)).json()["spec"]["source"]["path"] == "third"
    steps = [{"op": "replace", "path": "/spec/source/path", "value": "fourth"}]
    patched = (await api.ask("PATCH", name, {"patch": json.dumps(steps)})).json()
    assert patched["spec"]["source"]["path"] == "fourth" and patched["metadata"]["labels"] == {"env": "dev"}
    assert (await api.ask("DELETE", f"{name}?cascade=false")).json() == {}
    await api.room.until_gone("argoproj.io/Application", name, CONTROL)


async def test_written_application_can_be_read_immediately(api: ApiScene) -> None:
    for _ in range(5):
        name = await create_application(api)
        assert (await api.get(name))["metadata"]["name"] == name
        patch = {"patch": '{"metadata": {"labels": {"a": "b"}}}', "patchType": "merge"}
        version = (await api.ask("PATCH", name, patch)).json()["metadata"]["resourceVersion"]
        metadata = (await api.get(name))["metadata"]
        assert metadata["labels"] == {"a": "b"} and int(metadata["resourceVersion"]) >= int(version)


async def test_error_about_a_project_does_not_tell_whether_it_exists(api: ApiScene) -> None:
    elsewhere = fresh(project="team")
    elsewhere["metadata"]["namespace"] = "ml"
    for application in (fresh(project="nobodys"), elsewhere):
        response = await api.ask("POST", AT, application)
        project = application["spec"]["project"]
        message = f'app is not allowed in project "{project}", or the project does not exist'
        assert (response.code, response.json()["message"]) == (400, message)
    name = await create_application(api)
    moved = {**(await api.get(name))["spec"], "project": "nobodys"}
    response = await api.ask("PUT", f"{name}/spec", moved)
    assert response.code == 400 and 'app is not allowed in project "nobodys"' in response.json()["message"]


async def test_source_that_does_not_render_is_refused_unless_validation_is_off(api: ApiScene) -> None:
    application = fresh(source=source(api, "garbage"))
    message = f"application spec for {application['metadata']['name']} is invalid: InvalidSpecError: "
    response = await api.ask("POST", AT, application)
    assert response.code == 400
    assert response.json()["message"].startswith(
        f"{message}Unable to generate manifests in garbage: garbage: app path does not exist"
    )
    assert await api.room.get("argoproj.io/Application", application["metadata"]["name"], CONTROL) is None
    assert (await api.ask("POST", f"{AT}?validate=false", application)).code == 200


async def test_new_sources_are_rendered_before_they_are_stored(api: ApiScene) -> None:
    name = await create_application(api, source=source(api, "app"))
    spec = (await api.get(name))["spec"]
    for path, ref, expected in (
        ("garbage", "main", "garbage: app path does not exist"),
        ("app", "no-such-branch", "there is no branch, tag or commit 'no-such-branch'"),
    ):
        broken = {**spec, "source": {**spec["source"], "path": path, "targetRevision": ref}}
        responses = [
            await api.ask("PUT", f"{name}/spec", broken),
            await api.ask("PUT", name, {"metadata": {"name": name}, "spec": broken}),
            await api.ask("PATCH", name, {"patch": json.dumps({"spec": broken}), "patchType": "merge"}),
        ]
        assert [response.code for response in responses] == [400] * 3
        assert all(expected in response.json()["message"] for response in responses)
    assert (await api.get(name))["spec"] == spec
    broken = {**spec, "source": {**spec["source"], "path": "garbage"}}
    assert (await api.ask("PUT", f"{name}/spec?validate=false", broken)).code == 200
    changed = {**broken, "syncPolicy": {"syncOptions": ["CreateNamespace=true"]}}
    assert (await api.ask("PUT", f"{name}/spec", changed)).code == 200, "its sources did not change"


async def test_sources_that_a_later_commit_may_mend_are_accepted(api: ApiScene) -> None:
    policy = {"repos": [{"url": "*"}], "gpg": {"mode": "head", "keys": ["0123456789ABCDEF"]}}
    await api.room.project("signed", sourceIntegrity={"git": {"policies": [policy]}})
    await create_application(api, project="signed", source=source(api, "app"))
    chart = {"other/Chart.yaml": {"apiVersion": "v2", "name": "chart", "version": "1.0.0"}}
    api.room.repository.push(chart)
    with_glob = {**source(api, "other"), "helm": {"valueFiles": ["none/*.yaml"]}}
    await create_application(api, source=with_glob)
    missing = fresh(source={**with_glob, "helm": {"valueFiles": ["none.yaml"]}})
    response = await api.ask("POST", AT, missing)
    assert response.code == 400
    assert "Error: open other/none.yaml: no such file or directory" in response.json()["message"]


async def test_repository_that_refuses_is_not_accessible(api: ApiScene) -> None:
    application = fresh(source={**source(api, "app"), "repoURL": f"{api.room.repository.url}/none"})
    response = await api.ask("POST", AT, application)
    assert response.code == 400
    assert "InvalidSpecError: repository not accessible: " in response.json()["message"]


async def test_create_of_a_different_existing_application_needs_upsert_and_update(api: ApiScene) -> None:
    application = fresh()
    name = application["metadata"]["name"]
    assert (await api.ask("POST", AT, application)).code == 200
    again = await api.ask("POST", AT, application)
    assert again.code == 200 and again.json()["metadata"]["uid"]
    application["spec"]["source"]["path"] = "other"
    response = await api.ask("POST", AT, application)
    assert (
        response.code == 400 and "existing application spec is different, use upsert flag" in response.json()["message"]
    )
    assert (await api.ask("POST", f"{AT}?upsert=true", application, "cre")).body == DENIED
    assert (await api.ask("POST", f"{AT}?upsert=true", application)).json()["spec"]["source"]["path"] == "other"
    await api.seen(name, lambda app: app["spec"]["source"]["path"] == "other")


async def test_upsert_merges_labels_and_keeps_unsent_annotations(api: ApiScene) -> None:
    application = fresh()
    first = {"labels": {"team": "a"}, "annotations": {"note": "kept"}}
    application["metadata"] |= first
    assert (await api.ask("POST", AT, application)).code == 200
    application["metadata"] |= {"labels": {"env": "dev"}, "annotations": {}}
    assert (await api.ask("POST", AT, application)).code == 400
    after = (await api.ask("POST", f"{AT}?upsert=true", application)).json()["metadata"]
    assert after["labels"] == {"team": "a", "env": "dev"} and after["annotations"] == {"note": "kept"}


async def test_body_cannot_set_status_owner_references_uid_or_another_name(api: ApiScene) -> None:
    application = fresh()
    application["status"] = {"history": [{"id": 0, "source": {"repoURL": "https://evil.example", "path": "x"}}]}
    application["metadata"] |= {"ownerReferences": [{"uid": "x"}], "uid": "mine", "generation": 7}
    created = (await api.ask("POST", AT, application)).json()
    assert "history" not in (created.get("status") or {}) and "ownerReferences" not in created["metadata"]
    assert created["metadata"]["uid"] != "mine"
    name = application["metadata"]["name"]
    patch = {"patch": json.dumps({"status": {"history": []}, "metadata": {"name": "other"}}), "patchType": "merge"}
    after = (await api.ask("PATCH", name, patch)).json()
    assert after["metadata"]["name"] == name


async def test_create_with_an_operation_needs_sync_permission(api: ApiScene) -> None:
    application = {**fresh(), "operation": {"sync": {"revision": "main"}}}
    assert (await api.ask("POST", AT, application, "cre")).body == DENIED
    signed = {**fresh(), "operation": {"sync": {}, "initiatedBy": {"username": "somebody-else"}}}
    assert (await api.ask("POST", AT, signed)).code == 200
    name = signed["metadata"]["name"]
    state = await api.over(name)
    assert state["status"]["operationState"]["operation"]["initiatedBy"] == {"username": "ann"}


async def test_operation_in_a_new_application_is_checked_against_its_project(api: ApiScene) -> None:
    source = {"repoURL": "https://elsewhere.example/x", "path": "app"}
    await api.room.project("own-source", sourceRepos=["https://git.example/*"])
    application = {**fresh(project="own-source"), "operation": {"sync": {"source": source}}}
    async with asyncio.timeout(HANG_SECONDS):
        while "or the project does not exist" in (await api.ask("POST", AT, application)).body.decode():
            await asyncio.sleep(0.05)
    response = await api.ask("POST", AT, application)
    assert response.code == 400, response
    assert (
        f"application repo {source['repoURL']} is not permitted in project 'own-source'" in response.json()["message"]
    )


async def test_move_to_another_project_needs_permission_in_both(api: ApiScene) -> None:
    name = await create_application(api, project="team")
    app = await api.get(name)
    moved = {**app, "spec": {**app["spec"], "project": "default"}}
    assert (await api.ask("PUT", name, moved, "tim")).body == DENIED
    assert (await api.ask("PUT", f"{name}/spec", moved["spec"], "tim")).body == DENIED
    patch = {"patch": '{"spec":{"project":"default"}}', "patchType": "merge"}
    assert (await api.ask("PATCH", name, patch, "tim")).body == DENIED
    elsewhere = {**app["spec"], "destination": {**app["spec"]["destination"], "namespace": "kube-system"}}
    response = await api.ask("PUT", f"{name}/spec", elsewhere, "tim")
    assert response.code == 400 and "do not match any of the allowed destinations" in response.json()["message"]
    assert (await api.ask("PUT", name, moved)).code == 200


# -- operations ----------------------------------------------------------------------------------------------------


async def test_sync_records_its_caller_and_rollback_restores_the_old_revision(api: ApiScene) -> None:
    api.room.repository.push({"hand/one.yaml": a_map("hand", a="1")})
    name = await create_application(api, source=source(api, "hand"))
    response = await api.ask("POST", f"{name}/sync", {"prune": True, "infos": [{"name": "why", "value": "a test"}]})
    assert response.code == 200 and response.json()["operation"]["initiatedBy"] == {"username": "ann"}
    done = await api.over(name)
    state = done["status"]["operationState"]
    assert state["phase"] == "Succeeded" and state["operation"]["initiatedBy"] == {"username": "ann"}
    assert state["operation"]["info"] == [{"name": "why", "value": "a test"}]
    api.room.repository.push({"hand/one.yaml": a_map("hand", a="2")})
    again = await api.ask("POST", f"{name}/sync", {})
    assert again.code == 200, again
    # argo: the operation names the commit that the caller could see, so that later ones wait for the next sync
    assert again.json()["operation"]["sync"]["revision"] == api.room.repository.head
    await api.seen(name, lambda app: len(app["status"]["history"]) == 2 and "operation" not in app)
    back = await api.ask("POST", f"{name}/rollback", {"id": "0"})
    assert back.code == 200, back
    await api.seen(name, lambda app: len(app["status"]["history"]) == 3)
    assert (await api.room.get("ConfigMap", "hand") or {})["data"] == {"a": "1"}


async def test_refused_operations_have_a_reason(api: ApiScene) -> None:
    auto = await api.ask("POST", "models/rollback", {"id": 0})
    assert auto.code == 400 and auto.json()["code"] == 9 and "auto-sync is enabled" in auto.json()["message"]
    other = await api.ask("POST", "models/sync", {"revision": "v2"})
    assert other.code == 400 and "there is no branch, tag or commit 'v2'" in other.json()["message"]
    idle = await api.ask("DELETE", "models/operation")
    assert idle.code == 400 and "no operation is in progress" in idle.json()["message"]
    name = await create_application(api)
    await api.room.patch_app({"operation": {"sync": {}}}, name)
    await api.ask("DELETE", f"{name}/operation")
    window = {"kind": "deny", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}
    await api.room.project("shut", syncWindows=[window])
    shut = await create_application(api, project="shut")
    response = await api.ask("POST", f"{shut}/sync", {})
    assert response.code == 403 and "blocked by sync window" in response.json()["message"]
    windows = await api.get(f"{shut}/syncwindows")
    assert windows["canSync"] is False and windows["activeWindows"] == windows["assignedWindows"] != []
    assert await api.get("models/syncwindows") == {"canSync": True}


# -- content -------------------------------------------------------------------------------------------------------


async def test_manifests_managed_resources_and_tree_have_argo_cd_shapes(api: ApiScene) -> None:
    rendered = await api.get("models/manifests")
    kinds = sorted(json.loads(manifest)["kind"] for manifest in rendered["manifests"])
    assert kinds == ["ConfigMap", "Deployment", "Pod", "Secret", "Service"]
    assert rendered["sourceType"] == "Directory" and rendered["namespace"] == "ml"
    assert {json.loads(manifest)["metadata"].get("namespace") for manifest in rendered["manifests"]} == {None}
    managed = (await api.get("models/managed-resources"))["items"]
    one = next(resource for resource in managed if resource["kind"] == "ConfigMap")
    assert json.loads(one["liveState"])["data"] == json.loads(one["targetState"])["data"] == {"a": "one"}
    assert {"normalizedLiveState", "predictedLiveState", "resourceVersion"} <= set(one) and "modified" not in one
    assert [resource["name"] for resource in (await api.get("models/managed-resources?kind=Pod"))["items"]] == ["one"]
    tree = await api.get("models/resource-tree")
    pod = next(node for node in tree["nodes"] if node["kind"] == "Pod")
    assert pod["uid"] and pod["version"] == "v1" and pod["images"] == ["registry.example/web:1"]
    assert tree["orphanedNodes"] == [] and "hosts" in tree
    # argo: `argocd app get -o tree` sends the name of the Application, which selects nothing
    assert len((await api.get("models/resource-tree?name=models"))["nodes"]) == len(tree["nodes"])
    one = {**source(api, "app"), "directory": {"include": "settings.yaml"}}
    absent = await create_application(
        api, source=one, destination={"server": "https://kubernetes.default.svc", "namespace": "other"}
    )
    await api.seen(absent, lambda app: bool(app.get("status", {}).get("resources")))
    (missing,) = (await api.get(f"{absent}/resource-tree"))["nodes"]
    assert (missing["name"], missing["version"], missing["health"]) == ("settings", "v1", {"status": "Missing"})
    server = await api.get("models/server-side-diff")
    assert server["modified"] is False and len(server["items"]) == 5


async def test_secret_values_are_masked_in_responses(api: ApiScene) -> None:
    named = "resourceName=hidden&kind=Secret&namespace=ml&version=v1"
    for path in ("models/manifests", "models/managed-resources", "models/server-side-diff", f"models/resource?{named}"):
        response = await api.ask("GET", path)
        assert (
            response.code == 200 and SECRET_VALUE.encode() not in response.body and b"super-secret" not in response.body
        ), path
    secret = json.loads((await api.get(f"models/resource?{named}"))["manifest"])
    assert secret["data"]["key"].strip("+") == ""


async def test_changed_secret_is_shown_as_modified_without_values(api: ApiScene) -> None:
    other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}, "data": {"key": SECRET_VALUE}}
    api.room.repository.push({"secrets/one.yaml": other})
    name = await create_application(api, source=source(api, "secrets"))
    await api.ask("POST", f"{name}/sync", {})
    await api.over(name)
    api.room.repository.push({"secrets/one.yaml": {**other, "data": {"key": "YW5vdGhlci1zZWNyZXQtdmFsdWU="}}})
    response = await api.ask("GET", f"{name}/managed-resources")
    (item,) = response.json()["items"]
    live, desired = (json.loads(item[side])["data"]["key"] for side in ("liveState", "targetState"))
    assert item["modified"] is True and live != desired and not (live + desired).strip("+")
    assert b"YW5vdGhlci1" not in response.body and SECRET_VALUE.encode() not in response.body


async def test_invalid_secret_is_shown_as_modified_in_a_server_side_diff(api: ApiScene) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "wrong"}, "data": {"key": SECRET_VALUE}}
    api.room.repository.push({"wrong/one.yaml": secret})
    name = await create_application(api, source=source(api, "wrong"))
    await api.ask("POST", f"{name}/sync", {})
    await api.over(name)
    api.room.repository.push({"wrong/one.yaml": {**secret, "data": {"key": 8765432}}})
    response = await api.ask("GET", f"{name}/server-side-diff")
    assert response.code == 200, response
    (item,) = response.json()["items"]
    assert item["modified"] is True
    assert b"8765432" not in response.body and SECRET_VALUE.encode() not in response.body


async def test_revision_metadata_has_author_date_and_message(api: ApiScene) -> None:
    api.room.repository._git("tag", "v1.0.0")
    head = api.room.repository.head
    commit_metadata = await api.get(f"models/revisions/{head}/metadata")
    assert (
        commit_metadata["author"].startswith("ann@example.com")
        and commit_metadata["date"].endswith("Z")
        and commit_metadata["message"]
    )
    assert await api.get(f"models/revisions/{head[:9]}/metadata") == commit_metadata


# -- objects -------------------------------------------------------------------------------------------------------


def named(kind: str, name: str, group: str = "", namespace: str = "ml", **more: str) -> str:
    query = {"kind": kind, "resourceName": name, "group": group, "namespace": namespace, "version": "v1", **more}
    return "&".join(f"{key}={value}" for key, value in query.items())


async def test_resource_is_read_patched_acted_on_and_deleted(api: ApiScene) -> None:
    await api.room.patch_app({"spec": {"syncPolicy": None}})
    web = named("Deployment", "web", "apps")
    assert json.loads((await api.get(f"models/resource?{web}"))["manifest"])["metadata"]["name"] == "web"
    patch = json.dumps({"metadata": {"labels": {"by": "hand"}}})
    patched = await api.ask("POST", f"models/resource?{web}&patchType=application/merge-patch%2Bjson", patch)
    assert json.loads(patched.json()["manifest"])["metadata"]["labels"]["by"] == "hand"
    names = [action["name"] for action in (await api.get(f"models/resource/actions?{web}"))["actions"]]
    assert "restart" in names and "pause" in names
    assert (await api.ask("POST", f"models/resource/actions?{web}", "restart")).json() == {}
    second = {"action": "pause", "group": "apps", "kind": "Deployment", "namespace": "ml", "resourceName": "web"}
    assert (await api.ask("POST", "models/resource/actions/v2", second)).json() == {}
    live = await api.room.get("apps/Deployment", "web") or {}
    assert live["spec"]["paused"] is True
    assert "kubectl.kubernetes.io/restartedAt" in live["spec"]["template"]["metadata"]["annotations"]
    assert (await api.ask("DELETE", f"models/resource?{named('Pod', 'one', force='true')}")).json() == {}
    await api.room.until_gone("Pod", "one")
    reasons = [event["reason"] for event in (await api.get("models/events"))["items"]]
    assert {"ResourceUpdated", "ResourceActionRan", "ResourceDeleted"} <= set(reasons)
    await api.room.sync()
    await api.seen("models", lambda app: "operation" not in app)
    await api.over("models")


async def test_action_of_an_application_toggles_its_automated_sync(api: ApiScene) -> None:
    await api.room.patch_app({"spec": {"syncPolicy": {"automated": {"prune": True}}}})
    await api.seen("models", lambda app: app["spec"]["syncPolicy"].get("automated") == {"prune": True})
    itself = named("Application", "models", "argoproj.io", namespace="argocd")
    [action] = (await api.get(f"models/resource/actions?{itself}"))["actions"]
    assert action == {"name": "toggle-auto-sync", "displayName": "Disable Auto-Sync"}
    assert (await api.ask("POST", f"models/resource/actions?{itself}", "toggle-auto-sync", "pod")).body == DENIED
    assert (await api.ask("POST", f"models/resource/actions?{itself}", "toggle-auto-sync")).json() == {}
    app = await api.seen("models", lambda app: "enabled" in app["spec"]["syncPolicy"].get("automated", {}))
    assert app["spec"]["syncPolicy"]["automated"] == {"prune": True, "enabled": False}
    body = {"action": "toggle-auto-sync", "group": "argoproj.io", "kind": "Application", "resourceName": "models"}
    assert (await api.ask("POST", "models/resource/actions/v2", body)).json() == {}
    await api.seen("models", lambda app: app["spec"]["syncPolicy"]["automated"].get("enabled") is True)


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("json-patch", """{"op": "add", "path": "/data", "value": "hello"}'"""),
        ("json-patch", '[{"op": "test", "path": "/data/key", "value": "guess"}]'),
        ("json-patch", '[{"op": "add", "path": "/data/key", "value": "not base64!"}]'),
        ("merge-patch", '{"data": {"key": 7}}'),
        ("merge-patch", '{"data": "text"}'),
    ],
)
async def test_failed_patch_of_a_secret_has_no_details(api: ApiScene, kind: str, patch: str) -> None:
    hidden = named("Secret", "hidden")
    response = await api.ask("POST", f"models/resource?{hidden}&patchType=application/{kind}%2Bjson", patch)
    message = "failed to patch Secret ml/hidden: the cause is not shown, because it may quote the Secret"
    assert (response.code, response.json()["message"]) == (400, f"{message}; correct the patch")


@pytest.mark.parametrize("has_subresource", [True, False])
async def test_action_writes_the_status_of_kinds_with_and_without_the_subresource(
    api: ApiScene, has_subresource: bool
) -> None:
    plural, kind = ("dials", "Dial") if has_subresource else ("plates", "Plate")
    served = version(**({"subresources": {"status": {}}} if has_subresource else {}))
    await api.room.cluster.create(definition(served, plural=plural))
    name = f"app-{plural}"
    api.room.repository.push({f"{plural}/one.yaml": {**widget("one", size=1), "kind": kind}})
    script = "obj.spec.size = 2; obj.status = {phase = 'Set'}; return obj"
    actions = {"discovery.lua": "return {set = {}}", "definitions": [{"name": "set", "action.lua": script}]}
    await api.room.configure({f"resource.customizations.actions.argosy.dev_{kind}": dump_yaml(actions)})
    await api.room.deliver(name, plural, syncPolicy={"automated": {}})
    await api.room.until_synced(name=name)
    one = named(kind, "one", "argosy.dev")
    await api.seen(name, lambda app: app["status"]["resources"][0]["name"] == "one")
    assert (await api.ask("POST", f"{name}/resource/actions?{one}", "set")).json() == {}
    live = await api.room.get(f"argosy.dev/{kind}", "one") or {}
    assert (live["spec"]["size"], live["status"]) == (2, {"phase": "Set"})


async def test_resource_changes_are_impersonated_like_a_sync(api: ApiScene) -> None:
    enabled = "application.sync.impersonation.enabled"
    web = named("Deployment", "web", "apps")
    second = {"action": "pause", "group": "apps", "kind": "Deployment", "namespace": "ml", "resourceName": "web"}
    patch = json.dumps({"metadata": {"labels": {"a": "b"}}})
    changes: list[tuple[str, str, Any]] = [
        ("POST", f"models/resource?{web}&patchType=application/merge-patch%2Bjson", patch),
        ("POST", f"models/resource/actions?{web}", "restart"),
        ("POST", "models/resource/actions/v2", second),
        ("DELETE", f"models/resource?{web}", None),
    ]
    lookout = api.site.cluster_view
    await api.room.configure({enabled: "true"})
    try:
        await until(lambda: lookout.rules.impersonation.is_enabled)
        for method, path, document in changes:
            refused = await api.ask(method, path, document)
            assert refused.code == 403, (path, refused)
            assert "no matching service account" in refused.json()["message"]
        assert (await api.ask("GET", f"models/resource?{web}")).code == 200
    finally:
        await api.room.configure({enabled: None})
        await until(lambda: not lookout.rules.impersonation.is_enabled)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not holds():
            await asyncio.sleep(0.01)


async def test_objects_outside_the_application_are_refused(api: ApiScene) -> None:
    await api.room.cluster.create(a_map("foreign", "ml", a="b"))
    for method, path, document in (
        ("GET", f"models/resource?{named('ConfigMap', 'foreign')}", None),
        ("POST", f"models/resource?{named('ConfigMap', 'foreign')}", "{}"),
        ("DELETE", f"models/resource?{named('ConfigMap', 'foreign')}", None),
        ("GET", f"models/resource/actions?{named('ConfigMap', 'foreign')}", None),
        ("POST", f"models/resource/actions?{named('ConfigMap', 'foreign')}", "restart"),
        ("GET", f"models/resource/links?{named('ConfigMap', 'foreign')}", None),
        ("GET", "models/events?resourceName=foreign&resourceNamespace=ml", None),
        ("GET", "models/pods/nobody/logs", None),
    ):
        response = await api.ask(method, path, document)
        assert response.code == 400 and b"foreign" not in re.sub(
            rb"(ConfigMap )?foreign not found", b"", response.body
        ), (
            path,
            response,
        )
    assert await api.room.cluster.get(ResourceKey("", "ConfigMap", "ml", "foreign")) is not None
    unknown = await api.ask("GET", "models/events?resourceName=nobody&resourceNamespace=ml&resourceUID=1")
    assert "nobody not found as part of application models" in unknown.json()["message"]


async def test_objects_without_pods_have_no_logs(api: ApiScene) -> None:
    for query in (named("ConfigMap", "settings"), named("Deployment", "nobody", "apps")):
        response = await api.ask("GET", f"models/logs?{query}")
        assert (response.code, response.body) == (200, b"")


async def test_managed_objects_denied_by_the_project_are_refused(api: ApiScene) -> None:
    api.room.repository.push({"narrow/one.yaml": a_map("narrow", a="1")})
    await api.room.project("narrow")
    name = await create_application(api, project="narrow", source=source(api, "narrow"))
    await api.ask("POST", f"{name}/sync", {})
    await api.over(name)
    assert (await api.ask("GET", f"{name}/resource?{named('ConfigMap', 'narrow')}")).code == 200
    key = ResourceKey("argoproj.io", "AppProject", CONTROL, "narrow")
    await api.room.cluster.patch(key, {"spec": {"namespaceResourceBlacklist": [{"group": "", "kind": "ConfigMap"}]}})
    async with asyncio.timeout(HANG_SECONDS):
        while (await api.ask("GET", f"{name}/resource?{named('ConfigMap', 'narrow')}")).code == 200:
            await asyncio.sleep(0.05)
    assert (await api.ask("DELETE", f"{name}/resource?{named('ConfigMap', 'narrow')}")).code == 400
    assert await api.room.get("ConfigMap", "narrow") is not None


async def test_fine_grained_permissions_allow_only_their_action(api: ApiScene) -> None:
    assert (await api.ask("DELETE", f"models/resource?{named('ConfigMap', 'settings')}", who="pod")).body == DENIED
    assert (await api.ask("POST", f"models/resource?{named('Pod', 'one')}", "{}", "pod")).body == DENIED
    web = named("Deployment", "web", "apps")
    assert (await api.ask("POST", f"models/resource/actions?{web}", "restart", "pod")).code == 200
    assert (await api.ask("POST", f"models/resource/actions?{web}", "pause", "pod")).body == DENIED
    assert (await api.ask("GET", "models", who="pod")).body == DENIED


# -- logs, links ---------------------------------------------------------------------------------------------------


async def test_logs_are_streamed_as_frames_with_a_last_frame(api: ApiScene) -> None:
    for path in ("models/pods/one/logs?namespace=ml", "models/logs?podName=one&container=main"):
        response = await api.ask("GET", path)
        assert response.code == 200, response
        frames = [json.loads(line)["result"] for line in response.body.splitlines()]
        assert [frame["content"] for frame in frames] == [*LINES, ""]
        assert [frame["last"] for frame in frames] == [False, False, False, True]
        assert {frame["podName"] for frame in frames} == {"one"}
    short = await api.ask("GET", "models/logs?podName=one&tailLines=2&filter=warning")
    assert [json.loads(line)["result"]["content"] for line in short.body.splitlines()] == ["Warning: slow", ""]
    assert (await api.ask("GET", "models/logs?podName=one", who="rea")).body == DENIED


async def test_deep_links_come_from_settings_and_allow_only_web_urls(api: ApiScene) -> None:
    links = (
        '- {url: "https://wiki.example/{{.app.metadata.name}}", title: Wiki, if: "app.spec.project == \'default\'"}\n'
        '- {url: "javascript:alert(1)", title: Bad}\n'
        '- {url: "https://no.example", title: No, if: "app.spec.project == \'other\'"}\n'
    )
    of_objects = links.replace("app.metadata", "resource.metadata")
    await api.room.configure({"application.links": links, "resource.links": of_objects})
    async with asyncio.timeout(HANG_SECONDS):
        while not (app_links := (await api.get("models/links"))["items"]):
            await asyncio.sleep(0.05)
    assert app_links == [{"url": "https://wiki.example/models", "title": "Wiki"}]
    object_links = await api.get(f"models/resource/links?{named('ConfigMap', 'settings')}")
    assert object_links["items"] == [{"url": "https://wiki.example/settings", "title": "Wiki"}]


async def test_links_name_the_installation_that_manages_the_application(api: ApiScene) -> None:
    links = "- {url: '{{.managedByURL}}/applications/{{.app.metadata.name}}', title: Managed by}"
    await api.room.configure({"application.links": links, "url": "https://here.example"})
    name = await create_application(api, source=source(api, "app"))
    metadata = (await api.get(name))["metadata"]

    async def annotate(url: str) -> int:
        body = {"metadata": {**metadata, "annotations": {MANAGED_BY_URL: url}}, "spec": (await api.get(name))["spec"]}
        return (await api.ask("PUT", name, body)).code

    async def until_link(expected: str) -> None:
        async with asyncio.timeout(HANG_SECONDS):
            while [link["url"] for link in (await api.get(f"{name}/links"))["items"]] != [expected]:
                await asyncio.sleep(0.05)

    await until_link(f"https://here.example/applications/{name}")
    assert await annotate("https://there.example") == 200
    await until_link(f"https://there.example/applications/{name}")
    assert await annotate("javascript:alert(1)") == 400


# -- bad input -----------------------------------------------------------------------------------------------------

WRONG = (
    ("GET", f"{AT}?selector=%3D%3D%3D", None),
    ("GET", f"{AT}?limit=many", None),
    ("GET", f"{AT}?offset=-1", None),
    ("GET", f"{AT}?fields={'a,' * 300}", None),
    ("POST", AT, {}),
    ("POST", AT, []),
    ("POST", AT, {"metadata": {"name": "x"}}),
    ("POST", AT, {"metadata": {"name": 7}, "spec": {}}),
    ("POST", AT, {"metadata": {"name": "x"}, "spec": {"source": {"repoURL": "https://x/y"}, "destination": {}}}),
    ("POST", AT, {"metadata": {"name": "x"}, "spec": {"source": "text", "destination": {"server": "x"}}}),
    ("PUT", "models", {"metadata": {"name": "other"}, "spec": {}}),
    ("PUT", "models", {"metadata": {"name": "models"}, "spec": []}),
    ("PUT", "models/spec", {}),
    ("PATCH", "models", {"patch": "not json ["}),
    ("PATCH", "models", {"name": "other", "patch": "{}"}),
    ("PATCH", "models", {"patch": "{}", "patchType": "strange"}),
    ("PATCH", "models", {"patch": '[{"op": "remove", "path": "/metadata"}]'}),
    ("PATCH", "models?appNamespace=ml", {"patch": "{}", "appNamespace": "argocd"}),
    ("DELETE", "models?cascade=false&propagationPolicy=foreground", None),
    ("DELETE", "models?propagationPolicy=strange", None),
    ("DELETE", "models?cascade=perhaps", None),
    ("POST", "models/sync", {"prune": "yes"}),
    ("POST", "models/sync", {"manifests": ["{}"]}),
    ("POST", "models/rollback", {"id": 4711}),
    ("POST", "models/rollback", {"id": "first"}),
    ("GET", "models/manifests?revision=nothing", None),
    ("GET", "models/manifests?revisions=a&sourcePositions=7", None),
    ("GET", "models/server-side-diff?targetManifests=%7B%7D", None),
    ("GET", "models/resource", None),
    ("GET", "models/resource?kind=Pod&resourceName=nobody", None),
    ("POST", "models/resource?kind=ConfigMap&resourceName=settings&namespace=ml", None),
    ("POST", "models/resource?kind=ConfigMap&resourceName=settings&namespace=ml&patchType=strange", "{}"),
    ("POST", "models/resource?kind=ConfigMap&resourceName=settings&namespace=ml", "not json ["),
    ("POST", "models/resource/actions?kind=ConfigMap&resourceName=settings&namespace=ml", {"action": "x"}),
    ("POST", "models/resource/actions?kind=ConfigMap&resourceName=settings&namespace=ml", "explode"),
    ("POST", "models/resource/actions/v2", {"action": "restart"}),
    ("GET", "models/logs?podName=nobody", None),
    ("GET", "models/logs?tailLines=-3", None),
    ("GET", "models/logs?sinceTime=yesterday", None),
    ("GET", "models/logs?untilTime=2026-01-01T00:00:00Z", None),
    ("GET", "models/pods/one/logs?namespace=ml&container=nobody", None),
    ("GET", "models/events?resourceName=nobody", None),
    ("GET", "models/revisions/main/metadata", None),
    ("GET", f"models/revisions/{'0' * 40}/metadata", None),
    ("GET", "models/revisions/main/metadata?sourceIndex=4", None),
    ("GET", "models/revisions/main/chartdetails", None),
    ("GET", "models/revisions/main/ocimetadata", None),
    ("POST", f"{AT}/manifestsWithFiles", {}),
)


@pytest.mark.parametrize(("method", "path", "document"), WRONG, ids=[f"{case[0]} {case[1][:60]}" for case in WRONG])
async def test_invalid_request_gets_400_with_a_message(api: ApiScene, method: str, path: str, document: Any) -> None:
    response = await api.ask(method, path, document)
    assert response.code == 400, response
    error = response.json()
    assert set(error) == {"error", "code", "message"} and error["code"] in (2, 3, 9)
    assert len(error["message"]) > 10 and "Traceback" not in error["message"] and not error["message"].startswith("-")


ROUTES = [
    ("GET", ""), ("PUT", ""), ("PATCH", ""), ("DELETE", ""), ("PUT", "/spec"), ("POST", "/sync"), ("POST", "/rollback"),
    ("DELETE", "/operation"), ("GET", "/manifests"), ("GET", "/managed-resources"), ("GET", "/resource-tree"),
    ("GET", "/resource?kind=Pod&resourceName=one"), ("POST", "/resource?kind=Pod&resourceName=one"),
    ("DELETE", "/resource?kind=Pod&resourceName=one"), ("GET", "/resource/actions?kind=Pod&resourceName=one"),
    ("POST", "/resource/actions/v2"), ("GET", "/resource/links"), ("GET", "/links"), ("GET", "/logs"),
    ("GET", "/pods/one/logs"), ("GET", "/events"), ("GET", f"/revisions/{'a' * 40}/metadata"), ("GET", "/syncwindows"),
    ("GET", f"/revisions/{'a' * 40}/chartdetails"), ("GET", "/server-side-diff"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_missing_and_forbidden_applications_get_the_same_response(api: ApiScene, method: str, path: str) -> None:
    body = None if method in ("GET", "DELETE") else {"action": "x", "kind": "Pod", "resourceName": "one"}
    for who, name in (("bob", "models"), ("bob", "nothing"), ("ann", "nothing"), ("tim", "models"), ("tim", "nothing")):
        assert (await api.ask(method, f"{name}{path}", body, who)).body == DENIED, (who, name)


# -- helpers -------------------------------------------------------------------------------------------------------


def a_map(name: str, namespace: str = "", **data: str) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def source(api: ApiScene, path: str) -> dict[str, str]:
    return {"repoURL": api.room.repository.url, "path": path, "targetRevision": "main"}
