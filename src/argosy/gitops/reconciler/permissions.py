"""What an application may reach and what it may delete: facts, put to those who decide.

In: an application, its project, the rules. Out: yes or no for a key; why something must stay. Never: decides itself.
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
    """Asked of many keys, most of which differ in their names alone."""
    app = rules.clusters.placed(app)  # rules may be about a cluster's name or its address
    known: dict[tuple[str, ...], bool] = {}
    named = any(each.name for each in (*project.cluster_allowed, *project.cluster_denied))

    def allowed(key: ResourceKey) -> bool:
        place = key[:3]
        if (found := known.get(place)) is not None:
            return found
        is_namespaced = has_namespace(key, kinds)
        found = not permits(project, key, is_namespaced=is_namespaced, destination=app.destination)
        found = found and not _stranger(key, app, rules, kinds)
        found = found and not rules.exclusions.excludes(key.group_kind)  # settings are cached, though nobody looks
        if is_namespaced or not named:
            known[place] = found
        return found

    return allowed


def refuse_strangers(keys: Iterable[ResourceKey], app: Application, rules: Rules, kinds: Catalog) -> None:
    """argo: to ask for something where a cluster's Secret lets nobody look is an error, not something to create."""
    place = rules.clusters.find(app.destination)
    for key in keys if place is not None and place.namespaces else ():
        if said := _stranger(key, app, rules, kinds):
            raise UserError(said)


def why_not_delete(
    live: Manifest, app: Application, project: Project, rules: Rules, kinds: Catalog, options: SyncOptions | None
) -> str:
    """`options` are none where the application itself goes."""
    key = key_of(live)
    is_namespaced = has_namespace(key, kinds)
    place = app.destination._replace(namespace=key.namespace) if is_namespaced else app.destination
    keeps = options is not None and options.with_own(live).is_off("Prune")  # argo: its own option wins
    owners = [each for each in live["metadata"].get("ownerReferences") or () if isinstance(each, dict)]
    candidate = Candidate(
        owner=owner(live, rules.tracking),
        is_self_referenced=is_self_referenced(live, rules.tracking),
        is_rendered_whole=True,  # a render gives all, or an error
        is_served=options is None or key.group_kind in kinds,  # whose application goes is asked for by nobody
        is_in_destination=permits_destination(project, place) and not _stranger(key, app, rules, kinds),
        refusal=permits(project, key, is_namespaced=is_namespaced, destination=app.destination),
        is_excluded=rules.exclusions.excludes(key.group_kind),
        controller=f"{owners[0].get('kind')}/{owners[0].get('name')}" if owners else "",
        options=frozenset({"Prune=false"} if keeps else ()),
    )
    return may_delete(candidate, instance_name(app, rules.tracking))


def has_namespace(key: ResourceKey, kinds: Catalog) -> bool:
    """By its kind; one that nobody serves yet is as it is written."""
    info = kinds.get(key.group_kind)
    return info.namespaced if info else bool(key.namespace)


def _stranger(key: ResourceKey, app: Application, rules: Rules, kinds: Catalog) -> str:
    place = rules.clusters.find(app.destination)
    if place is None or not place.namespaces:
        return ""
    return place.stranger(key, is_namespaced=has_namespace(key, kinds))
