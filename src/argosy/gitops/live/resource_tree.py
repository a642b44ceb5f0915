"""Builds the resource tree of an Application: its objects and all their descendants.

In: a cache, live manifests. Out: nodes, parents before children. Never: returns an object twice; assesses health: the
caller sets `health`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from argosy.gitops.application.step_results import Assessment
from argosy.gitops.live import pod_status
from argosy.gitops.live.app_resources import children, living_parents
from argosy.gitops.live.cache_reader import CacheReader
from argosy.gitops.live.ownership import Parent
from argosy.kube.names import GroupKind, ResourceKey, split_api_version
from argosy.kube.objects import Manifest, key_of

POD = GroupKind("", "Pod")

Permitted = Callable[[ResourceKey], bool]


@dataclass(frozen=True, slots=True)
class Node:
    """An object in the tree; `uid` is empty if it is desired but does not exist."""

    key: ResourceKey
    version: str
    uid: str = ""
    resource_version: str = ""
    created: str = ""
    parents: tuple[Parent, ...] = ()
    images: tuple[str, ...] = ()  # argo: Pods only; `images_of` has those of workloads
    info: pod_status.Info = ()
    health: Assessment | None = None


def tree(
    cache: CacheReader,
    managed: Mapping[ResourceKey, Manifest],
    missing: Iterable[Manifest] = (),
    permitted: Permitted = lambda key: True,
) -> list[Node]:
    """Return nodes for `missing` (desired, not live) and for live objects; forbidden keys are skipped with children."""
    nodes = [Node(key_of(each), split_api_version(each["apiVersion"])[1]) for each in missing]
    return [*nodes, *(node_of(cache, live) for live in walk(cache, managed, permitted))]


def walk(
    cache: CacheReader, roots: Mapping[ResourceKey, Manifest], permitted: Permitted = lambda key: True
) -> Iterator[Manifest]:
    """Yield each root followed by its descendants."""
    seen: set[ResourceKey] = set()
    todo = list(roots.items())[::-1]
    while todo:
        key, live = todo.pop()
        if key not in seen and permitted(key):
            seen.add(key)
            yield live
            todo += list(children(cache, live).items())[::-1]


def node_of(cache: CacheReader, live: Manifest) -> Node:
    key, metadata = key_of(live), live["metadata"]
    is_pod = key.group_kind == POD
    return Node(
        key=key,
        version=split_api_version(live["apiVersion"])[1],
        uid=metadata.get("uid") or "",
        resource_version=metadata.get("resourceVersion") or "",
        created=metadata.get("creationTimestamp") or "",
        parents=tuple(living_parents(cache, live)),
        images=pod_status.images(live.get("spec") or {}) if is_pod else (),
        info=pod_status.info(live) if is_pod else (),
    )
