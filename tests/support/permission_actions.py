"""The actions of the controller and the server, one function each; an action fails if a permission is missing.

In: a Scene. Out: nothing, or a failure. Never: performs the action of a component as an administrator.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx

from argosy.kube.controller.sharding.member_lease_format import build_lease_key
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from support.engine import Repository
from support.permissions import HOME, Scene, application

Deed = Callable[[Scene], Awaitable[None]]
AUTOMATED = {"automated": {"prune": True}, "syncOptions": ["CreateNamespace=true"]}
BEYOND = [{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}]  # a permission that no controller has
RBAC = "rbac.authorization.k8s.io"


def configmap(name: str, **annotations: str) -> Manifest:
    full_annotations = {f"argocd.argoproj.io/{key.replace('_', '-')}": text for key, text in annotations.items()}
    metadata = {"name": name, **({"annotations": full_annotations} if full_annotations else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}


async def _synced(scene: Scene, name: str) -> bool:
    """True if the Application is synced to the newest commit; queries Git only if everything else matches."""
    status = (await scene.get("argoproj.io/Application", name) or {}).get("status") or {}
    state = status.get("operationState") or {}
    sync = status.get("sync") or {}
    is_done = sync.get("status") == "Synced" and state.get("phase") == "Succeeded"
    return is_done and sync.get("revision") == scene.repository.head


async def _deliver(scene: Scene, files: dict[str, Manifest | None]) -> str:
    """Push these files and create an automated Application for them; return the name of the Application."""
    name = f"app-{next(scene.numbers)}"
    scene.repository.push({f"{name}/{file}.yaml": text for file, text in files.items()})
    await scene.application(name, syncPolicy=AUTOMATED)
    return name


# -- the controller --------------------------------------------------------------------------------------------------


async def shares_the_work(scene: Scene) -> None:
    """Wait until the Lease of the controller exists and is renewed."""
    async with scene.controller() as identity:
        versions: set[str] = set()

        async def is_renewed() -> bool:
            lease = await scene.admin.get(build_lease_key(HOME, identity))
            versions.update([lease["metadata"]["resourceVersion"]] if lease else [])
            return len(versions) > 1

        await scene.until(is_renewed)


async def finds_what_was_there(scene: Scene) -> None:
    name = await _deliver(scene, {"settings": configmap("settings")})
    async with scene.controller():
        await scene.until(lambda: _synced(scene, name))


async def notices_what_comes(scene: Scene) -> None:
    async with scene.controller():
        await is_at_work(scene)
        name = await _deliver(scene, {"settings": configmap("settings")})
        await scene.until(lambda: _synced(scene, name))


async def is_at_work(scene: Scene) -> None:
    """Create an Application and wait until the controller has written its status."""
    name = f"old-{next(scene.numbers)}"
    await scene.application(name)

    async def is_told() -> bool:
        return bool((await scene.get("argoproj.io/Application", name) or {}).get("status"))

    await scene.until(is_told)


async def delivers_with_hooks_into_a_namespace_that_it_makes(scene: Scene) -> None:
    hook = configmap("before", hook="PreSync", hook_delete_policy="HookSucceeded")
    replaced = configmap("replaced", sync_options="Replace=true")
    async with scene.controller():
        name = await _deliver(scene, {"settings": configmap("settings"), "hook": hook, "replaced": replaced})
        await scene.until(lambda: _synced(scene, name))
        assert await scene.get("Namespace", f"of-{name}", "")
        assert await scene.get("ConfigMap", "replaced", f"of-{name}")

        async def is_told() -> bool:
            events = [event async for event in _events(scene, HOME, name)]
            return bool(events) and await scene.get("ConfigMap", "before", f"of-{name}") is None

        await scene.until(is_told)
        changed = {**replaced, "data": {"a": "2"}}
        scene.repository.push({f"{name}/replaced.yaml": changed})
        await scene.until(lambda: _synced(scene, name))


async def prunes(scene: Scene) -> None:
    async with scene.controller():
        name = await _deliver(scene, {"settings": configmap("settings"), "other": configmap("other")})
        await scene.until(lambda: _synced(scene, name))
        scene.repository.push({f"{name}/other.yaml": None})

        async def is_gone() -> bool:
            return await scene.get("ConfigMap", "other", f"of-{name}") is None

        await scene.until(is_gone)


def _hands_out(kind: str, *, binds: bool) -> Deed:
    async def hands_out_roles(scene: Scene) -> None:
        number = next(scene.numbers)
        role = {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": {"name": f"r-{number}"}, "rules": BEYOND}
        reference = {"apiGroup": RBAC, "kind": kind, "name": f"r-{number}"}
        subject = {"kind": "ServiceAccount", "name": "somebody", "namespace": "default"}
        binding = {"apiVersion": f"{RBAC}/v1", "kind": f"{kind}Binding", "metadata": {"name": f"r-{number}"},
                   "roleRef": reference, "subjects": [subject]}  # fmt: skip
        async with scene.controller():
            name = await _deliver(scene, {"role": role, **({"binding": binding} if binds else {})})
            await scene.until(lambda: _synced(scene, name))

    hands_out_roles.__name__ = f"{'binds' if binds else 'hands_out'}_{kind.lower()}s"
    return hands_out_roles


hands_out_roles, hands_out_cluster_roles = _hands_out("Role", binds=False), _hands_out("ClusterRole", binds=False)
binds_roles, binds_cluster_roles = _hands_out("Role", binds=True), _hands_out("ClusterRole", binds=True)


# -- the server ------------------------------------------------------------------------------------------------------


def _answered(got: httpx.Response) -> Any:
    assert got.status_code == 200, got.text[:500]
    return got.json() if got.text else {}


async def _asked(scene: Scene, method: str, path: str, document: Any = None) -> Any:
    async with scene.server() as client:
        return _answered(await client.request(method, path, json=document))


async def starts(scene: Scene) -> None:
    async with scene.server() as client:
        _answered(await client.get("/api/v1/session/userinfo"))


async def _lists(client: httpx.AsyncClient, name: str) -> bool:
    items = _answered(await client.get("/api/v1/applications")).get("items") or []
    return any(item["metadata"]["name"] == name for item in items)


async def lists_applications(scene: Scene) -> None:
    name = f"listed-{next(scene.numbers)}"
    await scene.application(name)
    async with scene.server() as client:
        await scene.until(lambda: _lists(client, name))


async def notices_and_streams(scene: Scene) -> None:
    name = f"late-{next(scene.numbers)}"
    async with scene.server() as client:
        async with client.stream("GET", "/api/v1/stream/applications") as stream:
            assert stream.status_code == 200
        await scene.application(name)
        await scene.until(lambda: _lists(client, name))


async def syncs(scene: Scene) -> None:
    name = f"synced-{next(scene.numbers)}"
    await scene.application(name)
    async with scene.server() as client:
        await scene.until(lambda: _lists(client, name))
        _answered(await client.post(f"/api/v1/applications/{name}/sync", json={"name": name}))

        async def is_asked_for() -> bool:
            """True if the operation is requested, or its status shows that a controller has started it."""
            app = await scene.get("argoproj.io/Application", name) or {}
            started_operation = ((app.get("status") or {}).get("operationState") or {}).get("operation")
            return bool((app.get("operation") or started_operation or {}).get("initiatedBy"))

        await scene.until(is_asked_for)


async def _events(scene: Scene, namespace: str, about: str) -> Any:
    for event in (await scene.admin.list(GroupKind("", "Event"), namespace=namespace)).items:
        if (event.get("involvedObject") or {}).get("name") == about:
            yield event


async def deletes_applications(scene: Scene) -> None:
    name = f"deleted-{next(scene.numbers)}"
    await scene.application(name)
    async with scene.server() as client:
        await scene.until(lambda: _lists(client, name))
        _answered(await client.delete(f"/api/v1/applications/{name}?cascade=false"))
        assert await scene.get("argoproj.io/Application", name) is None


async def tells_of_what_it_did(scene: Scene) -> None:
    name = f"told-{next(scene.numbers)}"
    await scene.application(name)
    async with scene.server() as client:
        await scene.until(lambda: _lists(client, name))
        _answered(await client.delete(f"/api/v1/applications/{name}?cascade=false"))

        async def is_told() -> bool:
            return bool([event async for event in _events(scene, HOME, name)])

        await scene.until(is_told)


async def runs_a_cron_job_now(scene: Scene) -> None:
    name = f"cron-{next(scene.numbers)}"
    namespace = f"of-{name}"
    await scene.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    mark = {"argocd.argoproj.io/tracking-id": f"{name}:batch/CronJob:{namespace}/nightly"}
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}}}
    await scene.put({"apiVersion": "batch/v1", "kind": "CronJob",
                     "metadata": {"name": "nightly", "namespace": namespace, "annotations": mark},
                     "spec": {"schedule": "0 3 * * *", "jobTemplate": template}})  # fmt: skip
    await scene.application(name)
    row = {"group": "batch", "version": "v1", "kind": "CronJob", "namespace": namespace, "name": "nightly"}
    app = ResourceKey("argoproj.io", "Application", HOME, name)
    await scene.admin.patch(app, {"status": {"resources": [row]}})  # as a controller would write it
    parameters = f"kind=CronJob&group=batch&version=v1&resourceName=nightly&namespace={namespace}"
    async with scene.server() as client:
        await scene.until(lambda: _lists(client, name))
        _answered(await client.post(f"/api/v1/applications/{name}/resource/actions?{parameters}", json="create-job"))


async def declares_applications(scene: Scene) -> None:
    manifest = application(f"made-{next(scene.numbers)}", "https://example.com/a.git")
    await _asked(scene, "POST", "/api/v1/applications?validate=false", manifest)
    assert await scene.get("argoproj.io/Application", manifest["metadata"]["name"])


def _set(name: str, number: str = "1") -> Manifest:
    template = application("{{name}}", "https://example.com/a.git")
    spec = {"generators": [{"list": {"elements": [{"name": number}]}}],
            "template": {"metadata": {"name": "{{name}}"}, "spec": template["spec"]}}  # fmt: skip
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet",
            "metadata": {"name": name, "namespace": HOME}, "spec": spec}  # fmt: skip


async def declares_sets(scene: Scene) -> None:
    await _asked(scene, "POST", "/api/v1/applicationsets", _set(f"set-{next(scene.numbers)}"))


async def changes_sets(scene: Scene) -> None:
    name = f"set-{next(scene.numbers)}"
    await scene.put(_set(name))
    await _asked(scene, "POST", "/api/v1/applicationsets?upsert=true", _set(name, "2"))


def _project(name: str, **spec: Any) -> Manifest:
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject",
            "metadata": {"name": name, "namespace": HOME}, "spec": {"sourceRepos": ["*"], **spec}}  # fmt: skip


async def declares_projects(scene: Scene) -> None:
    await _asked(scene, "POST", "/api/v1/projects", {"project": _project(f"team-{next(scene.numbers)}")})


async def changes_projects(scene: Scene) -> None:
    name = f"team-{next(scene.numbers)}"
    await scene.put(_project(name))
    live = await scene.get("argoproj.io/AppProject", name)
    assert live
    live["spec"]["description"] = "another"
    async with scene.server() as client:

        async def is_seen() -> bool:
            return (await client.get(f"/api/v1/projects/{name}")).status_code == 200

        await scene.until(is_seen)
        _answered(await client.put(f"/api/v1/projects/{name}", json={"project": live}))


async def declares_repositories(scene: Scene) -> None:
    name = f"repo-{next(scene.numbers)}"
    repository = Repository(scene.folder / name)  # the server checks that the repository is readable
    repository.push({})
    await _asked(scene, "POST", "/api/v1/repositories", {"repo": repository.url})


async def changes_repositories(scene: Scene) -> None:
    url = f"https://example.com/{next(scene.numbers)}.git"
    declaration = {"repo": url, "username": "ann", "password": "a"}
    await scene.put({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "stringData": {"url": declaration["repo"], "username": "bob"},
        "metadata": {"name": f"repo-{next(scene.numbers)}", "namespace": HOME,
                     "labels": {"argocd.argoproj.io/secret-type": "repository"}},
    })  # fmt: skip
    path = "/api/v1/repositories/" + declaration["repo"].replace("/", "%2F").replace(":", "%3A")
    async with scene.server() as client:
        _answered(await client.put(path, json=declaration))


async def _believe(scene: Scene, *, anew: bool) -> None:
    name = "argocd-tls-certs-cm"
    if anew and await scene.get("ConfigMap", name):
        await scene.admin.delete(ResourceKey("", "ConfigMap", HOME, name))
    if not anew:
        kind = {"apiVersion": "v1", "kind": "ConfigMap"}
        await scene.put({**kind, "metadata": {"name": name, "namespace": HOME}, "data": {}})
    pem = scene.authority.read_text()
    entry = {"serverName": f"host-{next(scene.numbers)}.example.com", "certType": "https", "certData": _encoded(pem)}
    await _asked(scene, "POST", "/api/v1/certificates", {"items": [entry]})


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def believes_the_first_host(scene: Scene) -> None:
    await _believe(scene, anew=True)


async def believes_one_more_host(scene: Scene) -> None:
    await _believe(scene, anew=False)


# -- sign-in ---------------------------------------------------------------------------------------------------------


async def _emptied(scene: Scene, *names: str) -> None:
    scene.session = ""  # the token was signed with the key that is deleted here
    for name in names:
        live = await scene.get("Secret", name)
        assert live is not None
        await scene.admin.replace({**{key: value for key, value in live.items() if key != "data"}, "type": "Opaque"})


async def signs_with_a_key_of_its_own(scene: Scene) -> None:
    await _emptied(scene, "argocd-secret")
    async with scene.server():
        secret = await scene.get("Secret", "argocd-secret") or {}
        assert "server.secretkey" in (secret.get("data") or {})


async def makes_the_first_password(scene: Scene) -> None:
    await _emptied(scene, "argocd-secret", "argocd-initial-admin-secret")
    async with scene.server():
        assert (await scene.get("Secret", "argocd-initial-admin-secret") or {}).get("data")


async def password_of(scene: Scene) -> str:
    secret = await scene.get("Secret", "argocd-initial-admin-secret")
    assert secret
    return base64.b64decode(secret["data"]["password"]).decode()


async def signs_in(scene: Scene) -> None:
    async with scene.server() as client:
        document = {"username": "admin", "password": await password_of(scene)}
        got = await client.post("/api/v1/session", json=document, headers={"Authorization": ""})
        token = _answered(got)["token"]
        user_info = await client.get("/api/v1/session/userinfo", headers={"Authorization": f"Bearer {token}"})
        assert json.loads(user_info.text)["username"] == "admin"
        scene.session = token


async def signs_out(scene: Scene) -> None:
    """Sign in, then sign out of that session."""
    await signs_in(scene)
    scene.refused.clear()
    async with scene.server() as client:
        _answered(await client.delete("/api/v1/session"))
    scene.session = ""
