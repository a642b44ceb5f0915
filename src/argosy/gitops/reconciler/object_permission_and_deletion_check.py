"""Collects the facts for policy decisions: which objects an Application may manage and delete.

In: an Application, its project, the settings. Out: a check of keys; the reason why an object must stay. Never: decides
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from argosy.errors import UserError
from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import Project
from argosy.gitops.live import build_instance_name, is_self_referenced, read_instance_name
from argosy.gitops.policy.projects import find_permission_error, permits_destination
from argosy.gitops.policy.prune_policy import PruneCandidate, find_foreign_owner, find_reason_to_keep
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.sync.sync_options import SyncOptions
from argosy.kube.client import Catalog
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey

IsAllowed = Callable[[ResourceKey], bool]


def build_permission_check(
    app: Application, project: Project, settings: ReconcilerSettings, kinds: Catalog
) -> IsAllowed:
    """Return a check for keys. It caches by kind and namespace, because most keys differ only in their names."""
    app = settings.clusters.resolve_destination(app)  # rules may name a cluster or its address
    cached: dict[tuple[str, ...], bool] = {}
    has_name_rules = any(pattern.name for pattern in (*project.cluster_allowed, *project.cluster_denied))

    def is_allowed(key: ResourceKey) -> bool:
        cache_key = key[:3]
        if (is_permitted := cached.get(cache_key)) is not None:
            return is_permitted
        is_namespaced = has_namespace(key, kinds)
        is_permitted = not find_permission_error(project, key, is_namespaced=is_namespaced, destination=app.destination)
        is_permitted = is_permitted and not _find_scope_problem(key, app, settings, kinds)
        # settings are cached even if their kind is excluded
        is_permitted = is_permitted and not settings.exclusions.excludes(key.group_kind)
        if is_namespaced or not has_name_rules:
            cached[cache_key] = is_permitted
        return is_permitted

    return is_allowed


def check_keys_in_scope(
    keys: Iterable[ResourceKey], app: Application, settings: ReconcilerSettings, kinds: Catalog
) -> None:
    """argo: a desired object outside the namespaces that a cluster Secret permits is an error."""
    cluster = settings.clusters.find(app.destination)
    for key in keys if cluster is not None and cluster.namespaces else ():
        if problem := _find_scope_problem(key, app, settings, kinds):
            raise UserError(problem)


def find_deletion_refusal(
    live: Manifest,
    app: Application,
    project: Project,
    settings: ReconcilerSettings,
    kinds: Catalog,
    options: SyncOptions | None,
) -> str:
    """Return why the object must not be deleted; `options` is None if the Application itself is deleted."""
    key = key_of(live)
    is_namespaced = has_namespace(key, kinds)
    object_destination = app.destination._replace(namespace=key.namespace) if is_namespaced else app.destination
    is_prune_disabled = options is not None and options.with_manifest_options(live).is_off(
        "Prune"
    )  # argo: the object's own option wins
    owners = [reference for reference in live["metadata"].get("ownerReferences") or () if isinstance(reference, dict)]
    candidate = PruneCandidate(
        owner=read_instance_name(live, settings.tracking),
        is_self_referenced=is_self_referenced(live, settings.tracking),
        is_desired_state_complete=True,  # a render is complete or fails
        is_kind_served=options is None
        or key.group_kind in kinds,  # objects of a deleted Application need not be served
        is_in_destination=permits_destination(project, object_destination)
        and not _find_scope_problem(key, app, settings, kinds),
        refusal=find_permission_error(project, key, is_namespaced=is_namespaced, destination=app.destination),
        is_excluded=settings.exclusions.excludes(key.group_kind),
        owner_reference=f"{owners[0].get('kind')}/{owners[0].get('name')}" if owners else "",
        options=frozenset({"Prune=false"} if is_prune_disabled else ()),
    )
    return find_reason_to_keep(candidate, build_instance_name(app, settings.tracking))


def find_tracking_problem(live: Manifest, app: Application, settings: ReconcilerSettings) -> str:
    """Return why the object does not belong to the Application; empty if it does."""
    owner = read_instance_name(live, settings.tracking)
    instance = build_instance_name(app, settings.tracking)
    return find_foreign_owner(owner, instance, is_self_referenced=is_self_referenced(live, settings.tracking))


def has_namespace(key: ResourceKey, kinds: Catalog) -> bool:
    """True if the kind is namespaced; a kind that is not served yet is taken as it is written."""
    info = kinds.get(key.group_kind)
    return info.namespaced if info else bool(key.namespace)


def _find_scope_problem(key: ResourceKey, app: Application, settings: ReconcilerSettings, kinds: Catalog) -> str:
    cluster = settings.clusters.find(app.destination)
    if cluster is None or not cluster.namespaces:
        return ""
    return cluster.find_scope_error(key, is_namespaced=has_namespace(key, kinds))
