"""What every Cluster implementation must do: discovery, reads, writes, deletion, and authorization."""

from __future__ import annotations

import pytest

from argosy.errors import ClusterError, Conflict, Forbidden, Invalid
from argosy.kube.client import Cluster, PatchKind, User
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from support.contract_manifests import config, deployment, pod

pytestmark = pytest.mark.anyio


async def test_discovery_returns_version_plural_scope_and_subresources(cluster: Cluster) -> None:
    kinds = await cluster.kinds()
    deployments = kinds[GroupKind("apps", "Deployment")]
    assert (deployments.version, deployments.plural, deployments.namespaced) == ("v1", "deployments", True)
    assert {"status", "scale"} <= set(deployments.subresources)
    assert {"get", "list", "watch", "create", "delete"} <= set(deployments.verbs)
    assert kinds[GroupKind("", "Namespace")].namespaced is False
    assert "cm" in kinds[CONFIG_MAP].short_names
    assert list(kinds[GroupKind("autoscaling", "HorizontalPodAutoscaler")].versions) == ["v2", "v1"]


async def test_created_object_is_read_back_unchanged(cluster: Cluster, namespace: str) -> None:
    config_map = await cluster.create(config(namespace))
    assert (
        config_map["metadata"]["uid"]
        and config_map["metadata"]["resourceVersion"]
        and config_map["metadata"]["creationTimestamp"]
    )
    assert await cluster.get(key_of(config_map)) == config_map
    assert (config_map["apiVersion"], config_map["kind"], config_map["data"]) == ("v1", "ConfigMap", {"x": "1"})


async def test_get_returns_none_for_a_missing_object(cluster: Cluster, namespace: str) -> None:
    assert await cluster.get(ResourceKey("", "ConfigMap", namespace, "nope")) is None
    assert await cluster.get(ResourceKey("", "ConfigMap", "no-such-namespace", "nope")) is None


async def test_unknown_kind_is_404(cluster: Cluster, namespace: str) -> None:
    for call in (
        cluster.get(ResourceKey("nowhere.example", "Nothing", namespace, "a")),
        cluster.list(GroupKind("nowhere.example", "Nothing")),
        cluster.create({"apiVersion": "nowhere.example/v1", "kind": "Nothing", "metadata": {"name": "a"}}),
        cluster.apply(
            {"apiVersion": "v9", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}}, manager="m"
        ),
    ):
        with pytest.raises(ClusterError) as caught:
            await call
        assert caught.value.code == 404


async def test_create_of_an_existing_name_is_a_conflict(cluster: Cluster, namespace: str) -> None:
    await cluster.create(config(namespace))
    with pytest.raises(Conflict) as caught:
        await cluster.create(config(namespace))
    assert caught.value.reason == "AlreadyExists"
    assert caught.value.message == 'configmaps "a" already exists'
    assert caught.value.key == ResourceKey("", "ConfigMap", namespace, "a")


