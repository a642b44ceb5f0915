"""Apply, prune and hook deletion of objects that changed on the cluster after they were read."""

from __future__ import annotations

from typing import Any, cast

import pytest

from argosy.annotations import HOOK_FINALIZER, LAST_APPLIED, TRACKING_ID
from argosy.errors import Conflict, Invalid
from argosy.gitops.application import Application, OperationRequest, OperationState, ResultCode, SyncRequest
from argosy.gitops.sync import hook_release_and_deletion
from argosy.gitops.sync.apply import MAX_CONFLICT_ATTEMPTS, ApplyRequest, apply_manifest
from argosy.gitops.sync.effective_apply_and_prune_options import ApplyOptions, OperationOptions
from argosy.gitops.sync.prune import prune_object
from argosy.gitops.sync.sync_options import SyncOptions
from argosy.kube.client import Cluster, Propagation
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from support.faulty_client import Faulty

KEY = ResourceKey("", "ConfigMap", "default", "a")


def build_config_map(value: str = "1", **metadata: Any) -> Manifest:
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default", **metadata},
        "data": {"value": value},
    }  # fmt: skip


def wish(live: Manifest | None, value: str = "2", **how: Any) -> ApplyRequest:
    return ApplyRequest(KEY, build_config_map(value), live, ApplyOptions(**how), "2026-01-01T00:00:00Z")


async def get_live(cluster: Cluster) -> Manifest:
    live = await cluster.get(KEY)
    assert live is not None
    return live


@pytest.mark.parametrize("how", [{}, {"replace": True}, {"server_side": True, "migrated_manager": "x"}])
async def test_object_created_in_the_meantime_is_updated(cluster: Cluster, how: dict[str, Any]) -> None:
    await cluster.create(build_config_map())
    await apply_manifest(wish(None, **how), cluster)
    assert (await get_live(cluster))["data"] == {"value": "2"}


@pytest.mark.parametrize("how", [{}, {"replace": True}, {"server_side": True, "migrated_manager": "argosy"}])
async def test_object_deleted_in_the_meantime_is_created(cluster: Cluster, how: dict[str, Any]) -> None:
    live = (await apply_manifest(wish(None, "1"), cluster)).live
    await cluster.delete(KEY)
    await apply_manifest(wish(live, **how), cluster)
    assert (await get_live(cluster))["data"] == {"value": "2"}


@pytest.mark.parametrize("how", [{}, {"replace": True}, {"server_side": True, "migrated_manager": "argosy"}])
async def test_object_changed_in_the_meantime_gets_the_desired_state(cluster: Cluster, how: dict[str, Any]) -> None:
    live = (await apply_manifest(wish(None, "1"), cluster)).live
    await cluster.patch(KEY, {"data": {"value": "theirs"}})
    await apply_manifest(wish(live, **how), cluster)
    assert (await get_live(cluster))["data"] == {"value": "2"}


async def test_object_with_a_finalizer_is_recreated_only_after_it_is_gone(cluster: Cluster) -> None:
    live = await cluster.create(build_config_map(finalizers=["example.com/held"]))
    first = await apply_manifest(wish(live, replace=True, force=True), cluster)
    assert first.is_waiting and (await get_live(cluster))["metadata"]["uid"] == live["metadata"]["uid"]
    again = await apply_manifest(wish(await get_live(cluster), replace=True, force=True), cluster)
    assert again.is_waiting
    await cluster.patch(KEY, {"metadata": {"finalizers": None}})
    await apply_manifest(wish(None, replace=True, force=True), cluster)
    assert (await get_live(cluster))["metadata"]["uid"] != live["metadata"]["uid"]


async def test_immutable_object_is_replaced_only_with_force(cluster: Cluster) -> None:
    live = await cluster.create({**build_config_map(), "immutable": True})
    with pytest.raises(Invalid):
        await apply_manifest(wish(live), cluster)
    result = await apply_manifest(wish(live, force=True), cluster)
    assert result.live and result.live["metadata"]["uid"] != live["metadata"]["uid"]
    assert result.live["data"] == {"value": "2"}


async def test_maps_are_cut_out_of_the_error_of_an_invalid_object(cluster: Cluster) -> None:
    """argo: by the same greedy pattern."""
    live = await cluster.create(build_config_map())
    error = Invalid('ConfigMap "a" is invalid: data: Invalid value: map[string]string{"a":"b"}: [no]: x')
    with pytest.raises(Invalid) as caught:
        await apply_manifest(wish(live), Faulty(cluster, lambda verb: error if verb == "patch" else None))
    assert caught.value.message == 'error when patching "STDIN": ConfigMap "a" is invalid: data: Invalid value: : x'


