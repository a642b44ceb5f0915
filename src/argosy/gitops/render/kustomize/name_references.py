"""Updates references to renamed resources. In: resources with their earlier ids. Out: references to final names.

Never: changes a reference to a resource that kept its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from argosy.gitops.render.kustomize.field_spec_config import Config
from argosy.gitops.render.kustomize.gvk import Gvk
from argosy.gitops.render.kustomize.reference_validation import check_forms
from argosy.gitops.render.kustomize.resource import Resource

_Index = dict[str, list[Resource]]


def fix_references(resources: list[Resource], config: Config) -> None:
    check_forms(resources, config)
    index = _by_old_name(resources)
    if not index:
        return
    past = {id.gvk for each in resources for id in each.history}
    targets = [
        (target, specs) for target, specs in config.name_references if any(gvk.is_selected_by(target) for gvk in past)
    ]
    by_kind: dict[Gvk, list[tuple[Gvk, str]]] = {}
    for resource in resources:
        gvk = resource.gvk
        paths = by_kind.get(gvk)
        if paths is None:
            paths = by_kind[gvk] = [
                (target, spec.path) for target, specs in targets for spec in specs if gvk.is_selected_by(spec.gvk)
            ]
        if not paths:
            continue
        referrer = _Referrer(resource, index)
        for target, path in paths:
            resource.visit(path, referrer.setter(target, path))


def _by_old_name(resources: list[Resource]) -> _Index:
    index: _Index = {}
    for resource in resources:
        for name in {id.name for id in resource.history}:
            index.setdefault(name, []).append(resource)
    return index


class _Referrer:
    def __init__(self, resource: Resource, index: _Index) -> None:
        self.resource = resource
        self.index = index
        id = resource.id
        self.sees_all = id.gvk.is_cluster_scoped
        self.place = id.place
        self.places = _places_of_subjects(resource)

    def setter(self, target: Gvk, path: str) -> Callable[[dict[str, Any], str], None]:
        def put(holder: dict[str, Any], name: str) -> None:
            value = holder[name]
            if type(value) is list:
                for at, each in enumerate(value):
                    if type(each) is dict:
                        self.follow_map(each, target, path)
                    elif type(each) is str:
                        value[at] = self.follow(each, target, path)
            elif type(value) is dict:
                self.follow_map(value, target, path)
            elif type(value) is str:
                holder[name] = self.follow(value, target, path)

        return put

    def follow(self, name: str, target: Gvk, path: str) -> str:
        candidates = self.index.get(name)
        if not candidates:
            return name
        found = self.choose(candidates, name, target, path)
        return found.name if found else name

    def follow_map(self, holder: dict[str, Any], target: Gvk, path: str) -> None:
        name = holder.get("name")
        if not isinstance(name, str) or not name:
            raise self.resource.fault(f"{self.resource.id}: {path} has no name: add it", *path.split("/"))
        candidates = self.index.get(name)
        if not candidates:
            return
        if "namespace" in holder:
            space = str(holder["namespace"] or "")
            first = [each for each in candidates if each.first_id.place == (space or "default")]
            candidates = first or [each for each in candidates if each.id.place == (space or "default")]
        found = self.choose(candidates, name, target, path, with_namespace=True)
        if found is None:
            return
        holder["name"] = found.name
        if found.namespace:
            holder["namespace"] = found.namespace

    def choose(
        self, candidates: list[Resource], name: str, target: Gvk, path: str, *, with_namespace: bool = False
    ) -> Resource | None:
        found = [each for each in candidates if self.may_see(each) and _was(each, target)]
        if found and path.endswith("roleRef/name"):
            role = _role_of(self.resource.manifest)
            found = [each for each in found if _was(each, role)]
        for allow_empty in (True, False):
            if len(found) == 1:
                return found[0]
            found = [each for each in found if _same_affixes(each, self.resource, allow_empty)]
        if not found:
            return None
        if len({(each.name, each.namespace if with_namespace else "") for each in found}) > 1:
            names = ", ".join(str(each.id) for each in found)
            message = f"{self.resource.id}: {path} refers to {name}, which may be any of {names}; rename one of them"
            raise self.resource.fault(message, *path.split("/"))
        return found[0]

    def may_see(self, other: Resource) -> bool:
        if self.sees_all:
            return True
        id = other.id
        named = id.gvk.kind == "ServiceAccount" and id.place in self.places
        return named or id.gvk.is_cluster_scoped or id.place == self.place


def _places_of_subjects(resource: Resource) -> set[str]:
    if resource.manifest.get("kind") != "RoleBinding":
        return set()
    subjects = resource.manifest.get("subjects")
    return {
        str(each["namespace"])
        for each in (subjects if isinstance(subjects, list) else ())
        if isinstance(each, dict) and each.get("kind") == "ServiceAccount" and each.get("namespace")
    }


def _was(resource: Resource, gvk: Gvk) -> bool:
    return any(id.gvk.is_selected_by(gvk) for id in resource.history)


def _role_of(manifest: dict[str, Any]) -> Gvk:
    role = manifest.get("roleRef")
    if not isinstance(role, dict):
        return Gvk()
    return Gvk(str(role.get("apiGroup") or ""), "", str(role.get("kind") or ""))


def _same_affixes(one: Resource, other: Resource, allow_empty: bool) -> bool:
    return all(
        _same_end(mine, theirs, allow_empty)
        for mine, theirs in ((one.prefixes, other.prefixes), (one.suffixes, other.suffixes))
    )


def _same_end(one: Iterable[str], other: Iterable[str], allow_empty: bool) -> bool:
    mine, theirs = list(one), list(other)
    if not mine or not theirs:
        return allow_empty or mine == theirs
    length = min(len(mine), len(theirs))
    return mine[-length:] == theirs[-length:]
