"""Finds the live objects of an Application, and the Applications that a changed object belongs to.

In: a cache with the indexes of `cache_reader`, an instance name, desired manifests. Out: live manifests by key.
Never: scans the whole cache.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from argosy.gitops.live.cache_indexes import BY_OWNER, BY_PARENT, CacheReader
from argosy.gitops.live.parent_references import ParentRef, build_parent, claim_name_prefixes, read_parents
from argosy.gitops.live.tracking import TrackingSettings, read_instance_name
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import PERSISTENT_VOLUME_CLAIM, STATEFUL_SET


def find_managed_resources(
    cache: CacheReader, instance: str, desired_keys: Collection[ResourceKey], is_allowed: Callable[[ResourceKey], bool]
) -> dict[ResourceKey, Manifest]:
    """Return the top-level objects that the instance tracks, and the live objects with a desired key."""
    # The index holds tracked objects whose manifest names no parent; it cannot see claims of a StatefulSet.
    live_by_key = {
        key_of(live): live for live in cache.find(BY_OWNER, instance) if not _is_stateful_set_claim(cache, live)
    }
    for key in desired_keys:
        if (live := cache.get(key)) is not None:
            live_by_key[key] = live
    return {
        key: live for key, live in _drop_duplicate_uids(live_by_key, frozenset(desired_keys)).items() if is_allowed(key)
    }


def find_version_mismatches(
    desired: Sequence[Manifest], live: Mapping[ResourceKey, Manifest]
) -> Iterator[tuple[Manifest, Manifest]]:
    """Yield (desired, live) pairs in different apiVersions: the cache holds the version that the cluster prefers."""
    for manifest in desired:
        if manifest["metadata"].get("name"):
            live_manifest = live.get(key_of(manifest))
            if live_manifest is not None and live_manifest["apiVersion"] != manifest["apiVersion"]:
                yield manifest, live_manifest


class AffectedApplication(NamedTuple):
    instance: str
    is_managed: bool  # argo: False for a child; then only the tree and health can change


def find_affected_applications(
    cache: CacheReader, manifest: Manifest, tracking: TrackingSettings
) -> set[AffectedApplication]:
    """Return the Applications that a change of this manifest affects. Call it for the old and the new manifest."""
    affected: set[AffectedApplication] = set()
    seen: set[ResourceKey] = set()
    pending = [manifest]
    while pending:
        current = pending.pop()
        seen.add(key_of(current))
        live_parents = list(list_parents(cache, current))
        if instance := read_instance_name(current, tracking):
            affected.add(AffectedApplication(instance, current is manifest and not live_parents))
        else:  # argo: the nearest ancestor with tracking counts
            parent_manifests = (find_parent_manifest(cache, parent) for parent in live_parents)
            pending += [parent for parent in parent_manifests if parent is not None and key_of(parent) not in seen]
    return affected


def list_parents(cache: CacheReader, manifest: Manifest) -> Iterator[ParentRef]:
    """Yield all parents that a manifest names, and for a claim the StatefulSet that its name points to."""
    yield from read_parents(manifest)
    yield from _list_claiming_stateful_sets(cache, manifest)


def _list_claiming_stateful_sets(cache: CacheReader, manifest: Manifest) -> Iterator[ParentRef]:
    metadata = manifest["metadata"]
    namespace = metadata.get("namespace")
    if (
        namespace
        and manifest["kind"] == PERSISTENT_VOLUME_CLAIM.kind
        and key_of(manifest).group_kind == PERSISTENT_VOLUME_CLAIM
    ):
        for stateful_set in cache.list(STATEFUL_SET, namespace=namespace):
            if metadata["name"].startswith(claim_name_prefixes(stateful_set)):
                owner_metadata = stateful_set["metadata"]
                yield build_parent(STATEFUL_SET, owner_metadata["name"], manifest, uid=owner_metadata.get("uid") or "")


def _is_stateful_set_claim(cache: CacheReader, manifest: Manifest) -> bool:
    return (
        manifest["kind"] == PERSISTENT_VOLUME_CLAIM.kind
        and next(_list_claiming_stateful_sets(cache, manifest), None) is not None
    )


def find_parent_manifest(cache: CacheReader, parent: ParentRef) -> Manifest | None:
    """Return the live parent, or None if it is gone, even if a newer object with another uid has its name."""
    for key in (parent.key, parent.key._replace(namespace="")):
        manifest = cache.get(key)
        if manifest is not None and parent.uid in ("", manifest["metadata"].get("uid")):
            return manifest
    return None


def list_children(cache: CacheReader, manifest: Manifest) -> dict[ResourceKey, Manifest]:
    """Return the direct children, sorted by key."""
    key, uid = key_of(manifest), manifest["metadata"].get("uid") or ""
    candidates = [child for child in cache.list_owned(uid) if _has_parent(child, uid)] if uid else []
    candidates += [child for child in cache.find(BY_PARENT, key) if _has_parent(child, uid, key)]
    if key.namespace and key.group_kind == STATEFUL_SET and (claim_prefixes := claim_name_prefixes(manifest)):
        candidates += [
            child
            for child in cache.list(PERSISTENT_VOLUME_CLAIM, namespace=key.namespace)
            if child["metadata"]["name"].startswith(claim_prefixes)
        ]
    if not candidates:
        return {}
    children_by_key = {
        key_of(child): child for child in candidates if key.namespace in ("", child["metadata"].get("namespace") or "")
    }
    return dict(sorted(children_by_key.items()))


def _has_parent(child: Manifest, uid: str, key: ResourceKey | None = None) -> bool:
    return any(parent.uid == uid or (parent.key == key and not parent.uid) for parent in read_parents(child))


def _drop_duplicate_uids(
    live_by_key: dict[ResourceKey, Manifest], desired_keys: frozenset[ResourceKey]
) -> dict[ResourceKey, Manifest]:
    """argo: an object served under two API groups counts once, under its desired key if it has one."""
    uids = {live["metadata"].get("uid") for live in live_by_key.values()}
    if len(uids) == len(live_by_key):
        return live_by_key
    key_by_uid: dict[str, ResourceKey] = {}
    for key in sorted(live_by_key, key=lambda key: (key not in desired_keys, key)):
        key_by_uid.setdefault(live_by_key[key]["metadata"].get("uid") or str(key), key)
    kept_keys = desired_keys.union(key_by_uid.values())
    return {key: live for key, live in live_by_key.items() if key in kept_keys}
