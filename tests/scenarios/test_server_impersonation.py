"""Changes through pages and API in a cluster with RBAC impersonate the Application's service account."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from support.rest_api import World, rest_world

pytestmark = pytest.mark.anyio
OWN, API = "/api/argosy/v1", "/api/v1/applications"
ENABLED, ENFORCED = (f"application.sync.impersonation.{word}" for word in ("enabled", "enforced"))
SERVICE, JOB = ("serving.kserve.io", "InferenceService"), ("mlops.mlops.dev", "NotebookValidationJob")
MAP, DEPLOYMENT = ("", "ConfigMap"), ("apps", "Deployment")
VERSIONS = {SERVICE: "serving.kserve.io/v1beta1", JOB: "mlops.mlops.dev/v1alpha1", MAP: "v1", DEPLOYMENT: "apps/v1"}
OWNED = [(SERVICE, "iris"), (SERVICE, "grouped"), (JOB, "train"), (MAP, "settings"), (DEPLOYMENT, "web")]
FREE = [(SERVICE, "stray"), (JOB, "wild")]  # without an Application
ACCOUNT = {"server": "https://kubernetes.default.svc", "namespace": "ml", "defaultServiceAccount": "deployer"}
USER = "system:serviceaccount:ml:deployer"
POD_LABELS = {"serving.kserve.io/inferenceservice": "grouped", "component": "predictor"}
SELECTED = "resourceName=settings&namespace=ml&kind=ConfigMap&version=v1"
WEB = "resourceName=web&namespace=ml&group=apps&kind=Deployment&version=v1"
ACTION = {"action": "pause", "group": "apps", "kind": "Deployment", "namespace": "ml", "resourceName": "web"}
CHANGES: list[tuple[str, str, Any]] = [
    ("POST", f"{OWN}/models/ml/iris/restart", {}),
    ("POST", f"{OWN}/models/ml/grouped/restart", {}),
    ("POST", f"{OWN}/notebooks/ml/train/runs", {}),
    ("POST", "/models/ml/iris/restart", None),
    ("POST", "/models/ml/grouped/restart", None),
    ("POST", "/notebooks/ml/train/run", None),
    ("POST", f"{API}/models/resource/actions?{WEB}", "restart"),
    ("POST", f"{API}/models/resource/actions/v2", ACTION),
    ("POST", f"{API}/models/resource?{SELECTED}", '{"data": {"a": "2"}}'),
    ("DELETE", f"{API}/models/resource?{SELECTED}", None),
]
FREE_CHANGES: list[tuple[str, str, Any]] = [
    ("POST", f"{OWN}/models/ml/stray/restart", {}),
    ("POST", f"{OWN}/notebooks/ml/wild/runs", {}),
    ("POST", "/models/ml/stray/restart", None),
    ("POST", "/notebooks/ml/wild/run", None),
]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with rest_world(tmp_path_factory.mktemp("as"), rbac=True) as world:
        await world.make("ServiceAccount", "deployer", "ml")
        await world.make("AppProject", "team", api="argoproj.io/v1alpha1", spec={"sourceRepos": ["*"],
                         "destinations": [{"server": "*", "namespace": "*"}]})  # fmt: skip
        await world.application("models", "team")
        rows = [{"group": kind[0], "kind": kind[1], "namespace": "ml", "name": name} for kind, name in OWNED]
        key = ResourceKey("argoproj.io", "Application", "argocd", "models")
        await world.cluster.patch(key, {"status": {"resources": rows}})
        for kind, name in (*OWNED, *FREE):
            await put(world, kind, name)
        for name in ("iris", "stray"):
            await world.cluster.create(predictor(name))
        await put_pod(world)
        for kind, name in (*OWNED, *FREE):
            await world.seen(*kind, name, "ml")
        await world.until(lambda: bool((world.lookout.cache.get(key) or {}).get("status")))
        await world.seen("argoproj.io", "AppProject", "team")
        yield world


async def put(world: World, kind: tuple[str, str], name: str) -> None:
    """Create an object, with the tracking annotation if it belongs to the Application."""
    is_owned = (kind, name) in OWNED
    mark = {"argocd.argoproj.io/tracking-id": f"models:{kind[0]}/{kind[1]}:ml/{name}"} if is_owned else {}
    if name == "grouped":  # Serverless: KServe manages revisions, so a restart deletes Pods
        mark["serving.kserve.io/deploymentMode"] = "Serverless"
    notebook = {"path": "train.ipynb", "git": {"url": "https://git.example/x", "ref": "main"}}
    specs: dict[tuple[str, str], dict[str, Any]] = {
        SERVICE: {"spec": {"predictor": {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": "pvc://a/b"}}}},
        JOB: {"spec": {"notebook": notebook, "podConfig": {"containerImage": "python:3.11"}}},
        MAP: {"data": {"a": "1"}},
        DEPLOYMENT: {"spec": predictor(name)["spec"]},
    }
    await world.make(kind[1], name, "ml", VERSIONS[kind], metadata={"annotations": mark}, **specs[kind])


async def put_pod(world: World) -> None:
    spec = {"containers": [{"name": "main", "image": "example.com/model:1"}]}
    await world.make("Pod", "one", "ml", metadata={"labels": POD_LABELS}, spec=spec)
    await world.seen("", "Pod", "one", "ml")


def predictor(name: str) -> Manifest:
    labels = {"app": name}
    container = {"name": "main", "image": "example.com/model:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"{name}-predictor", "namespace": "ml"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }  # fmt: skip


async def configure(world: World, accounts: list[dict[str, str]], **settings: str | None) -> None:
    """Write the impersonation settings, given by the last part of their names, and wait until they are read."""
    data = {ENABLED: settings.get("enabled", "true"), ENFORCED: settings.get("enforced")}
    await world.cluster.patch(ResourceKey("", "ConfigMap", "argocd", "argocd-cm"), {"data": data})
    project = ResourceKey("argoproj.io", "AppProject", "argocd", "team")
    await world.cluster.patch(project, {"spec": {"destinationServiceAccounts": accounts}})
    expected = (data[ENABLED] == "true", data[ENFORCED] != "false", len(accounts))

    def is_read() -> bool:
        rules = world.lookout.rules
        impersonation = rules.impersonation
        return (
            impersonation.is_enabled,
            impersonation.is_enforced,
            len(rules.projects["team"].service_accounts),
        ) == expected

    await world.until(is_read)


async def change(world: World, method: str, path: str, document: Any) -> tuple[int, str]:
    if document is None:  # a form without fields
        got = await world.raw(method, path, authorization="Bearer ann")
    else:
        got = await world.ask("ann", method, path, document)
    return got.code, got.body.decode()


async def test_changes_are_refused_without_a_matching_service_account(world: World) -> None:
    await configure(world, [])
    before = await standing(world)
    for change_args in CHANGES:
        code, body = await change(world, *change_args)
        assert code == 403 and "no matching service account" in body, (change_args, code, body)
    assert await standing(world) == before


async def test_changes_are_refused_if_the_service_account_lacks_rights(world: World) -> None:
    await configure(world, [ACCOUNT])
    before = await standing(world)
    for change_args in CHANGES:
        code, body = await change(world, *change_args)
        assert code == 403 and USER in body, (change_args, code, body)
    assert await standing(world) == before


async def test_changes_succeed_with_the_rights_of_the_service_account(world: World) -> None:
    await configure(world, [ACCOUNT])
    api, meta = "rbac.authorization.k8s.io/v1", {"name": "deployer", "namespace": "ml"}
    resources = ["configmaps", "deployments", "pods", "notebookvalidationjobs"]
    rule = {"apiGroups": ["*"], "resources": resources, "verbs": ["get", "list", "patch", "delete"]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"}
    subject = {"kind": "ServiceAccount", "name": "deployer", "namespace": "ml"}
    await world.cluster.create({"apiVersion": api, "kind": "Role", "metadata": meta, "rules": [rule]})
    binding = {"apiVersion": api, "kind": "RoleBinding", "metadata": meta, "subjects": [subject], "roleRef": role}
    await world.cluster.create(binding)
    for change_args in CHANGES:
        code, body = await change(world, *change_args)
        assert code in (200, 303), (change_args, code, body)
    await world.cluster.delete(ResourceKey("rbac.authorization.k8s.io", "RoleBinding", "ml", "deployer"))
    await world.cluster.delete(ResourceKey("rbac.authorization.k8s.io", "Role", "ml", "deployer"))
    await restore(world)


async def test_objects_without_application_are_changed_without_impersonation(world: World) -> None:
    await configure(world, [])
    for change_args in FREE_CHANGES:
        code, body = await change(world, *change_args)
        assert code in (200, 303), (change_args, code, body)


@pytest.mark.parametrize("settings", [{"enabled": "false"}, {"enforced": "false"}], ids=["disabled", "not enforced"])
async def test_server_uses_its_own_rights_without_impersonation(world: World, settings: dict[str, str]) -> None:
    await configure(world, [], **settings)
    for change_args in CHANGES:
        code, body = await change(world, *change_args)
        assert code in (200, 303), (change_args, code, body)
    await restore(world)


async def standing(world: World) -> list[Any]:
    """Return the resourceVersions of all objects that the changes modify."""
    keys = [ResourceKey(*JOB, "ml", "train"), ResourceKey(*MAP, "ml", "settings"), ResourceKey("", "Pod", "ml", "one")]
    keys += [ResourceKey(*DEPLOYMENT, "ml", name) for name in ("iris-predictor", "web")]
    live_manifests = [await world.cluster.get(key) for key in keys]
    assert all(live_manifests)
    return [manifest["metadata"]["resourceVersion"] for manifest in live_manifests if manifest]


async def restore(world: World) -> None:
    """Recreate the objects after all CHANGES, so that the next test can change them again."""
    deleted = [ResourceKey(*MAP, "ml", "settings"), ResourceKey("", "Pod", "ml", "one")]
    changed = [ResourceKey(*JOB, "ml", "train")]
    changed += [ResourceKey(*DEPLOYMENT, "ml", name) for name in ("web", "iris-predictor")]
    for key in changed:
        await world.cluster.delete(key)
    await world.until(lambda: not any(world.lookout.cache.get(key) for key in (*deleted, *changed)))
    for kind, name in ((MAP, "settings"), (JOB, "train"), (DEPLOYMENT, "web")):
        await put(world, kind, name)
        await world.seen(*kind, name, "ml")
    await world.cluster.create(predictor("iris"))
    await world.seen(*DEPLOYMENT, "iris-predictor", "ml")
    await put_pod(world)