async def test_generate_name_creates_different_names(cluster: Cluster, namespace: str) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-", "namespace": namespace}}
    names = {(await cluster.create(manifest))["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("made-") and len(name) == len("made-") + 5 for name in names)


async def test_create_in_a_missing_namespace_is_404(cluster: Cluster) -> None:
    with pytest.raises(ClusterError) as caught:
        await cluster.create(config("no-such-namespace"))
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")
    assert caught.value.message == 'namespaces "no-such-namespace" not found'


async def test_invalid_object_error_names_its_fields(cluster: Cluster, namespace: str) -> None:
    broken = deployment(namespace)
    del broken["spec"]["selector"]
    with pytest.raises(Invalid) as caught:
        await cluster.create(broken)
    assert caught.value.code == 422
    assert "spec.selector" in {cause["field"] for cause in (caught.value.details or {})["causes"]}


async def test_dry_run_returns_the_result_and_changes_nothing(cluster: Cluster, namespace: str) -> None:
    would = await cluster.create(config(namespace), dry_run=True)
    assert would["metadata"]["uid"]
    assert (await cluster.apply(config(namespace), manager="m", dry_run=True))["data"] == {"x": "1"}
    assert await cluster.get(key_of(would)) is None
    config_map = await cluster.create(config(namespace))
    assert (await cluster.replace({**config_map, "data": {"x": "2"}}, dry_run=True))["data"] == {"x": "2"}
    assert await cluster.get(key_of(config_map)) == config_map


async def test_replace_with_a_stale_resource_version_is_a_conflict(cluster: Cluster, namespace: str) -> None:
    first = await cluster.create(config(namespace))
    second = await cluster.replace({**first, "data": {"x": "2"}})
    assert second["data"] == {"x": "2"}
    with pytest.raises(Conflict) as caught:
        await cluster.replace({**first, "data": {"x": "3"}})
    assert caught.value.reason == "Conflict"
    assert "the object has been modified" in caught.value.message


async def test_managed_fields_belong_to_the_manager_of_a_write(cluster: Cluster, namespace: str) -> None:
    def owners(manifest: Manifest) -> dict[str, set[str]]:
        entries = manifest["metadata"]["managedFields"]
        return {entry["manager"]: set(entry["fieldsV1"].get("f:data") or ()) - {"."} for entry in entries}

    config_map = await cluster.create(config(namespace, data={"x": "1"}), manager="maker")
    assert owners(config_map) == {"maker": {"f:x"}}
    changed = await cluster.patch(key_of(config_map), {"data": {"y": "1"}}, manager="changer")
    assert owners(changed) == {"maker": {"f:x"}, "changer": {"f:y"}}
    replaced = await cluster.replace({**changed, "data": {"x": "1", "y": "1", "z": "1"}}, manager="replacer")
    assert owners(replaced) == {"maker": {"f:x"}, "changer": {"f:y"}, "replacer": {"f:z"}}


async def test_replace_of_a_missing_object_is_404(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(ClusterError) as caught:
        await cluster.replace(config(namespace, "nope"))
    assert caught.value.code == 404


async def test_apply_creates_then_updates_then_changes_nothing(cluster: Cluster, namespace: str) -> None:
    first = await cluster.apply(config(namespace, data={"x": "1"}), manager="m")
    second = await cluster.apply(config(namespace, data={"x": "2"}), manager="m")
    third = await cluster.apply(config(namespace, data={"x": "2"}), manager="m")
    versions = [manifest["metadata"]["resourceVersion"] for manifest in (first, second, third)]
    assert versions[0] != versions[1] == versions[2]
    assert first["metadata"]["managedFields"][0]["manager"] == "m"


async def test_apply_removes_fields_its_manager_no_longer_sets(cluster: Cluster, namespace: str) -> None:
    await cluster.apply(config(namespace, data={"x": "1", "y": "1"}), manager="m")
    assert (await cluster.apply(config(namespace, data={"y": "1"}), manager="m"))["data"] == {"y": "1"}


async def test_apply_of_a_field_of_another_manager_conflicts_unless_forced(cluster: Cluster, namespace: str) -> None:
    await cluster.apply(config(namespace, data={"x": "1"}), manager="one")
    with pytest.raises(Conflict) as caught:
        await cluster.apply(config(namespace, data={"x": "2"}), manager="two")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "one": .data.x'
    assert [cause["field"] for cause in (caught.value.details or {})["causes"]] == [".data.x"]
    forced = await cluster.apply(config(namespace, data={"x": "2"}), manager="two", force=True)
    assert forced["data"] == {"x": "2"}


async def test_merge_patch_sets_and_removes_fields(cluster: Cluster, namespace: str) -> None:
    config_map = await cluster.create(config(namespace, data={"x": "1", "y": "1"}))
    patched = await cluster.patch(key_of(config_map), {"data": {"x": None, "z": "3"}}, kind_of_patch=PatchKind.MERGE)
    assert patched["data"] == {"y": "1", "z": "3"}


async def test_json_patch_with_a_failed_test_is_invalid(cluster: Cluster, namespace: str) -> None:
    config_map = await cluster.create(config(namespace))
    patch = [{"op": "test", "path": "/data/x", "value": "1"}, {"op": "replace", "path": "/data/x", "value": "2"}]
    assert (await cluster.patch(key_of(config_map), patch, kind_of_patch=PatchKind.JSON))["data"] == {"x": "2"}
    with pytest.raises(Invalid):
        await cluster.patch(key_of(config_map), patch, kind_of_patch=PatchKind.JSON)


async def test_strategic_merge_patch_merges_containers_by_name(cluster: Cluster, namespace: str) -> None:
    created_deployment = await cluster.create(deployment(namespace))
    extra = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "example.invalid/side"}]}}}}
    patched = await cluster.patch(key_of(created_deployment), extra, kind_of_patch=PatchKind.STRATEGIC)
    names = [container["name"] for container in patched["spec"]["template"]["spec"]["containers"]]
    assert sorted(names) == ["main", "side"]


async def test_patch_with_a_stale_resource_version_is_a_conflict(cluster: Cluster, namespace: str) -> None:
    config_map = await cluster.create(config(namespace))
    await cluster.patch(key_of(config_map), {"data": {"x": "2"}})
    with pytest.raises(Conflict):
        stale = {"metadata": {"resourceVersion": config_map["metadata"]["resourceVersion"]}, "data": {"x": "3"}}
        await cluster.patch(key_of(config_map), stale)


