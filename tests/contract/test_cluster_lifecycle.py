"""What every Cluster implementation must do, continued: garbage collection, namespaces, CRDs, created subresources,
logs.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from argosy.errors import ClusterError, Invalid
from argosy.kube.client import Cluster, Propagation
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from support.contract_manifests import config, definition, eventually, owned_by, pod
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio


async def is_deleted(cluster: Cluster, key: ResourceKey) -> bool:
    return await cluster.get(key) is None


async def family(cluster: Cluster, namespace: str, **flags: bool) -> tuple[Manifest, Manifest]:
    parent = await cluster.create(config(namespace, "parent"))
    child = await cluster.create(config(namespace, "child", ownerReferences=owned_by(parent, **flags)))
    return parent, child


async def test_background_deletion_removes_the_owner_first_and_dependents_later(
    cluster: Cluster, namespace: str
) -> None:
    parent, child = await family(cluster, namespace)
    await cluster.delete(key_of(parent), propagation=Propagation.BACKGROUND)
    assert await cluster.get(key_of(parent)) is None
    await eventually(lambda: is_deleted(cluster, key_of(child)))


async def test_foreground_deletion_keeps_the_owner_until_its_dependents_are_gone(
    cluster: Cluster, namespace: str
) -> None:
    parent = await cluster.create(config(namespace, "parent"))
    references = owned_by(parent, blockOwnerDeletion=True)
    child = await cluster.create(config(namespace, "child", ownerReferences=references, finalizers=["argosy.dev/hold"]))
    await cluster.delete(key_of(parent), propagation=Propagation.FOREGROUND)
    waiting = await cluster.get(key_of(parent))
    assert waiting is not None and "foregroundDeletion" in waiting["metadata"]["finalizers"]

    async def marked() -> bool:
        live_child = await cluster.get(key_of(child))
        return live_child is not None and "deletionTimestamp" in live_child["metadata"]

    await eventually(marked)
    assert await cluster.get(key_of(parent)) is not None
    await cluster.patch(key_of(child), {"metadata": {"finalizers": None}})
    await eventually(lambda: is_deleted(cluster, key_of(parent)))


async def test_orphan_deletion_removes_owner_references_of_dependents(cluster: Cluster, namespace: str) -> None:
    parent, child = await family(cluster, namespace)
    await cluster.delete(key_of(parent), propagation=Propagation.ORPHAN)
    await eventually(lambda: is_deleted(cluster, key_of(parent)))
    left = await cluster.get(key_of(child))
    assert left is not None and "ownerReferences" not in left["metadata"]


async def test_object_with_a_nonexistent_owner_is_garbage_collected(cluster: Cluster, namespace: str) -> None:
    nobody = {**config(namespace, "never"), "metadata": {"name": "never", "uid": str(uuid.uuid4())}}
    child = await cluster.create(config(namespace, "child", ownerReferences=owned_by(nobody)))
    await eventually(lambda: is_deleted(cluster, key_of(child)))


async def test_namespace_deletion_deletes_its_objects(cluster: Cluster) -> None:
    created_namespace = await cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "contract-"}}
    )
    name = created_namespace["metadata"]["name"]
    assert (
        created_namespace["status"]["phase"] == "Active"
        and created_namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] == name
    )
    held = await cluster.create(config(name, "held", finalizers=["argosy.dev/hold"]))
    await cluster.create(config(name, "free"))
    await cluster.delete(key_of(created_namespace))
    with pytest.raises(ClusterError) as caught:
        await cluster.create(config(name, "late"))
    assert caught.value.code == 403 and "is being terminated" in caught.value.message
    await eventually(lambda: is_deleted(cluster, ResourceKey("", "ConfigMap", name, "free")))
    closing = await cluster.get(key_of(created_namespace))
    assert closing is not None and closing["status"]["phase"] == "Terminating"
    await cluster.patch(key_of(held), {"metadata": {"finalizers": None}})
    await eventually(lambda: is_deleted(cluster, key_of(created_namespace)))


@pytest.fixture
async def widgets(cluster: Cluster) -> Any:
    """The kind of a CRD of this test, established, and deleted after the test."""
    group = f"g{uuid.uuid4().hex[:8]}.example"
    created_definition = await cluster.create(definition(group))

    async def established() -> bool:
        live_definition = await cluster.get(key_of(created_definition))
        conditions = ((live_definition or {}).get("status") or {}).get("conditions") or ()
        served = GroupKind(group, "Widget") in await cluster.kinds()
        return served and any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    await eventually(established)
    yield GroupKind(group, "Widget")
    await cluster.delete(key_of(created_definition))


def widget(kind: GroupKind, namespace: str, **spec: Any) -> Manifest:
    return {
        "apiVersion": f"{kind.group}/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": namespace},
        "spec": spec,
    }


async def test_custom_resource_is_served_like_a_built_in_kind(
    cluster: Cluster, namespace: str, widgets: GroupKind
) -> None:
    created_widget = await cluster.create(widget(widgets, namespace, size=3))
    assert created_widget["spec"] == {"size": 3, "colour": "blue"}
    assert (await cluster.list(widgets, namespace=namespace)).items == [created_widget]
    applied = await cluster.apply(widget(widgets, namespace, size=4), manager="m", force=True)
    assert applied["spec"]["size"] == 4 and applied["metadata"]["generation"] == 2
    done = await cluster.patch(key_of(created_widget), {"status": {"phase": "Done"}}, subresource="status")
    assert done["status"] == {"phase": "Done"} and done["metadata"]["generation"] == 2
    async for event in cluster.watch(widgets, since=created_widget["metadata"]["resourceVersion"], namespace=namespace):
        assert event.manifest["spec"]["size"] == 4
        break


async def test_schema_of_a_crd_is_enforced(cluster: Cluster, namespace: str, widgets: GroupKind) -> None:
    with pytest.raises(Invalid) as caught:
        await cluster.create(widget(widgets, namespace, size=0))
    assert [cause["field"] for cause in (caught.value.details or {})["causes"]] == ["spec.size"]
    created_widget = await cluster.create(widget(widgets, namespace, size=1, unknown="field"))
    assert "unknown" not in created_widget["spec"]


async def test_crd_deletion_deletes_its_objects_and_notifies_watches(cluster: Cluster, namespace: str) -> None:
    group = f"g{uuid.uuid4().hex[:8]}.example"
    kind = GroupKind(group, "Widget")
    created_definition = await cluster.create(definition(group))

    async def created() -> Manifest | None:
        try:
            return await cluster.create(widget(kind, namespace, size=1))
        except ClusterError as error:
            assert error.code == 404  # not served yet
            return None

    live = await eventually(created)
    event_types = []

    async def watch() -> None:
        async for event in cluster.watch(kind, since=live["metadata"]["resourceVersion"], namespace=namespace):
            event_types.append(event.type)
            if event.type == "DELETED":
                break

    watching = asyncio.create_task(watch())
    await cluster.patch(key_of(live), {"spec": {"size": 2}})

    async def open_now() -> bool:
        return "MODIFIED" in event_types

    await eventually(open_now)
    await cluster.delete(key_of(created_definition))
    await asyncio.wait_for(watching, HANG_SECONDS)
    assert event_types[-1] == "DELETED"

    async def unserved() -> bool:
        return kind not in await cluster.kinds()

    await eventually(unserved)
    with pytest.raises(ClusterError) as caught:
        await cluster.get(key_of(live))
    assert caught.value.code == 404


async def test_eviction_deletes_a_pod(cluster: Cluster, namespace: str) -> None:
    created_pod = await cluster.create(pod(namespace))
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": namespace},
        "deleteOptions": {"gracePeriodSeconds": 0},
    }
    await cluster.create(eviction, subresource_of=key_of(created_pod))
    await eventually(lambda: is_deleted(cluster, key_of(created_pod)))


async def test_token_request_returns_a_valid_service_account_token(cluster: Cluster, namespace: str) -> None:
    account = await cluster.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": namespace}}
    )
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    answer = await cluster.create(request, subresource_of=key_of(account))
    assert answer["status"]["token"] and answer["status"]["expirationTimestamp"]
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": answer["status"]["token"]},
    }
    reviewed = await cluster.create(review)
    assert reviewed["status"]["authenticated"] is True
    assert reviewed["status"]["user"]["username"] == f"system:serviceaccount:{namespace}:robot"


async def test_access_reviews_answer_for_the_caller_and_for_other_users(cluster: Cluster, namespace: str) -> None:
    attributes = {"namespace": namespace, "verb": "create", "resource": "configmaps"}
    self_review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    assert (await cluster.create(self_review))["status"]["allowed"] is True
    other = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"resourceAttributes": attributes, "user": "jane"},
    }
    assert (await cluster.create(other))["status"]["allowed"] is False


async def test_create_of_a_subresource_that_the_object_lacks_is_404(cluster: Cluster, namespace: str) -> None:
    config_map = await cluster.create(config(namespace))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": namespace}}
    with pytest.raises(ClusterError) as caught:
        await cluster.create(eviction, subresource_of=key_of(config_map))
    assert caught.value.code == 404


async def test_logs_of_a_pod_on_a_missing_node_fail_without_waiting(cluster: Cluster, namespace: str) -> None:
    manifest = pod(namespace)
    manifest["spec"]["nodeName"] = "a-node-that-is-not-there"
    created_pod = await cluster.create(manifest)
    async with asyncio.timeout(HANG_SECONDS):
        with pytest.raises(ClusterError) as caught:
            async for _ in cluster.logs(key_of(created_pod), follow=True):
                pass
    assert 400 <= caught.value.code < 600 and caught.value.message


async def test_logs_of_an_unknown_container_are_400(cluster: Cluster, namespace: str) -> None:
    created_pod = await cluster.create(pod(namespace))
    with pytest.raises(ClusterError) as caught:
        async for _ in cluster.logs(key_of(created_pod), container="other"):
            pass
    assert (caught.value.code, caught.value.message) == (400, "container other is not valid for pod p")


async def test_logs_of_a_missing_pod_are_404(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(ClusterError) as caught:
        async for _ in cluster.logs(ResourceKey("", "Pod", namespace, "nope")):
            pass
    assert caught.value.code == 404
