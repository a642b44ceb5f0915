"""Checks the effect of an AppProject update: new permissions, and Applications that would break.

In: a project before and after, Applications. Out: servers and repositories to authorize. Never: writes; asks a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.application import Application
from argosy.gitops.application.project import Project, read_project
from argosy.gitops.application_client.project_specs import entries
from argosy.gitops.policy.projects import permits_destination, permits_source

KINDS: Final = (
    "clusterResourceWhitelist",
    "clusterResourceBlacklist",
    "namespaceResourceWhitelist",
    "namespaceResourceBlacklist",
)


def servers(spec: Mapping[str, Any]) -> list[str]:
    found = [each for each in entries(spec, "destinations") if isinstance(each, dict)]
    return list(dict.fromkeys(str(each.get("server") or each.get("name") or "*") for each in found))


def clusters_given(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """argo: list new destinations; all of them if the permitted kinds changed."""
    if any((before.get(name) or []) != (after.get(name) or []) for name in KINDS):
        return servers(after)
    return [each for each in servers(after) if each not in servers(before)]


def repositories_given(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """argo: list new source repositories."""
    had = entries(before, "sourceRepos")
    return [str(each) for each in entries(after, "sourceRepos") if each not in had]


def check_applications(before: Mapping[str, Any], after: Mapping[str, Any], apps: Iterable[Application]) -> None:
    """argo: refuse an update that removes a source or destination that an Application uses."""
    old, new = read_project(before), read_project(after)
    mine = [app for app in apps if app.project == new.name]
    sources = sum(_loses_source(app, old, new) for app in mine)
    if sources:
        told = f"as a result of project update {sources} applications source became invalid"
        raise UserError(f"{told}; change them first")
    places = sum(_loses_place(app, old, new) for app in mine)
    if places:
        told = f"as a result of project update {places} applications destination became invalid"
        raise UserError(f"{told}; change them first")


def _loses_source(app: Application, old: Project, new: Project) -> bool:
    urls = [source.repo_url for source in app.sources]
    return any(permits_source(old, url) and not permits_source(new, url) for url in urls)


def _loses_place(app: Application, old: Project, new: Project) -> bool:
    place = app.destination.known
    return permits_destination(old, place) and not permits_destination(new, place)


def check_roles(name: str, spec: Mapping[str, Any]) -> None:
    """argo: policies of a role concern its own project only; role names are unique and plain."""
    seen: set[str] = set()
    for role in read_project({"metadata": {"name": name}, "spec": spec}, f"AppProject {name}").roles:
        if not role.name or role.name in seen or not all(char.isalnum() or char in "-_." for char in role.name):
            raise UserError(f"role {role.name[:60]!r}: invalid or duplicate role name; use letters, digits and -_.")
        seen.add(role.name)
        for policy in role.policies:
            words = [word.strip() for word in policy.split(",")]
            is_own = len(words) == 6 and words[:2] == ["p", f"proj:{name}:{role.name}"]
            if not is_own or not words[4].startswith(f"{name}/") or words[5] not in ("allow", "deny"):
                form = f"p, proj:{name}:{role.name}, applications, get, {name}/*, allow"
                raise UserError(f"role {role.name}: {policy[:120]!r} is not a valid policy; expected: {form}")
