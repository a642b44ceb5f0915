"""Collects the facts for policy decisions: which objects an Application may manage and delete.

In: an Application, its project, the settings. Out: a check of keys; the reason why an object must stay. Never: decides
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from argosy.errors import UserError
from argosy.gitops.application import Application
from argosy.gitops.application.project import Project
from argosy.gitops.live import instance_name, is_self_referenced, owner
from argosy.gitops.policy.projects import permits, permits_destination
from argosy.gitops.policy.prune_policy import Candidate, may_delete
from argosy.gitops.reconciler.settings import Rules
from argosy.gitops.sync.options import SyncOptions
from argosy.kube.client import Catalog
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

Allowed = Callable[[ResourceKey], bool]


def permission(app: Application, project: Project, rules: Rules, kinds: Catalog) -> Allowed:
    """Return a check for keys. It caches by kind and namespace, because most keys differ only in their names."""
    app = rules.clusters.placed(app)  # rules may name a cluster or its address
    known: dict[tuple[str, ...], bool] = {}
    named = any(each.name for each in (*project.cluster_allowed, *project.cluster_denied))

    def allowed(key: ResourceKey) -> bool:
        place = key[:3]
        if (found := known.get(place)) is not None:
            return found
        is_namespaced = has_namespace(key, kinds)
        found = not permits(project, key, is_namespaced=is_namespaced, destination=app.destination)
        found = found and not _stranger(key, app, rules, kinds)
        # settings are cached even if their kind is excluded
        found = found and not rules.exclusions.excludes(key.group_kind)
        if is_namespaced or not named:
            known[place] = found
        return found

    return allowed


def refuse_strangers(keys: Iterable[ResourceKey], app: Application, rules: Rules, kinds: Catalog) -> None:
    """argo: a desired object outside the namespaces that a cluster Secret permits is an error."""
    place = rules.clusters.find(app.destination)
    for key in keys if place is not None and place.namespaces else ():
        if said := _stranger(key, app, rules, kinds):
            raise UserError(said)


def why_not_delete(
    live: Manifest, app: Application, project: Project, rules: Rules, kinds: Catalog, options: SyncOptions | None
) -> str:
    """Return why the object must not be deleted; `options` is None if the Application itself is deleted."""
    key = key_of(live)
    is_namespaced = has_namespace(key, kinds)
    place = app.destination._replace(namespace=key.namespace) if is_namespaced else app.destination
    keeps = options is not None and options.with_own(live).is_off("Prune")  # argo: the object's own option wins
    owners = [each for each in live["metadata"].get("ownerReferences") or () if isinstance(each, dict)]
    candidate = Candidate(
        owner=owner(live, rules.tracking),
        is_self_referenced=is_self_referenced(live, rules.tracking),
        is_rendered_whole=True,  # a render is complete or fails
        is_served=options is None or key.group_kind in kinds,  # objects of a deleted Application need not be served
        is_in_destination=permits_destination(project, place) and not _stranger(key, app, rules, kinds),
        refusal=permits(project, key, is_namespaced=is_namespaced, destination=app.destination),
        is_excluded=rules.exclusions.excludes(key.group_kind),
        controller=f"{owners[0].get('kind')}/{owners[0].get('name')}" if owners else "",
        options=frozenset({"Prune=false"} if keeps else ()),
    )
    return may_delete(candidate, instance_name(app, rules.tracking))


def has_namespace(key: ResourceKey, kinds: Catalog) -> bool:
    """True if the kind is namespaced; a kind that is not served yet is taken as it is written."""
    info = kinds.get(key.group_kind)
    return info.namespaced if info else bool(key.namespace)


def _stranger(key: ResourceKey, app: Application, rules: Rules, kinds: Catalog) -> str:
    place = rules.clusters.find(app.destination)
    if place is None or not place.namespaces:
        return ""
    return place.stranger(key, is_namespaced=has_namespace(key, kinds))
