"""Concurrent writes, and attempts to take over kinds, users or subresources."""

from __future__ import annotations

import asyncio

import pytest

from argosy.errors import ClusterError, Forbidden
from argosy.kube.client import User
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.authentication import USER_SECRET_TYPE, USERS_NAMESPACE
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.api_client import CONFIGS, DEFINITIONS, Api, config, definition, deployment, eventually, named, pod

pytestmark = pytest.mark.anyio
PODS = "/api/v1/namespaces/default/pods"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def test_deletes_of_a_pod_never_delete_its_recreated_namesake(api: Api) -> None:
    for _ in range(20):
        first = await api.made(PODS, pod("p"))
        await asyncio.gather(api.delete(f"{PODS}/p"), api.delete(f"{PODS}/p"), api.delete(f"{PODS}/p"))
        second = await api.made(PODS, pod("p"))
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        deletes = [api.delete(f"{PODS}/p", {"preconditions": {"uid": first["metadata"]["uid"]}}) for _ in range(2)]
        assert {answer.code for answer in await asyncio.gather(*deletes)} == {409}
        assert (await api.get(f"{PODS}/p")).json["metadata"]["uid"] == second["metadata"]["uid"]
        await api.delete(f"{PODS}/p")


async def test_pod_created_while_its_namesake_is_deleted_survives(api: Api) -> None:
    for _ in range(20):
        old = await api.made(PODS, pod("p"))
        body = {"preconditions": {"uid": old["metadata"]["uid"]}}
        answers = await asyncio.gather(
            api.delete(f"{PODS}/p", body), api.post(PODS, pod("p")), api.delete(f"{PODS}/p", body)
        )
        assert all(answer.code in (200, 201, 404, 409) for answer in answers)
        if answers[1].code == 201:
            assert (await api.get(f"{PODS}/p")).code == 200
        await api.delete(f"{PODS}/p")


async def test_crd_cannot_replace_a_built_in_kind(api: Api) -> None:
    before = len((await api.get(f"{RBAC}/clusterrolebindings")).json["items"])
    crd = definition()
    note = {"api-approved.kubernetes.io": "unapproved, a test"}
    names = {"plural": "clusterrolebindings", "singular": "crb", "kind": "Foo", "listKind": "FooList"}
    spec = {**crd["spec"], "group": "rbac.authorization.k8s.io", "names": names, "scope": "Cluster"}
    name = "clusterrolebindings.rbac.authorization.k8s.io"
    await api.made(DEFINITIONS, {**crd, "metadata": {"name": name, "annotations": note}, "spec": spec})

    async def refused() -> bool:
        status = (await api.get(f"{DEFINITIONS}/{name}")).json["status"]
        return any(condition["reason"] == "PluralConflict" for condition in status.get("conditions") or [])

    await eventually(refused)
    await api.delete(f"{DEFINITIONS}/{name}")

    async def gone() -> bool:
        return (await api.get(f"{DEFINITIONS}/{name}")).code == 404

    await eventually(gone)
    left = (await api.get(f"{RBAC}/clusterrolebindings")).json
    assert left["kind"] == "ClusterRoleBindingList" and len(left["items"]) == before


async def test_edit_role_cannot_create_user_secrets(guarded: ControlPlane) -> None:
    admin = EmbeddedCluster(guarded)
    edit = named("rbac.authorization.k8s.io/v1", "RoleBinding", "edit")
    edit["metadata"]["namespace"] = USERS_NAMESPACE
    edit |= {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}],
    }
    await admin.create(edit)
    eve = admin.acting_as(User("eve", ("system:authenticated",)))
    secret = named("v1", "Secret", "s") | {"type": USER_SECRET_TYPE}
    secret["metadata"] |= {"namespace": USERS_NAMESPACE, "annotations": {"sandbox.argosy.dev/groups": "system:masters"}}
    with pytest.raises(Forbidden, match="only members of system:masters"):
        await eve.create(secret)
    await eve.create({**secret, "type": "Opaque"})


async def test_scale_patch_changes_only_the_replicas(api: Api) -> None:
    await api.made("/apis/apps/v1/namespaces/default/deployments", deployment("d"))
    cluster = EmbeddedCluster(api.plane)
    key = ResourceKey("apps", "Deployment", "default", "d")
    sneaky = {"spec": {"replicas": 3, "template": {"spec": {"hostNetwork": True}}}}
    scaled = await cluster.patch(key, sneaky, subresource="scale")
    assert scaled["kind"] == "Scale" and scaled["spec"] == {"replicas": 3}
    live = await cluster.get(key)
    assert live is not None and live["spec"]["replicas"] == 3
    assert "hostNetwork" not in live["spec"]["template"]["spec"]
    with pytest.raises(ClusterError):
        await cluster.patch(key, sneaky, subresource="log")


@pytest.mark.parametrize("change", ["dropped", "replaced"])
async def test_owner_is_deleted_once_its_blocking_dependent_drops_it(api: Api, change: str) -> None:
    owner = await api.made(CONFIGS, config("owner"))
    other = await api.made(CONFIGS, config("other"))

    def reference(manifest: dict) -> dict:
        metadata = manifest["metadata"]
        kind = {"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]}
        return {**kind, "blockOwnerDeletion": True}

    held = config("dependent", ownerReferences=[reference(owner)], finalizers=["a.b/c"])
    await api.made(CONFIGS, held)
    await api.delete(f"{CONFIGS}/owner", {"propagationPolicy": "Foreground"})
    references = [reference(other)] if change == "replaced" else None
    await api.patch(f"{CONFIGS}/dependent", {"metadata": {"ownerReferences": references}})

    async def gone() -> bool:
        return (await api.get(f"{CONFIGS}/owner")).code == 404

    await eventually(gone)


@pytest.mark.parametrize("manifest", [{}, {"kind": "ConfigMap"}, {"apiVersion": "v1", "kind": "ConfigMap"}])
async def test_manifest_without_kind_or_name_raises_cluster_error(api: Api, manifest: dict) -> None:
    cluster = EmbeddedCluster(api.plane)
    for attempt in (cluster.create(manifest), cluster.replace(manifest), cluster.apply(manifest, manager="m")):
        with pytest.raises(ClusterError):
            await attempt


async def test_path_below_a_subresource_returns_404(api: Api) -> None:
    await api.made(PODS, pod("p"))
    assert (await api.get(f"{PODS}/p/status")).code == 200
    assert (await api.get(f"{PODS}/p/status/x/y")).code == 404
