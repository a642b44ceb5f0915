"""Tests managed resources, affected Applications, resource trees and orphans, found by cache indexes."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import Any

import pytest

from argosy.annotations import INSTANCE_LABEL, SYNC_OPTIONS
from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import BUDGETS_CONFIG_MAP, KindPattern, OrphanRule
from argosy.gitops.live import (
    BY_OWNER,
    AffectedApplication,
    CacheReader,
    TrackingSettings,
    add_tracking,
    build_indexes,
    build_tree,
    find_affected_applications,
    find_managed_resources,
    find_orphans,
    find_version_mismatches,
    list_images,
    orphan_warning,
)
from argosy.gitops.live.resource_tree import ResourceNode
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey

TRACKING = TrackingSettings(control_namespace="argocd")
SHOP = Application(name="shop", namespace="argocd")
UIDS = itertools.count(1)


def live(kind: str, name: str, *parents: Manifest, namespace: str = "prod", group: str = "", **rest: Any) -> Manifest:
    references = [
        {"apiVersion": parent["apiVersion"], "kind": parent["kind"], "name": parent["metadata"]["name"],
         "uid": parent["metadata"]["uid"], "controller": index == 0}
        for index, parent in enumerate(parents)
    ]  # fmt: skip
    metadata: dict[str, Any] = {"name": name, "uid": f"u{next(UIDS)}", "resourceVersion": "7"}
    metadata |= {"namespace": namespace} if namespace else {}
    metadata |= {"ownerReferences": references} if references else {}
    metadata |= rest.pop("metadata", {})
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": metadata, **rest}


def of_shop(manifest: Manifest, app: Application = SHOP) -> Manifest:
    return add_tracking(manifest, app, TRACKING)


def cache_of(*manifests: Manifest, tracking: TrackingSettings = TRACKING) -> InformerCache:
    cache = InformerCache()
    for name, index in build_indexes(tracking).items():
        cache.add_index(name, index)
    for manifest in manifests:
        cache.put(manifest)
    return cache


def names(keys: Any) -> list[str]:
    return sorted(key.name for key in keys)


def everything(key: ResourceKey) -> bool:
    return True


def seen_by(cache: CacheReader, desired: Sequence[Manifest] = ()) -> list[str]:
    return names(find_managed_resources(cache, "shop", [*map(key_of, desired)], everything))


# -- managed resources


def test_only_resources_tracked_by_the_application_are_managed() -> None:
    other = Application(name="other", namespace="argocd")
    cache = cache_of(of_shop(live("ConfigMap", "a")), live("ConfigMap", "b"), of_shop(live("Secret", "c"), other))
    assert seen_by(cache) == ["a"]


def test_live_object_with_a_desired_key_is_managed() -> None:
    foreign = live("ConfigMap", "b")
    cache = cache_of(of_shop(live("ConfigMap", "a")), foreign)
    assert seen_by(cache, [live("ConfigMap", "b"), live("ConfigMap", "missing")]) == ["a", "b"]


def test_child_with_copied_tracking_of_its_parent_is_not_managed() -> None:
    deployment = of_shop(live("Deployment", "web", group="apps"))
    cache = cache_of(deployment, of_shop(live("ReplicaSet", "web-1", deployment, group="apps")))
    assert seen_by(cache) == ["web"]


def test_endpoints_with_the_label_of_their_service_are_not_managed() -> None:
    by_label = TrackingSettings("label", control_namespace="argocd")
    labels = {"metadata": {"labels": {INSTANCE_LABEL: "shop"}}}
    cache = cache_of(live("Service", "web", **labels), live("Endpoints", "web", **labels), tracking=by_label)
    assert [key.kind for key in find_managed_resources(cache, "shop", (), everything)] == ["Service"]


def test_claims_of_a_stateful_set_with_its_labels_are_not_managed() -> None:
    by_label = TrackingSettings("label", control_namespace="argocd")
    labels = {"metadata": {"labels": {INSTANCE_LABEL: "shop"}}}
    base = live("StatefulSet", "db", group="apps", spec={"volumeClaimTemplates": [{"metadata": {"name": "data"}}]},
                **labels)  # fmt: skip
    claims = [live("PersistentVolumeClaim", name, **labels) for name in ("data-db-0", "data-dbx-0", "mine")]
    assert seen_by(cache_of(base, *claims, tracking=by_label)) == ["data-dbx-0", "db", "mine"]


def test_resources_denied_by_the_project_are_not_listed() -> None:
    cache = cache_of(of_shop(live("ConfigMap", "a")), of_shop(live("Secret", "b")))
    managed = find_managed_resources(cache, "shop", [key_of(live("Secret", "b"))], lambda key: key.kind != "Secret")
    assert names(managed) == ["a"]


@pytest.mark.parametrize(
    ("desired", "group"),
    [("extensions", "extensions"), ("networking.k8s.io", "networking.k8s.io"), ("", "extensions")],
)
def test_object_served_in_two_groups_is_listed_once_as_desired(desired: str, group: str) -> None:
    one = live("Ingress", "web", group="extensions", metadata={"uid": "same"})
    two = live("Ingress", "web", group="networking.k8s.io", metadata={"uid": "same"})
    desired_keys = [key_of(live("Ingress", "web", group=desired))] if desired else []
    managed = find_managed_resources(cache_of(of_shop(one), of_shop(two)), "shop", desired_keys, everything)
    assert [key.group for key in managed] == [group]


def test_only_the_applications_own_manifests_are_read() -> None:
    class Counting(InformerCache):
        looked = 0

        def find(self, index: str, value: Hashable) -> list[Manifest]:
            matches = super().find(index, value)
            self.looked += len(matches)
            return matches

    cache = Counting()
    for name, index in build_indexes(TRACKING).items():
        cache.add_index(name, index)
    for number in range(300):
        cache.put(of_shop(live("ConfigMap", f"c{number}"), Application(name=f"app-{number % 100}")))
    assert len(find_managed_resources(cache, "app-7", (), everything)) == cache.looked == 3


def test_changed_tracking_takes_effect_with_a_new_index() -> None:
    labelled = live("ConfigMap", "a", metadata={"labels": {INSTANCE_LABEL: "shop"}})
    cache = cache_of(labelled)
    assert seen_by(cache) == []
    by_label = TrackingSettings("label", control_namespace="argocd")
    cache.add_index(BY_OWNER, build_indexes(by_label)[BY_OWNER])
    assert seen_by(cache) == ["a"]


def test_desired_version_other_than_cached_version_is_listed() -> None:
    lives = live("HorizontalPodAutoscaler", "web", group="autoscaling")
    desired = {**lives, "apiVersion": "autoscaling/v2"}
    assert list(find_version_mismatches([desired, live("ConfigMap", "a")], {key_of(lives): lives})) == [
        (desired, lives)
    ]
    assert list(find_version_mismatches([lives], {key_of(lives): lives})) == []


# -- affected Applications


def test_change_affects_application_of_nearest_tracked_parent() -> None:
    deployment = of_shop(live("Deployment", "web", group="apps"))
    replica_set = live("ReplicaSet", "web-1", deployment, group="apps")
    pod = live("Pod", "web-1-x", replica_set)
    cache = cache_of(deployment, replica_set, pod)
    assert find_affected_applications(cache, deployment, TRACKING) == {AffectedApplication("shop", True)}
    assert find_affected_applications(cache, pod, TRACKING) == {AffectedApplication("shop", False)}


def test_untracked_object_affects_no_application() -> None:
    assert find_affected_applications(cache_of(), live("ConfigMap", "a"), TRACKING) == set()
    assert (
        find_affected_applications(cache_of(), live("Pod", "a", live("ReplicaSet", "gone", group="apps")), TRACKING)
        == set()
    )


def test_recreated_parent_with_same_name_is_not_the_parent() -> None:
    gone = live("ReplicaSet", "web", group="apps")
    cache = cache_of(of_shop(live("ReplicaSet", "web", group="apps")))
    assert find_affected_applications(cache, live("Pod", "web-x", gone), TRACKING) == set()


def test_parent_may_be_cluster_scoped() -> None:
    node = of_shop(live("Fleet", "f", namespace="", group="sea.dev"))
    assert find_affected_applications(cache_of(node), live("Boat", "b", node, group="sea.dev"), TRACKING) == {
        AffectedApplication("shop", False)
    }


def test_cyclic_owner_references_end() -> None:
    one, two = live("Boat", "one", group="sea.dev"), live("Boat", "two", group="sea.dev")
    circle = [live("Boat", "one", two, group="sea.dev"), live("Boat", "two", one, group="sea.dev")]
    circle[0]["metadata"]["uid"], circle[1]["metadata"]["uid"] = one["metadata"]["uid"], two["metadata"]["uid"]
    cache = cache_of(*circle)
    assert find_affected_applications(cache, circle[0], TRACKING) == set()
    assert len(build_tree(cache, {key_of(circle[0]): circle[0]})) == 2


# -- resource tree


def list_tree(cache: CacheReader, *roots: Manifest) -> list[tuple[str, str]]:
    return [(node.key.kind, node.key.name) for node in build_tree(cache, {key_of(root): root for root in roots})]


def test_tree_lists_parents_before_children_in_key_order() -> None:
    deployment = live("Deployment", "web", group="apps")
    sets = [live("ReplicaSet", name, deployment, group="apps") for name in ("web-2", "web-1")]
    pods = [live("Pod", f"{replica_set['metadata']['name']}-x", replica_set) for replica_set in sets]
    service = live("Service", "web")
    cache = cache_of(deployment, *sets, *pods, service, live("Endpoints", "web"), live("Endpoints", "other"))
    assert list_tree(cache, service, deployment) == [
        ("Service", "web"), ("Endpoints", "web"), ("Deployment", "web"), ("ReplicaSet", "web-1"),
        ("Pod", "web-1-x"), ("ReplicaSet", "web-2"), ("Pod", "web-2-x"),
    ]  # fmt: skip


def test_children_without_owner_references_are_found() -> None:
    account = live("ServiceAccount", "robot")
    token = {"type": "kubernetes.io/service-account-token"}
    of = "kubernetes.io/service-account"
    note = {f"{of}.name": "robot", f"{of}.uid": account["metadata"]["uid"]}
    old = {**note, f"{of}.uid": "gone"}
    group = live("OperatorGroup", "global", group="operators.coreos.com")
    version = live("ClusterServiceVersion", "op", group="operators.coreos.com",
                   metadata={"annotations": {"olm.operatorGroup": "global"}})  # fmt: skip
    base = live("StatefulSet", "db", group="apps", spec={"volumeClaimTemplates": [{"metadata": {"name": "data"}}]})
    cache = cache_of(
        account, group, version, base,
        live("Secret", "robot-token", metadata={"annotations": note}, **token),
        live("Secret", "old-token", metadata={"annotations": old}, **token),
        live("Secret", "no-token", metadata={"annotations": note}),
        live("PersistentVolumeClaim", "data-db-0"),
        live("PersistentVolumeClaim", "data-db-0", namespace="other"),
    )  # fmt: skip
    assert list_tree(cache, account, group, base) == [
        ("ServiceAccount", "robot"), ("Secret", "robot-token"), ("OperatorGroup", "global"),
        ("ClusterServiceVersion", "op"), ("StatefulSet", "db"), ("PersistentVolumeClaim", "data-db-0"),
    ]  # fmt: skip


def test_controller_references_only_ignores_other_owners() -> None:
    controller, other = live("Boat", "a", group="sea.dev"), live("Boat", "b", group="sea.dev")
    option = {"metadata": {"annotations": {SYNC_OPTIONS: "ControllerReferencesOnly=true"}}}
    cache = cache_of(controller, other, live("Pod", "x", controller, other, **option))
    assert list_tree(cache, other) == [("Boat", "b")]
    assert list_tree(cache, controller) == [("Boat", "a"), ("Pod", "x")]


def test_controller_references_only_disables_inferred_children() -> None:
    option = {"metadata": {"annotations": {SYNC_OPTIONS: "ControllerReferencesOnly=true"}}}
    service, templates = live("Service", "web"), {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    base = live("StatefulSet", "db", group="apps", spec=templates, **option)
    cache = cache_of(service, base, live("Endpoints", "web", **option), live("PersistentVolumeClaim", "data-db-0"))
    assert list_tree(cache, service, base) == [("Service", "web"), ("StatefulSet", "db")]


def test_children_of_denied_resources_are_not_listed() -> None:
    deployment = live("Deployment", "web", group="apps")
    replica_set = live("ReplicaSet", "web-1", deployment, group="apps")
    cache = cache_of(deployment, replica_set, live("Pod", "x", replica_set))
    nodes = build_tree(cache, {key_of(deployment): deployment}, (), lambda key: key.kind != "ReplicaSet")
    assert [node.key.kind for node in nodes] == ["Deployment"]


def test_missing_desired_manifest_is_a_node_without_uid() -> None:
    (node,) = build_tree(cache_of(), {}, [live("Deployment", "web", group="apps")])
    assert node == ResourceNode(ResourceKey("apps", "Deployment", "prod", "web"), "v1")


def test_node_has_parents_creation_time_images_and_info() -> None:
    replica_set = live("ReplicaSet", "web-1", group="apps")
    spec = {"containers": [{"image": "b:1"}, {"image": "a:1"}], "initContainers": [{"image": "b:1"}]}
    pod = live("Pod", "x", replica_set, metadata={"creationTimestamp": "2030-01-01T00:00:00Z"}, spec=spec)
    node = build_tree(cache_of(replica_set, pod), {key_of(pod): pod})[0]
    assert (node.uid, node.version, node.resource_version) == (pod["metadata"]["uid"], "v1", "7")
    assert node.created == "2030-01-01T00:00:00Z"
    assert [(parent.key.name, parent.uid, parent.version) for parent in node.parents] == [
        ("web-1", replica_set["metadata"]["uid"], "v1")
    ]
    assert node.images == ("a:1", "b:1")
    assert dict(node.info) == {"Node": "", "Containers": "0/2"}
    assert build_tree(cache_of(), {key_of(replica_set): replica_set})[0].info == ()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [{"image": "a"}]}, ("a",)),
        ({"template": {"spec": {"containers": [{"image": "a"}]}}}, ("a",)),
        ({"jobTemplate": {"spec": {"template": {"spec": {"containers": [{"image": "a"}, {}]}}}}}, ("a",)),
        ({"template": "text"}, ()),
        ({}, ()),
    ],
)
def test_images_are_found_in_every_kind_of_pod_template(spec: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert list_images(live("Anything", "x", spec=spec)) == expected


# -- orphans

ALL = OrphanRule()


def orphaned(cache: CacheReader, rule: OrphanRule | None = ALL, **settings: Any) -> list[str]:
    return [
        node.key.name for node in find_orphans(cache, rule, "prod", settings.pop("managed", ()), TRACKING, **settings)
    ]


def test_untracked_object_is_an_orphan_with_its_children() -> None:
    deployment = live("Deployment", "stray", group="apps")
    cache = cache_of(
        deployment, live("ReplicaSet", "stray-1", deployment, group="apps"),
        of_shop(live("ConfigMap", "mine")), live("ConfigMap", "elsewhere", namespace="other"),
        live("Namespace", "prod", namespace=""),
    )  # fmt: skip
    assert orphaned(cache) == ["stray", "stray-1"]
    assert orphaned(cache, None) == []


def test_default_objects_of_a_namespace_are_not_orphans() -> None:
    cache = cache_of(
        live("ServiceAccount", "default"), live("ConfigMap", "kube-root-ca.crt"), live("ServiceAccount", "robot"),
        live("Service", "kubernetes"), live("Service", "kubernetes", namespace="default"),
    )  # fmt: skip
    assert orphaned(cache) == ["kubernetes", "robot"]
    assert find_orphans(cache, ALL, "default", (), TRACKING) == []


def test_budgets_config_map_is_not_an_orphan() -> None:
    cache = cache_of(live("ConfigMap", BUDGETS_CONFIG_MAP), live("ConfigMap", "stray"))
    assert orphaned(cache) == ["stray"]


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        (KindPattern("", "ConfigMap"), ["deploy"]),
        (KindPattern("", "Config*"), ["deploy"]),
        (KindPattern("", "", "b*"), ["a", "deploy"]),
        (KindPattern("apps", ""), ["a", "b"]),
        (KindPattern("*", "*"), []),
        (KindPattern("", "Deployment"), ["a", "b", "deploy"]),
    ],
)
def test_project_can_ignore_orphans(pattern: KindPattern, left: list[str]) -> None:
    cache = cache_of(live("ConfigMap", "a"), live("ConfigMap", "b"), live("Deployment", "deploy", group="apps"))
    assert orphaned(cache, OrphanRule(ignored=(pattern,))) == left


def test_managed_tracked_or_denied_objects_are_not_orphans() -> None:
    a, b, c = live("ConfigMap", "a"), of_shop(live("ConfigMap", "b")), live("Secret", "c")
    cache = cache_of(a, b, c)
    assert orphaned(cache) == ["a", "c"]
    assert orphaned(cache, managed={key_of(a)}) == ["c"]
    assert orphaned(cache, application_exists=lambda instance: False) == ["a", "b", "c"]
    assert orphaned(cache, is_permitted=lambda key: key.kind != "Secret") == ["a"]


def test_claims_of_a_stateful_set_are_not_orphans() -> None:
    base = of_shop(live("StatefulSet", "db", group="apps",
                        spec={"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}))  # fmt: skip
    assert orphaned(cache_of(base, live("PersistentVolumeClaim", "data-db-0"))) == []


def test_orphan_warning_counts_unless_disabled_by_the_project() -> None:
    nodes = [ResourceNode(ResourceKey("", "ConfigMap", "prod", name), "v1") for name in "ab"]
    assert orphan_warning(nodes, ALL) == "Application has 2 orphaned resources"
    assert orphan_warning(nodes, OrphanRule(warns=False)) == ""
    assert orphan_warning([], ALL) == ""


def test_informer_cache_implements_cache_reader() -> None:
    reader: CacheReader = InformerCache()
    assert reader.list(GroupKind("", "ConfigMap"), namespace="prod") == []
