"""Property tests: which live objects an Application manages, the resource tree, and orphans."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.annotations import INSTALLATION_ID, INSTANCE_LABEL, TRACKING_ID
from argosy.gitops.application.project_spec import OrphanRule
from argosy.gitops.live import (
    AffectedApplication,
    TrackingSettings,
    build_indexes,
    build_tree,
    find_affected_applications,
    find_managed_resources,
    find_orphans,
    read_instance_name,
)
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from support.examples import examples

KINDS = [("v1", "ConfigMap"), ("v1", "Endpoints"), ("v1", "Service"), ("v1", "PersistentVolumeClaim"),
         ("apps/v1", "StatefulSet"), ("apps/v1", "Deployment"), ("sea.dev/v1", "Boat")]  # fmt: skip
NAMES = ["a", "b", "d-a-0", "d-b-0"]
PLACES = ["prod", "test", ""]
APPS = ["shop", "other", "team_shop"]
METHODS = st.sampled_from(["annotation", "label", "annotation+label"])
TRACKINGS = st.builds(TrackingSettings, METHODS, installation_id=st.sampled_from(["", "east"]))


@st.composite
def worlds(draw: st.DrawFn) -> list[Manifest]:
    """Up to 15 live manifests with any tracking mark or none, and with owners that exist or do not."""
    world: list[Manifest] = []
    for number in range(draw(st.integers(0, 15))):
        api_version, kind = draw(st.sampled_from(KINDS))
        metadata: dict[str, Any] = {"name": draw(st.sampled_from(NAMES)), "uid": f"u{number}"}
        if namespace := draw(st.sampled_from(PLACES)):
            metadata["namespace"] = namespace
        if draw(st.booleans()):
            app, suffix = draw(st.sampled_from(APPS)), draw(st.sampled_from(["/ConfigMap:prod/a", "nonsense"]))
            metadata["annotations"] = {TRACKING_ID: f"{app}:{suffix}"}
            if draw(st.booleans()):
                metadata["annotations"][INSTALLATION_ID] = "east"
        if draw(st.booleans()):
            metadata["labels"] = {INSTANCE_LABEL: draw(st.sampled_from(APPS))}
        if world and draw(st.integers(0, 2)) == 0:
            parent = draw(st.sampled_from(world))
            uid = draw(st.sampled_from([parent["metadata"]["uid"], "gone", f"u{number}"]))
            metadata["ownerReferences"] = [{"apiVersion": parent["apiVersion"], "kind": parent["kind"],
                                            "name": parent["metadata"]["name"], "uid": uid}]  # fmt: skip
        spec = {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "d"}}]}} if kind == "StatefulSet" else {}
        world.append({"apiVersion": api_version, "kind": kind, "metadata": metadata, **spec})
    return list({key_of(manifest): manifest for manifest in world}.values())


def cache_of(world: list[Manifest], tracking: TrackingSettings) -> InformerCache:
    cache = InformerCache()
    for name, index in build_indexes(tracking).items():
        cache.add_index(name, index)
    for manifest in world:
        cache.put(manifest)
    return cache


def everything(key: ResourceKey) -> bool:
    return True


def is_claim_of_a_set(manifest: Manifest, world: list[Manifest]) -> bool:
    return manifest["kind"] == "PersistentVolumeClaim" and any(
        other["kind"] == "StatefulSet"
        and other["metadata"].get("namespace") == manifest["metadata"].get("namespace")
        and manifest["metadata"]["name"].startswith(f"d-{other['metadata']['name']}-")
        for other in world
    )


@settings(max_examples=examples(150), deadline=None)
@given(worlds(), TRACKINGS, st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(NAMES)), max_size=3))
def test_managed_resources_are_desired_or_tracked_without_an_owner(
    world: list[Manifest], tracking: TrackingSettings, desired_ids: list[tuple[tuple[str, str], str]]
) -> None:
    desired = [
        {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "prod"}}
        for (api_version, kind), name in desired_ids
    ]
    keys = {key_of(manifest) for manifest in desired}
    expected = {
        key_of(manifest)
        for manifest in world
        if key_of(manifest) in keys
        or (
            read_instance_name(manifest, tracking) == "shop"
            and not manifest["metadata"].get("ownerReferences")
            and manifest["kind"] != "Endpoints"
            and not (is_claim_of_a_set(manifest, world) and manifest["metadata"].get("namespace"))
        )
    }
    managed = find_managed_resources(cache_of(world, tracking), "shop", [*map(key_of, desired)], everything)
    assert managed.keys() == expected
    assert all(managed[key_of(manifest)] is manifest for manifest in world if key_of(manifest) in managed)


@settings(max_examples=examples(), deadline=None)
@given(worlds(), TRACKINGS)
def test_resource_tree_contains_each_object_below_its_parent(world: list[Manifest], tracking: TrackingSettings) -> None:
    cache = cache_of(world, tracking)
    keys = [node.key for node in build_tree(cache, {key_of(manifest): manifest for manifest in world})]
    assert len(keys) == len(set(keys)) == len(world)
    for manifest in world:
        nodes = build_tree(cache, {key_of(manifest): manifest})
        assert nodes[0].key == key_of(manifest)
        for node in nodes[1:]:
            above = {parent.key for parent in node.parents}
            assert (above | {key._replace(namespace="") for key in above}) & {other.key for other in nodes}


@settings(max_examples=examples(), deadline=None)
@given(worlds(), TRACKINGS)
def test_managed_resources_affect_their_application_and_orphans_affect_none(
    world: list[Manifest], tracking: TrackingSettings
) -> None:
    cache = cache_of(world, tracking)
    for live in find_managed_resources(cache, "shop", (), everything).values():
        assert AffectedApplication("shop", True) in find_affected_applications(cache, live, tracking)
    for node in find_orphans(cache, OrphanRule(), "prod", (), tracking):
        live_orphan = cache.get(node.key)
        assert live_orphan is not None
        assert find_affected_applications(cache, live_orphan, tracking) == set()
        assert read_instance_name(live_orphan, tracking) == ""
