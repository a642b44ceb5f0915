"""What a request is about: found in what the lookout knows, and named as policies name it.

In: a request. Out: Found, or None where there is nothing. Never: decides; asks the cluster; tells absence from refusal.
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
    """Of the API: `{name}` and `?appNamespace=`; of pages: `{ns}/{name}`. The subject is an Application."""
    name = asked.values["name"]
    namespace = asked.values.get("ns") or asked.query.text("appNamespace") or asked.site.desk.control
    manifest = application_manifest(asked, namespace, name)
    if claimed := asked.query.text("project"):
        return _claimed(asked, claimed, namespace, name, manifest)
    return None if manifest is None else found_application(asked, manifest)


async def logged_application(asked: Asked) -> Found | None:
    """argo: what it prints is for who may see the Application itself, too."""
    found = await application(asked)
    return found if found is not None and asked.may("applications", "get", found.thing) else None


def application_manifest(asked: Asked, namespace: str, name: str) -> Manifest | None:
    """argo: one in a namespace that its project does not take them from is as if it were not there."""
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
    """It is read once it is known that it may be seen: what is large must not take longer to be refused."""
    metadata = manifest["metadata"]
    thing = application_name(asked, project_of(manifest), metadata["namespace"], metadata["name"])
    return Found(None, thing, read=lambda: _whole(manifest))


def readable(manifest: Manifest) -> Application | None:
    """None: what is written there is no Application, which its own page tells."""
    try:
        return _whole(manifest)
    except UserError:
        return None


def _whole(manifest: Manifest) -> Application:
    return read_application(manifest, f"Application {manifest['metadata']['name']}")


def application_name(asked: Asked, project: str, namespace: str, name: str) -> str:
    return policy_name(asked.site, project, namespace, name)


def policy_name(site: Site, project: str, namespace: str, name: str) -> str:
    """argo: the namespace is part of it where it is not that of the installation."""
    return f"{project}/{name}" if namespace == site.desk.control else f"{project}/{namespace}/{name}"


def project_of(manifest: Manifest) -> str:
    spec = manifest.get("spec")
    project = spec.get("project") if isinstance(spec, dict) else ""
    return project if isinstance(project, str) and project else "default"


def _claimed(asked: Asked, project: str, namespace: str, name: str, manifest: Manifest | None) -> Found:
    """argo: who may see it in the project that they name is told that it is not there."""
    if not asked.may("applications", "get", application_name(asked, project, namespace, name)):
        raise Refused
    if manifest is None or project_of(manifest) != project:
        # `repr` of what was asked for only: nothing of what is there
        raise Absent(f"applications.argoproj.io {name!r} not found")
    return found_application(asked, manifest)
