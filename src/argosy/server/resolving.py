"""What a request is about: found in what the lookout knows, and named as policies name it.

In: a request. Out: Found, or None where there is nothing. Never: decides; asks the cluster; tells absence from refusal.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.language.globs import matches
from argosy.model.application import APPLICATION, Application, read_application
from argosy.model.errors import UserError
from argosy.model.manifest import Manifest
from argosy.model.names import GroupKind, ResourceKey
from argosy.server.asked import Absent, Asked, Refused
from argosy.server.routes import Found
from argosy.server.site import Site

PROJECT: Final = GroupKind("argoproj.io", "AppProject")
SECRET: Final = GroupKind("", "Secret")
SECRET_TYPE: Final = "argocd.argoproj.io/secret-type"  # noqa: S105 - the name of a label
IN_CLUSTER: Final = "https://kubernetes.default.svc"


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


async def project(asked: Asked) -> Found | None:
    """By `{name}` or `{project}`. The subject is the AppProject's manifest."""
    name = asked.values.get("project") or asked.values["name"]
    found = asked.site.lookout.cache.get(ResourceKey(*PROJECT, asked.site.desk.control, name))
    return None if found is None else Found(found, name)


async def repository(asked: Asked) -> Found | None:
    """By the address in `{repo}`. The subject is the Secret that declares it. argo: `<project>/<url>`, or the url."""
    for secret in _secrets(asked, "repository"):
        if decoded(secret, "url") == asked.values["repo"]:
            owner = decoded(secret, "project")
            wanted = asked.query.text("appProject")
            if wanted and owner != wanted:
                continue
            url = asked.values["repo"]
            return Found(secret, f"{owner}/{url}" if owner else url)
    return None


async def cluster(asked: Asked) -> Found | None:
    """By the address in `{id}`, or by its name with `?id.type=name`. The subject is its Secret; None: this cluster."""
    given = asked.values["id"]
    field = "name" if asked.query.text("id.type") in ("name", "name_escaped") else "server"
    for secret in _secrets(asked, "cluster"):
        if decoded(secret, field) == given:
            owner, server = decoded(secret, "project"), decoded(secret, "server")
            return Found(secret, f"{owner}/{server}" if owner else server)
    if given == (IN_CLUSTER if field == "server" else "in-cluster"):
        return Found(None, IN_CLUSTER)
    return None


async def account(asked: Asked) -> Found | None:
    """By `{name}`. argo: an account may always see itself; what there is of it, Identities know."""
    return Found(asked.values["name"], asked.values["name"])


def _secrets(asked: Asked, kind: str) -> list[Manifest]:
    found: list[Manifest] = asked.site.lookout.cache.list(
        SECRET, namespace=asked.site.desk.control, labels={SECRET_TYPE: kind}
    )
    return found


def decoded(secret: Manifest, field: str) -> str:
    """A field of a Secret as text; empty where there is none, or it is no text."""
    import base64
    import binascii

    data: Any = secret.get("data") or {}
    try:
        return base64.b64decode(str(data.get(field) or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