async def test_patch_of_a_missing_object_is_404(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(ClusterError) as caught:
        await cluster.patch(ResourceKey("", "ConfigMap", namespace, "nope"), {"data": {"x": "1"}})
    assert caught.value.code == 404


async def test_status_is_written_only_through_its_subresource(cluster: Cluster, namespace: str) -> None:
    created_pod = await cluster.create(pod(namespace))
    key = key_of(created_pod)
    ignored = await cluster.patch(key, {"status": {"phase": "Running"}})
    assert ignored["status"]["phase"] == "Pending"
    changed = await cluster.patch(key, {"status": {"phase": "Running"}}, subresource="status")
    assert changed["status"]["phase"] == "Running"
    assert changed["metadata"].get("generation") == created_pod["metadata"].get("generation")


async def test_generation_counts_only_spec_changes(cluster: Cluster, namespace: str) -> None:
    created_deployment = await cluster.create(deployment(namespace))
    labelled = await cluster.patch(key_of(created_deployment), {"metadata": {"labels": {"a": "b"}}})
    scaled = await cluster.patch(key_of(created_deployment), {"spec": {"paused": True}})
    assert [manifest["metadata"]["generation"] for manifest in (created_deployment, labelled, scaled)] == [1, 1, 2]


async def test_delete_of_a_missing_object_is_404(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(ClusterError) as caught:
        await cluster.delete(ResourceKey("", "ConfigMap", namespace, "nope"))
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")


async def test_delete_checks_its_preconditions(cluster: Cluster, namespace: str) -> None:
    config_map = await cluster.create(config(namespace))
    with pytest.raises(Conflict):
        await cluster.delete(key_of(config_map), uid="00000000-0000-0000-0000-000000000000")
    with pytest.raises(Conflict):
        await cluster.delete(key_of(config_map), version="1")
    assert await cluster.get(key_of(config_map)) == config_map
    await cluster.delete(
        key_of(config_map), uid=config_map["metadata"]["uid"], version=config_map["metadata"]["resourceVersion"]
    )
    assert await cluster.get(key_of(config_map)) is None


async def test_finalizer_delays_deletion_until_it_is_removed(cluster: Cluster, namespace: str) -> None:
    config_map = await cluster.create(config(namespace, finalizers=["argosy.dev/hold"]))
    await cluster.delete(key_of(config_map))
    held = await cluster.get(key_of(config_map))
    assert held is not None and held["metadata"]["deletionTimestamp"]
    await cluster.patch(key_of(config_map), {"metadata": {"finalizers": None}})
    assert await cluster.get(key_of(config_map)) is None


async def test_delete_with_zero_grace_removes_a_pod_at_once(cluster: Cluster, namespace: str) -> None:
    created_pod = await cluster.create(pod(namespace))
    await cluster.delete(key_of(created_pod), grace=0)
    assert await cluster.get(key_of(created_pod)) is None


async def test_impersonated_user_is_forbidden_without_rights_and_groups_grant_them(
    cluster: Cluster, namespace: str
) -> None:
    await cluster.create(config(namespace))
    with pytest.raises(Forbidden) as caught:
        await cluster.acting_as(User("jane")).get(ResourceKey("", "ConfigMap", namespace, "a"))
    assert caught.value.code == 403
    assert 'User "jane" cannot get resource "configmaps"' in caught.value.message
    admin = cluster.acting_as(User("jane", ("system:masters",)))
    assert await admin.get(ResourceKey("", "ConfigMap", namespace, "a")) is not None


async def test_impersonation_without_a_user_name_is_refused(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(ClusterError) as caught:
        await cluster.acting_as(User("", ("system:masters",))).list(CONFIG_MAP, namespace=namespace)
    assert caught.value.code in (401, 403)


async def test_scale_patch_returns_a_scale_and_ignores_other_fields(cluster: Cluster, namespace: str) -> None:
    created_deployment = await cluster.create(deployment(namespace, replicas=0))
    sent = {"spec": {"replicas": 0, "template": {"spec": {"hostNetwork": True}}}}
    scale = await cluster.patch(key_of(created_deployment), sent, subresource="scale")
    assert (scale["kind"], scale["apiVersion"], scale["metadata"]["name"]) == ("Scale", "autoscaling/v1", "d")
    stored_deployment = await cluster.get(key_of(created_deployment))
    assert stored_deployment is not None and "hostNetwork" not in stored_deployment["spec"]["template"]["spec"]


async def test_patch_uses_the_fields_of_its_api_version(cluster: Cluster, namespace: str) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"scaleTargetRef": target, "maxReplicas": 5, "targetCPUUtilizationPercentage": 80}
    kind = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"}
    autoscaler = await cluster.create({**kind, "metadata": {"name": "h", "namespace": namespace}, "spec": spec})
    sent = {"spec": {"targetCPUUtilizationPercentage": 70}}
    answer = await cluster.patch(key_of(autoscaler), sent, api_version="autoscaling/v1")
    assert (answer["apiVersion"], answer["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 70)
    stored_autoscaler = await cluster.get(key_of(autoscaler)) or {}
    assert stored_autoscaler["apiVersion"] == "autoscaling/v2"
    assert stored_autoscaler["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
