"""Lists, creates, changes and deletes AppProjects.

In: an ApplicationService. Out: AppProjects. Never: leaves out the default project, even if it does not exist; deletes a
project that Applications use.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from argosy.errors import Conflict, PolicyError, UserError
from argosy.gitops.application.project import read_project
from argosy.gitops.application_client.client import ATTEMPTS, Desk
from argosy.gitops.reconciler.settings_watch import EVERYTHING_ALLOWED, PROJECT
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

DEFAULT = "default"
HEAD = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject"}
Make = Callable[[dict[str, Any]], dict[str, Any]]


async def projects_of(desk: Desk) -> list[dict[str, Any]]:
    found = [dict(each) for each in (await desk.cluster.list(PROJECT, namespace=desk.namespace)).items]
    if not any(each["metadata"]["name"] == DEFAULT for each in found):
        found.append({**HEAD, **EVERYTHING_ALLOWED})
    return sorted(found, key=lambda each: str(each["metadata"]["name"]))


async def project_named(desk: Desk, name: str) -> dict[str, Any]:
    found = await projects_of(desk)
    for each in found:
        if each["metadata"]["name"] == name:
            return each
    near = difflib.get_close_matches(name, [each["metadata"]["name"] for each in found], n=1)
    hint = f"did you mean {near[0]}?" if near else "list them: argosy proj list"
    raise UserError(f"project {name!r} not found in {desk.namespace}; {hint}")


async def create_project(desk: Desk, manifest: Manifest, *, replaces: bool) -> str:
    """Return `created`, `updated` or `unchanged`."""
    name = manifest["metadata"]["name"]
    read_project(manifest, f"AppProject {name}")
    before = await desk.cluster.get(_key(desk, name))
    if before is None:
        await desk.cluster.create(manifest)
        return "created"
    if before.get("spec") == manifest.get("spec"):
        return "unchanged"
    if not replaces:
        raise UserError(f"existing project spec is different: {name} in {desk.namespace}; overwrite it with --upsert")
    await desk.cluster.replace({**before, "spec": manifest.get("spec") or {}})
    return "updated"


async def change_project(desk: Desk, name: str, make: Make) -> bool:
    """Change the spec and retry on conflict; return True if anything changed."""
    for _ in range(ATTEMPTS):
        before = await project_named(desk, name)
        spec = make(dict(before.get("spec") or {}))
        after = {**before, "spec": spec}
        read_project(after, f"AppProject {name}")
        if spec == before.get("spec"):
            return False
        if "resourceVersion" not in before["metadata"]:  # the implicit default project
            await desk.cluster.create({**after, "metadata": {"name": name, "namespace": desk.namespace}})
            return True
        try:
            await desk.cluster.replace(after)
        except Conflict:
            continue
        return True
    raise UserError(f"{name}: gave up after {ATTEMPTS} write conflicts; try again")


async def delete_project(desk: Desk, name: str) -> None:
    """argo: the default project and projects in use cannot be deleted."""
    if name == DEFAULT:
        raise PolicyError("the default project cannot be deleted: Applications without a project use it")
    project = await project_named(desk, name)
    users = [app.name for app in await desk.all(everywhere=True) if app.project == name]
    if users:
        told = f"project is referenced by {len(users)} applications: {', '.join(users[:3])}"
        raise PolicyError(f"{name}: {told}; move or delete them first")
    try:
        await desk.cluster.delete(_key(desk, name), uid=project["metadata"].get("uid"))
    except Conflict as error:
        raise UserError(f"project {name} was deleted and recreated in the meantime; the new one is kept") from error


def _key(desk: Desk, name: str) -> ResourceKey:
    return ResourceKey(*PROJECT, desk.namespace, name)


def new_project(name: str, namespace: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {**HEAD, "metadata": {"name": name, "namespace": namespace}, "spec": dict(spec)}
