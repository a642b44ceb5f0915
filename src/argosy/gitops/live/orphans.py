"""Finds orphaned resources: objects in an Application's namespace that no Application tracks.

In: a cache, the orphan rule of the AppProject, the managed keys. Out: nodes, and Argo CD's warning. Never: returns an
object that an Application tracks.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

from argosy.gitops.application.project import BUDGETS_CONFIG_MAP, KindPattern, OrphanRule
from argosy.gitops.live.app_resources import concerned, living_parents
from argosy.gitops.live.cache_reader import BY_NAMESPACE, CacheReader
from argosy.gitops.live.resource_tree import Node, Permitted, node_of, walk
from argosy.gitops.live.tracking import Tracking
from argosy.kube.names import ResourceKey
from argosy.kube.objects import key_of
from argosy.languages.globs import matches

_EVERYWHERE: Final = (
    ResourceKey("", "ServiceAccount", "", "default"),
    ResourceKey("", "ConfigMap", "", "kube-root-ca.crt"),
    ResourceKey("", "ConfigMap", "", BUDGETS_CONFIG_MAP),
)
_KUBERNETES: Final = ResourceKey("", "Service", "default", "kubernetes")


def orphans(
    cache: CacheReader,
    rule: OrphanRule | None,
    namespace: str,
    managed: Container[ResourceKey],
    tracking: Tracking,
    *,
    exists: Callable[[str], bool] = lambda instance: True,
    permitted: Permitted = lambda key: True,
) -> list[Node]:
    """Return the orphans and their descendants, sorted by key; none if the project has no orphan rule.

    `application_exists` takes an instance name: objects tracked by a deleted Application are orphans, too.
    """
    if rule is None or not namespace:
        return []
    tops = {
        key: live
        for live in cache.find(BY_NAMESPACE, namespace)
        if (key := key_of(live)) not in managed
        and not _is_ignored(key, rule)
        and next(living_parents(cache, live), None) is None
    }

    def is_nobodys(key: ResourceKey) -> bool:
        live = cache.get(key)
        if live is None or not permitted(key):
            return False
        return not any(exists(concern.instance) for concern in concerned(cache, live, tracking))

    return sorted((node_of(cache, live) for live in walk(cache, tops, is_nobodys)), key=lambda node: node.key)


def warning(found: list[Node], rule: OrphanRule | None) -> str:
    """argo: the message of OrphanedResourceWarning; empty if there is nothing to warn about."""
    return f"Application has {len(found)} orphaned resources" if found and rule is not None and rule.warns else ""


def _is_ignored(key: ResourceKey, rule: OrphanRule) -> bool:
    """argo: objects that every namespace has, and those that the project ignores; here also argosy's own ConfigMap."""
    if key == _KUBERNETES or key._replace(namespace="") in _EVERYWHERE:
        return True
    return any(_fits(pattern, key) for pattern in rule.ignored)


def _fits(pattern: KindPattern, key: ResourceKey) -> bool:
    """argo: a missing kind or name matches everything; a missing group is the core group."""
    return (
        (not pattern.kind or matches(pattern.kind, key.kind))
        and matches(pattern.group, key.group)
        and (not pattern.name or matches(pattern.name, key.name))
    )
