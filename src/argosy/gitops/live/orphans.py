"""Finds orphaned resources: objects in an Application's namespace that no Application tracks.

In: a cache, the orphan rule of the AppProject, the managed keys. Out: nodes, and Argo CD's warning. Never: returns an
object that an Application tracks.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

from argosy.gitops.application.project_spec import BUDGETS_CONFIG_MAP, KindPattern, OrphanRule
from argosy.gitops.live.app_resources import find_affected_applications, list_parents
from argosy.gitops.live.cache_indexes import BY_NAMESPACE, CacheReader
from argosy.gitops.live.resource_tree import KeyFilter, ResourceNode, build_node, walk_tree
from argosy.gitops.live.tracking import TrackingSettings
from argosy.kube.objects import key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP, SERVICE
from argosy.languages.globs import matches_glob

_DEFAULT_OBJECTS: Final = (
    ResourceKey("", "ServiceAccount", "", "default"),
    ResourceKey(*CONFIG_MAP, "", "kube-root-ca.crt"),
    ResourceKey(*CONFIG_MAP, "", BUDGETS_CONFIG_MAP),
)
_KUBERNETES_SERVICE: Final = ResourceKey(*SERVICE, "default", "kubernetes")


def find_orphans(
    cache: CacheReader,
    rule: OrphanRule | None,
    namespace: str,
    managed: Container[ResourceKey],
    tracking: TrackingSettings,
    *,
    application_exists: Callable[[str], bool] = lambda instance: True,
    is_permitted: KeyFilter = lambda key: True,
) -> list[ResourceNode]:
    """Return the orphans and their descendants, sorted by key; none if the project has no orphan rule.

    `application_exists` takes an instance name: objects tracked by a deleted Application are orphans, too.
    """
    if rule is None or not namespace:
        return []
    roots = {
        key: live
        for live in cache.find(BY_NAMESPACE, namespace)
        if (key := key_of(live)) not in managed
        and not _is_ignored(key, rule)
        and next(list_parents(cache, live), None) is None
    }

    def is_orphan(key: ResourceKey) -> bool:
        live = cache.get(key)
        if live is None or not is_permitted(key):
            return False
        return not any(
            application_exists(application.instance)
            for application in find_affected_applications(cache, live, tracking)
        )

    return sorted((build_node(cache, live) for live in walk_tree(cache, roots, is_orphan)), key=lambda node: node.key)


def orphan_warning(orphans: list[ResourceNode], rule: OrphanRule | None) -> str:
    """argo: the message of OrphanedResourceWarning; empty if there is nothing to warn about."""
    return f"Application has {len(orphans)} orphaned resources" if orphans and rule is not None and rule.warns else ""


def _is_ignored(key: ResourceKey, rule: OrphanRule) -> bool:
    """argo: objects that every namespace has, and those that the project ignores; here also argosy's own ConfigMap."""
    if key == _KUBERNETES_SERVICE or key._replace(namespace="") in _DEFAULT_OBJECTS:
        return True
    return any(_matches_pattern(pattern, key) for pattern in rule.ignored)


def _matches_pattern(pattern: KindPattern, key: ResourceKey) -> bool:
    """argo: a missing kind or name matches everything; a missing group is the core group."""
    return (
        (not pattern.kind or matches_glob(pattern.kind, key.kind))
        and matches_glob(pattern.group, key.group)
        and (not pattern.name or matches_glob(pattern.name, key.name))
    )
