"""Lists, creates, changes and deletes AppProjects.

In: an ApplicationService. Out: AppProjects. Never: leaves out the default project, even if it does not exist; deletes a
project that Applications use.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

from argosy.errors import Conflict, PolicyError, UserError
from argosy.gitops.application.project_spec import DEFAULT_PROJECT_MANIFEST, read_project
from argosy.gitops.application_client.application_service import MAX_WRITE_ATTEMPTS, ApplicationService
from argosy.gitops.application_client.project_entry_checks import check_entries
from argosy.gitops.application_client.role_token_lists import combine_role_tokens
from argosy.kube.objects import Manifest
from argosy.kube.objects.json_equality import is_equal_json
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APP_PROJECT, ARGOPROJ_API_VERSION

DEFAULT_PROJECT = "default"
TYPE_META = {"apiVersion": ARGOPROJ_API_VERSION, "kind": "AppProject"}
ChangeSpec = Callable[[dict[str, Any]], dict[str, Any]]


async def projects_of(service: ApplicationService) -> list[dict[str, Any]]:
    projects = [
        dict(project) for project in (await service.cluster.list(APP_PROJECT, namespace=service.namespace)).items
    ]
    if not any(project["metadata"]["name"] == DEFAULT_PROJECT for project in projects):
        projects.append({**TYPE_META, **DEFAULT_PROJECT_MANIFEST})
    return sorted(projects, key=lambda project: str(project["metadata"]["name"]))


async def load_project(service: ApplicationService, name: str) -> dict[str, Any]:
    projects = await projects_of(service)
    for project in projects:
        if project["metadata"]["name"] == name:
            return project
    close_matches = difflib.get_close_matches(name, [project["metadata"]["name"] for project in projects], n=1)
    hint = f"did you mean {close_matches[0]}?" if close_matches else "list them: argosy proj list"
    raise UserError(f"project {name!r} not found in {service.namespace}; {hint}")


async def create_project(service: ApplicationService, manifest: Manifest, *, upsert: bool) -> str:
    """Return `created`, `updated` or `unchanged`."""
    name = manifest["metadata"]["name"]
    check_entries(read_project(manifest, f"AppProject {name}"))
    before = await service.cluster.get(_build_project_key(service, name))
    if before is None:
        await service.cluster.create(manifest)
        return "created"
    if is_equal_json(before.get("spec"), manifest.get("spec")):
        return "unchanged"
    if not upsert:
        raise UserError(
            f"existing project spec is different: {name} in {service.namespace}; overwrite it with --upsert"
        )
    await service.cluster.replace(combine_role_tokens({**before, "spec": manifest.get("spec") or {}}))
    return "updated"


async def change_project(service: ApplicationService, name: str, change_spec: ChangeSpec) -> bool:
    """Change the spec and retry on conflict; return True if anything changed."""
    for _ in range(MAX_WRITE_ATTEMPTS):
        before = await load_project(service, name)
        spec = change_spec(dict(before.get("spec") or {}))
        after = {**before, "spec": spec}
        check_entries(read_project(after, f"AppProject {name}"))
        if spec == before.get("spec"):
            return False
        if "resourceVersion" not in before["metadata"]:  # the implicit default project
            await service.cluster.create({**after, "metadata": {"name": name, "namespace": service.namespace}})
            return True
        try:
            await service.cluster.replace(combine_role_tokens(after))
        except Conflict:
            continue
        return True
    raise UserError(f"{name}: gave up after {MAX_WRITE_ATTEMPTS} write conflicts; try again")


async def delete_project(service: ApplicationService, name: str) -> None:
    """argo: the default project and projects in use cannot be deleted."""
    if name == DEFAULT_PROJECT:
        raise PolicyError("the default project cannot be deleted: Applications without a project use it")
    project = await load_project(service, name)
    users = [app.name for app in await service.list_applications(all_namespaces=True) if app.project == name]
    if users:
        message = f"project is referenced by {len(users)} applications: {', '.join(users[:3])}"
        raise PolicyError(f"{name}: {message}; move or delete them first")
    try:
        await service.cluster.delete(_build_project_key(service, name), uid=project["metadata"].get("uid"))
    except Conflict as error:
        raise UserError(f"project {name} was deleted and recreated in the meantime; the new one is kept") from error


def _build_project_key(service: ApplicationService, name: str) -> ResourceKey:
    return ResourceKey(*APP_PROJECT, service.namespace, name)


def build_project(name: str, namespace: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {**TYPE_META, "metadata": {"name": name, "namespace": namespace}, "spec": dict(spec)}