class AlwaysInConflict:
    """Cluster on which every patch fails with a write conflict."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self.tried = cluster, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def patch(self, key: ResourceKey, *_: Any, **__: Any) -> Manifest:
        self.tried += 1
        raise Conflict("the object has been modified", key=key)


async def test_permanent_conflict_is_resolved_only_with_force(cluster: Cluster) -> None:
    live = await cluster.create(build_config_map())
    busy = AlwaysInConflict(cluster)
    with pytest.raises(Conflict):
        await apply_manifest(wish(live), cast(Cluster, busy))
    assert busy.tried == MAX_CONFLICT_ATTEMPTS
    result = await apply_manifest(wish(live, force=True), cast(Cluster, busy))
    assert result.live and result.live["metadata"]["uid"] != live["metadata"]["uid"]
    assert result.message == "configmap/a configured" and result.live["data"] == {"value": "2"}


@pytest.mark.parametrize("how", [{}, {"replace": True}, {"server_side": True}])
async def test_object_recreated_by_force_uses_the_requested_apply_mode(cluster: Cluster, how: dict[str, Any]) -> None:
    live = await cluster.create({**build_config_map(), "immutable": True})
    result = await apply_manifest(wish(live, force=True, **how), cluster)
    assert result.live and result.live["metadata"]["uid"] != live["metadata"]["uid"]
    assert (LAST_APPLIED in (result.live["metadata"].get("annotations") or {})) is (not how)


def owners(live: Manifest | None) -> list[tuple[str, str]]:
    assert live is not None
    return [(entry["manager"], entry["operation"]) for entry in live["metadata"]["managedFields"]]


@pytest.mark.parametrize(
    ("how", "owner"),
    [
        ({}, ("argocd-controller", "Update")),
        ({"server_side": True}, ("argocd-controller", "Apply")),
        ({"replace": True}, ("argocd-application-controller", "Update")),
    ],
)
async def test_managed_fields_have_the_manager_names_of_argo_cd(
    cluster: Cluster, how: dict[str, Any], owner: tuple[str, str]
) -> None:
    first = await apply_manifest(wish(None, "1", **how), cluster)
    assert owners(first.live) == [owner]
    second = await apply_manifest(wish(first.live, "2", **how), cluster)
    assert second.live and second.live["data"] == {"value": "2"} and owners(second.live) == [owner]


@pytest.mark.parametrize("kind", ["RoleBinding", "ClusterRoleBinding"])
async def test_role_binding_with_a_new_role_ref_is_recreated(cluster: Cluster, kind: str) -> None:
    group = "rbac.authorization.k8s.io"
    namespace_field = {"namespace": "default"} if kind == "RoleBinding" else {}
    key = ResourceKey(group, kind, namespace_field.get("namespace", ""), "b")

    def binding(role: str, user: str = "ann") -> Manifest:
        subjects = [{"apiGroup": group, "kind": "User", "name": user}]
        role_ref = {"apiGroup": group, "kind": "ClusterRole", "name": role}
        head = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "b", **namespace_field}}
        return {**head, "roleRef": role_ref, "subjects": subjects}

    async def applied(desired: Manifest, live: Manifest | None, **how: Any) -> Manifest:
        live_binding = (
            await apply_manifest(ApplyRequest(key, desired, live, ApplyOptions(**how), "2026-01-01T00:00:00Z"), cluster)
        ).live
        assert live_binding is not None
        return live_binding

    first = await applied(binding("view"), None)
    other = await applied(binding("view", "bob"), first)
    assert other["metadata"]["uid"] == first["metadata"]["uid"]
    anew = await applied(binding("edit", "bob"), other)
    assert anew["metadata"]["uid"] != first["metadata"]["uid"] and anew["roleRef"]["name"] == "edit"
    with pytest.raises(Invalid):
        await applied(binding("view"), anew, server_side=True)


# -- prunes ----------------------------------------------------------------------------------------------------------

TERMS = OperationOptions(
    Application(), OperationState(OperationRequest(SyncRequest(prune=True)), started="2026-01-01T00:00:00Z"),
    SyncOptions(),
)  # fmt: skip


def only_ours(live: Manifest) -> str:
    is_ours = (live["metadata"].get("annotations") or {}).get(TRACKING_ID) == "demo"
    return "" if is_ours else "it belongs to nobody"


async def test_object_tracked_by_another_app_in_the_meantime_is_not_pruned(cluster: Cluster) -> None:
    live = await cluster.create(build_config_map(annotations={TRACKING_ID: "demo"}))
    await cluster.patch(KEY, {"metadata": {"annotations": {TRACKING_ID: "other"}}})
    result = await prune_object(KEY, live, TERMS, only_ours, cluster)
    assert result == (ResultCode.PRUNE_SKIPPED, "it belongs to nobody")
    assert await get_live(cluster)


async def test_object_recreated_by_others_is_not_pruned(cluster: Cluster) -> None:
    live = await cluster.create(build_config_map(annotations={TRACKING_ID: "demo"}))
    await cluster.delete(KEY)
    await cluster.create(build_config_map())
    assert (await prune_object(KEY, live, TERMS, only_ours, cluster))[0] is ResultCode.PRUNE_SKIPPED
    assert await get_live(cluster)


async def test_changed_or_deleted_object_is_pruned(cluster: Cluster) -> None:
    live = await cluster.create(build_config_map(annotations={TRACKING_ID: "demo"}))
    await cluster.patch(KEY, {"data": {"value": "theirs"}})
    assert await prune_object(KEY, live, TERMS, only_ours, cluster) == (ResultCode.PRUNED, "pruned")
    remaining = await cluster.get(KEY)
    assert remaining is None or remaining["metadata"]["deletionTimestamp"]
    assert await prune_object(KEY, live, TERMS, only_ours, cluster) == (ResultCode.PRUNED, "pruned")


# -- hooks -----------------------------------------------------------------------------------------------------------


async def test_hook_finalizer_is_removed_from_the_live_object(cluster: Cluster) -> None:
    live = await cluster.create(build_config_map())
    await cluster.patch(KEY, {"metadata": {"finalizers": ["example.com/other", HOOK_FINALIZER]}})
    await hook_release_and_deletion.remove_hook_finalizer(KEY, live, cluster)
    assert (await get_live(cluster))["metadata"]["finalizers"] == ["example.com/other"]
    await hook_release_and_deletion.remove_hook_finalizer(KEY, live, cluster)


async def test_recreated_hook_of_the_same_name_is_not_deleted(cluster: Cluster) -> None:
    live = await cluster.create(build_config_map())
    await cluster.delete(KEY)
    await cluster.create(build_config_map(finalizers=[HOOK_FINALIZER]))
    await hook_release_and_deletion.remove_hook_finalizer(KEY, live, cluster)
    assert await hook_release_and_deletion.delete_hook(KEY, live, cluster, Propagation.BACKGROUND) is None
    hook = await get_live(cluster)
    assert hook["metadata"]["finalizers"] == [HOOK_FINALIZER] and "deletionTimestamp" not in hook["metadata"]


async def test_conflict_while_deleting_a_hook_is_an_error(cluster: Cluster) -> None:
    live = await cluster.create(build_config_map())
    faulty = Faulty(cluster, lambda verb: Conflict("somebody was quicker") if verb == "delete" else None)
    with pytest.raises(Conflict):
        await hook_release_and_deletion.delete_hook(KEY, live, cast(Cluster, faulty), Propagation.BACKGROUND)
    assert await cluster.get(KEY) is not None


async def test_fields_with_null_are_left_out_of_a_created_object(cluster: Cluster) -> None:
    desired = {**build_config_map(labels={"kept": "yes", "empty": None}), "immutable": None}
    request = ApplyRequest(KEY, desired, None, ApplyOptions(), "2026-01-01T00:00:00Z")
    created = (await apply_manifest(request, cluster)).live
    assert created is not None and "immutable" not in created
    assert created["metadata"]["labels"] == {"kept": "yes"}
    assert created == await get_live(cluster)
    again = await apply_manifest(ApplyRequest(KEY, desired, created, ApplyOptions(), ""), cluster)
    assert again.is_unchanged and again.message == "configmap/a unchanged"


async def test_first_apply_to_an_object_that_others_created_warns_as_kubectl_does(cluster: Cluster) -> None:
    live = await cluster.create(build_config_map())
    first = await apply_manifest(wish(live, "2"), cluster)
    # recorded from Argo CD 3.5.6, which cuts the name of kubectl out of the warning
    assert first.message == (
        "configmap/a configured. Warning: resource configmaps/a is missing the"
        " kubectl.kubernetes.io/last-applied-configuration annotation which is required by  apply.  apply should only"
        " be used on resources created declaratively by either  create --save-config or  apply. The missing annotation"
        " will be patched automatically."
    )
    second = await apply_manifest(wish(first.live, "3"), cluster)
    assert second.message == "configmap/a configured"


async def test_secret_with_string_data_is_applied_again_each_time(cluster: Cluster) -> None:
    """kubectl finds no stringData in the live object, so it always sends it."""
    key = ResourceKey("", "Secret", "default", "token")
    desired: Manifest = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "default"},
        "stringData": {"password": "x"},
    }  # fmt: skip
    live: Manifest | None = None
    messages = []
    for _ in range(3):
        result = await apply_manifest(ApplyRequest(key, desired, live, ApplyOptions(), ""), cluster)
        live = result.live
        messages.append(result.message)
    assert messages == ["secret/token created", "secret/token configured", "secret/token configured"]
