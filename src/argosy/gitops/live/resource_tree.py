"""Builds the resource tree of an Application: its objects and all their descendants.

In: a cache, live manifests. Out: nodes, parents before children. Never: returns an object twice; assesses health: the
caller sets `health`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from argosy.gitops.application.step_results import Assessment
from argosy.gitops.live import pod_status
from argosy.gitops.live.app_resources import list_children, list_parents
from argosy.gitops.live.cache_indexes import CacheReader
from argosy.gitops.live.parent_references import ParentRef
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey, split_api_version
from argosy.kube.well_known_kinds import POD

KeyFilter = Callable[[ResourceKey], bool]


@dataclass(frozen=True, slots=True)
class ResourceNode:
    """An object in the tree; `uid` is empty if it is desired but does not exist."""

    key: ResourceKey
    version: str
    uid: str = ""
    resource_version: str = ""
    created: str = ""
    parents: tuple[ParentRef, ...] = ()
    images: tuple[str, ...] = ()  # argo: Pods only; `images_of` has those of workloads
    info: pod_status.PodInfo = ()
    health: Assessment | None = None


def build_tree(
    cache: CacheReader,
    managed: Mapping[ResourceKey, Manifest],
    missing: Iterable[Manifest] = (),
    is_permitted: KeyFilter = lambda key: True,
) -> list[ResourceNode]:
    """Return nodes for `missing` (desired, not live) and for live objects; forbidden keys are skipped with children."""
    nodes = [ResourceNode(key_of(manifest), split_api_version(manifest["apiVersion"])[1]) for manifest in missing]
    return [*nodes, *(build_node(cache, live) for live in walk_tree(cache, managed, is_permitted))]


def walk_tree(
    cache: CacheReader, roots: Mapping[ResourceKey, Manifest], is_permitted: KeyFilter = lambda key: True
) -> Iterator[Manifest]:
    """Yield each root followed by its descendants."""
    seen: set[ResourceKey] = set()
    pending = list(roots.items())[::-1]
    while pending:
        key, live = pending.pop()
        if key not in seen and is_permitted(key):
            seen.add(key)
            yield live
            pending += list(list_children(cache, live).items())[::-1]


def build_node(cache: CacheReader, live: Manifest) -> ResourceNode:
    key, metadata = key_of(live), live["metadata"]
    is_pod = key.group_kind == POD
    return ResourceNode(
        key=key,
        version=split_api_version(live["apiVersion"])[1],
        uid=metadata.get("uid") or "",
        resource_version=metadata.get("resourceVersion") or "",
        created=metadata.get("creationTimestamp") or "",
        parents=tuple(list_parents(cache, live)),
        images=pod_status.list_pod_spec_images(live.get("spec") or {}) if is_pod else (),
        info=pod_status.build_pod_info(live) if is_pod else (),
    )
