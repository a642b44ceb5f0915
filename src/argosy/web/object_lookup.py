"""Finds the Application that a request is about, in the cluster view, and its RBAC object name.

In: a request. Out: ResolvedObject, or None if it does not exist. Never: authorizes; reads from the cluster; lets a
caller tell "not found" from "forbidden".
"""

from __future__ import annotations

from typing import Final

from argosy.errors import UserError
from argosy.gitops.application import APPLICATION, Application, read_application
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest
from argosy.languages.globs import matches
from argosy.web.request import Absent, Asked, Refused
from argosy.web.route import Found
from argosy.web.site import Site

PROJECT: Final = GroupKind("argoproj.io", "AppProject")


async def application(asked: Asked) -> Found | None:
    """Resolve `{name}` and `?appNamespace=` (API) or `{ns}/{name}` (pages) to an Application."""
    name = asked.values["name"]
    namespace = asked.values.get("ns") or asked.query.text("appNamespace") or asked.site.desk.control
    manifest = application_manifest(asked, namespace, name)
    if claimed := asked.query.text("project"):
        return _claimed(asked, claimed, namespace, name, manifest)
    return None if manifest is None else found_application(asked, manifest)


async def logged_application(asked: Asked) -> Found | None:
    """argo: logs require `get` on the Application in addition to `get` on its logs."""
    found = await application(asked)
    return found if found is not None and asked.may("applications", "get", found.thing) else None


def application_manifest(asked: Asked, namespace: str, name: str) -> Manifest | None:
    """argo: an Application outside its project's sourceNamespaces is treated as not found."""
    found: Manifest | None = asked.site.lookout.cache.get(ResourceKey(*APPLICATION, namespace, name))
    return found if found is not None and is_at_home(asked, found) else None


def is_at_home(asked: Asked, manifest: Manifest) -> bool:
    namespace, control = manifest["metadata"]["namespace"], asked.site.desk.control
    if namespace == control:
        return True
    owner = asked.site.lookout.cache.get(ResourceKey(*PROJECT, control, project_of(manifest))) or {}
    spec = owner.get("spec")
    taken = spec.get("sourceNamespaces") if isinstance(spec, dict) else None
    return isinstance(taken, list) and any(matches(str(each), namespace) for each in taken)


def found_application(asked: Asked, manifest: Manifest) -> Found:
    """Parse the Application only after authorization, so that the time of a refusal does not reveal its size."""
    metadata = manifest["metadata"]
    thing = application_name(asked, project_of(manifest), metadata["namespace"], metadata["name"])
    return Found(None, thing, read=lambda: _whole(manifest))


def readable(manifest: Manifest) -> Application | None:
    """Parse an Application; None if it is invalid (its own page shows the error)."""
    try:
        return _whole(manifest)
    except UserError:
        return None


def _whole(manifest: Manifest) -> Application:
    return read_application(manifest, f"Application {manifest['metadata']['name']}")


def application_name(asked: Asked, project: str, namespace: str, name: str) -> str:
    return policy_name(asked.site, project, namespace, name)


def policy_name(site: Site, project: str, namespace: str, name: str) -> str:
    """argo: RBAC object name; includes the namespace if it is not the control plane's."""
    return f"{project}/{name}" if namespace == site.desk.control else f"{project}/{namespace}/{name}"


def project_of(manifest: Manifest) -> str:
    spec = manifest.get("spec")
    project = spec.get("project") if isinstance(spec, dict) else ""
    return project if isinstance(project, str) and project else "default"


def _claimed(asked: Asked, project: str, namespace: str, name: str, manifest: Manifest | None) -> Found:
    """argo: only a caller who may see the Application in the project given by `?project=` gets "not found"."""
    if not asked.may("applications", "get", application_name(asked, project, namespace, name)):
        raise Refused
    if manifest is None or project_of(manifest) != project:
        # the message quotes the request only, nothing of the stored object
        raise Absent(f"applications.argoproj.io {name!r} not found")
    return found_application(asked, manifest)
