"""Finds the live objects of an Application, and the Applications that a changed object belongs to.

In: a cache with the indexes of `cache_reader`, an instance name, desired manifests. Out: live manifests by key.
Never: scans the whole cache.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from argosy.gitops.live.cache_reader import BY_OWNER, BY_PARENT, CacheReader
from argosy.gitops.live.ownership import CLAIM, STATEFUL_SET, Parent, claims, parent_of, parents
from argosy.gitops.live.tracking import Tracking, owner
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of


def managed(
    cache: CacheReader, instance: str, wanted: Collection[ResourceKey], allowed: Callable[[ResourceKey], bool]
) -> dict[ResourceKey, Manifest]:
    """Return the top-level objects that the instance tracks, and the live objects with a desired key."""
    # The index holds tracked objects whose manifest names no parent; it cannot see claims of a StatefulSet.
    found = {key_of(live): live for live in cache.find(BY_OWNER, instance) if not _is_claimed(cache, live)}
    for key in wanted:
        if (live := cache.get(key)) is not None:
            found[key] = live
    return {key: live for key, live in _once(found, frozenset(wanted)).items() if allowed(key)}


def in_other_versions(
    desired: Sequence[Manifest], live: Mapping[ResourceKey, Manifest]
) -> Iterator[tuple[Manifest, Manifest]]:
    """Yield (desired, live) pairs in different apiVersions: the cache holds the version that the cluster prefers."""
    for manifest in desired:
        if manifest["metadata"].get("name"):
            found = live.get(key_of(manifest))
            if found is not None and found["apiVersion"] != manifest["apiVersion"]:
                yield manifest, found


class Concern(NamedTuple):
    instance: str
    is_managed: bool  # argo: False for a child; then only the tree and health can change


def concerned(cache: CacheReader, manifest: Manifest, tracking: Tracking) -> set[Concern]:
    """Return the Applications that a change of this manifest affects. Call it for the old and the new manifest."""
    found: set[Concern] = set()
    seen: set[ResourceKey] = set()
    todo = [manifest]
    while todo:
        each = todo.pop()
        seen.add(key_of(each))
        above = list(living_parents(cache, each))
        if instance := owner(each, tracking):
            found.add(Concern(instance, each is manifest and not above))
        else:  # argo: the nearest ancestor with tracking counts
            lives = (living(cache, parent) for parent in above)
            todo += [parent for parent in lives if parent is not None and key_of(parent) not in seen]
    return found


def living_parents(cache: CacheReader, manifest: Manifest) -> Iterator[Parent]:
    """Yield all parents that a manifest names, and for a claim the StatefulSet that its name points to."""
    yield from parents(manifest)
    yield from _claimants(cache, manifest)


def _claimants(cache: CacheReader, manifest: Manifest) -> Iterator[Parent]:
    metadata = manifest["metadata"]
    namespace = metadata.get("namespace")
    if namespace and manifest["kind"] == CLAIM.kind and key_of(manifest).group_kind == CLAIM:
        for stateful_set in cache.list(STATEFUL_SET, namespace=namespace):
            if metadata["name"].startswith(claims(stateful_set)):
                of = stateful_set["metadata"]
                yield parent_of(STATEFUL_SET, of["name"], manifest, uid=of.get("uid") or "")


def _is_claimed(cache: CacheReader, manifest: Manifest) -> bool:
    return manifest["kind"] == CLAIM.kind and next(_claimants(cache, manifest), None) is not None


def living(cache: CacheReader, parent: Parent) -> Manifest | None:
    """Return the live parent, or None if it is gone, even if a newer object with another uid has its name."""
    for key in (parent.key, parent.key._replace(namespace="")):
        found = cache.get(key)
        if found is not None and parent.uid in ("", found["metadata"].get("uid")):
            return found
    return None


def children(cache: CacheReader, manifest: Manifest) -> dict[ResourceKey, Manifest]:
    """Return the direct children, sorted by key."""
    key, uid = key_of(manifest), manifest["metadata"].get("uid") or ""
    found = [each for each in cache.owned(uid) if _names(each, uid)] if uid else []
    found += [each for each in cache.find(BY_PARENT, key) if _names(each, uid, key)]
    if key.namespace and key.group_kind == STATEFUL_SET and (lead := claims(manifest)):
        found += [
            each for each in cache.list(CLAIM, namespace=key.namespace) if each["metadata"]["name"].startswith(lead)
        ]
    if not found:
        return {}
    near = {key_of(each): each for each in found if key.namespace in ("", each["metadata"].get("namespace") or "")}
    return dict(sorted(near.items()))


def _names(child: Manifest, uid: str, key: ResourceKey | None = None) -> bool:
    return any(parent.uid == uid or (parent.key == key and not parent.uid) for parent in parents(child))


def _once(found: dict[ResourceKey, Manifest], wanted: frozenset[ResourceKey]) -> dict[ResourceKey, Manifest]:
    """argo: an object served under two API groups counts once, under its desired key if it has one."""
    uids = {live["metadata"].get("uid") for live in found.values()}
    if len(uids) == len(found):
        return found
    chosen: dict[str, ResourceKey] = {}
    for key in sorted(found, key=lambda key: (key not in wanted, key)):
        chosen.setdefault(found[key]["metadata"].get("uid") or str(key), key)
    kept = wanted.union(chosen.values())
    return {key: live for key, live in found.items() if key in kept}
