"""What lives in an application's namespace and is nobody's.

In: a cache, what a project says of orphans, what is managed. Out: nodes, and the warning. Never: one that an
application tracks.
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
    """In the order of their keys, with all that is below them. `exists`: is there an application of that name?

    A project without a rule has no orphans.
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
    """argo: the words of its OrphanedResourceWarning; empty where there is nothing to warn of."""
    return f"Application has {len(found)} orphaned resources" if found and rule is not None and rule.warns else ""


def _is_ignored(key: ResourceKey, rule: OrphanRule) -> bool:
    """argo: what every namespace has by itself, and what the project names; here also what controllers write."""
    if key == _KUBERNETES or key._replace(namespace="") in _EVERYWHERE:
        return True
    return any(_fits(pattern, key) for pattern in rule.ignored)


def _fits(pattern: KindPattern, key: ResourceKey) -> bool:
    """argo: a kind or name that is not given fits all; a group that is not given is the core one."""
    return (
        (not pattern.kind or matches(pattern.kind, key.kind))
        and matches(pattern.group, key.group)
        and (not pattern.name or matches(pattern.name, key.name))
    )
