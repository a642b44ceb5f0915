"""Objects that Applications own, visible to everyone who may see the owning Application.

In: a request. Out: ResolvedObject, and lists without objects that the caller may not see. Never: shows an object
without an Application, except to callers who may see all Applications.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from argosy.gitops.application import APPLICATION, read_application, read_destination
from argosy.gitops.cluster_view.owning_application import owner_of
from argosy.gitops.live.inference_service import INFERENCE_SERVICE
from argosy.gitops.reconciler.impersonation import user_to_impersonate
from argosy.gitops.status.wire_format import mapping
from argosy.kube.client import Cluster, User
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest
from argosy.web.middleware.application_masks import masks_of
from argosy.web.object_lookup import application_name, is_at_home, project_of
from argosy.web.request import Asked
from argosy.web.route import Found

JOB: Final = GroupKind("mlops.mlops.dev", "NotebookValidationJob")
EVERYTHING: Final = "*/*"  # matched by a policy for */*, but not by a policy for one project
TRY: Final = "action/serving.kserve.io/InferenceService/try"
RESTART: Final = "action/serving.kserve.io/InferenceService/restart"
RUN: Final = "action/mlops.mlops.dev/NotebookValidationJob/run"


async def model(asked: Asked) -> Found | None:
    return _found(asked, INFERENCE_SERVICE)


async def notebook(asked: Asked) -> Found | None:
    return _found(asked, JOB)


async def everything(asked: Asked) -> Found | None:
    """Resolve a route that is about the whole installation."""
    return Found(None, EVERYTHING)


def _found(asked: Asked, kind: GroupKind) -> Found | None:
    key = ResourceKey(*kind, asked.values["ns"], asked.values["name"])
    manifest = asked.site.lookout.cache.get(key)
    return None if manifest is None else Found(manifest, thing_of(asked, manifest))


def thing_of(asked: Asked, manifest: Manifest) -> str:
    """Return the RBAC object name of the owning Application."""
    app = application_of(asked, manifest)
    if app is None:
        return EVERYTHING
    metadata = app["metadata"]
    return application_name(asked, project_of(app), str(metadata["namespace"]), str(metadata["name"]))


def application_of(asked: Asked, manifest: Manifest) -> Manifest | None:
    lookout = asked.site.lookout
    app = owner_of(manifest, lookout.cache, lookout.rules.tracking, asked.site.desk.control)
    return app if app is not None and is_at_home(asked, app) else None


def cluster_to_change(asked: Asked, manifest: Manifest) -> Cluster:
    """Return a cluster client with the permissions of the syncs of the object's Application. Raises PolicyError."""
    cluster: Cluster = asked.site.desk.cluster
    app, reader = application_of(asked, manifest), asked.site.lookout.reader
    if app is None or not reader.rules.impersonation.is_enabled:
        return cluster
    owner = read_application(app, f"Application {app['metadata']['name']}")
    user = user_to_impersonate(owner, reader.project(owner), reader.rules)
    return cluster.acting_as(User(user)) if user else cluster


def application_path(asked: Asked, manifest: Manifest) -> str:
    app = application_of(asked, manifest)
    return f"/apps/{app['metadata']['namespace']}/{app['metadata']['name']}" if app else ""


def visible(asked: Asked, kind: GroupKind) -> list[Manifest]:
    """List visible objects of a kind by namespace and name, with Secret values of their Applications masked."""
    seen = (each for each in asked.site.lookout.cache.list(kind) if _may_see(asked, each))
    found = [masks_of(asked).object(each, application_of(asked, each)) for each in seen]
    return sorted(found, key=lambda each: (str(each["metadata"].get("namespace")), str(each["metadata"]["name"])))


def all_applications(asked: Asked) -> list[Manifest]:
    return [each for each in asked.site.lookout.cache.list(GroupKind(*APPLICATION)) if is_at_home(asked, each)]


def visible_applications(asked: Asked) -> list[Manifest]:
    found = []
    for app in all_applications(asked):
        metadata = app["metadata"]
        thing = application_name(asked, project_of(app), str(metadata["namespace"]), str(metadata["name"]))
        if asked.may("applications", "get", thing):
            found.append(masks_of(asked).application(app))
    return found


def delivered_to(asked: Asked) -> Counter[str]:
    """Count the visible Applications per destination server URL."""
    if "applications" not in asked.kept:
        known = asked.site.lookout.rules.clusters
        counted: Counter[str] = Counter()
        for manifest in visible_applications(asked):
            given = mapping(mapping(manifest.get("spec")).get("destination"))
            found = known.find(read_destination(str(given.get("server") or ""), str(given.get("name") or "")))
            counted[found.server if found else ""] += 1
        asked.kept["applications"] = counted
    found_counts: Counter[str] = asked.kept["applications"]
    return found_counts


def sees_everything(asked: Asked, visible_count: int) -> bool:
    """True if no Application is hidden. A deny rule may hide some, and unowned objects may belong to those."""
    is_allowed = asked.may("applications", "get", EVERYTHING)
    return is_allowed and visible_count == len(all_applications(asked))


def _may_see(asked: Asked, manifest: Manifest) -> bool:
    return asked.may("applications", "get", thing_of(asked, manifest))
