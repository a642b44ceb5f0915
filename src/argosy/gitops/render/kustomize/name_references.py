"""Updates references to renamed resources. In: resources with their earlier ids. Out: references to final names.

Never: changes a reference to a resource that kept its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from argosy.gitops.render.kustomize.gvk import Gvk
from argosy.gitops.render.kustomize.name_reference_field_type_check import check_reference_fields
from argosy.gitops.render.kustomize.resource import KustomizeResource
from argosy.gitops.render.kustomize.transformer_config import TransformerConfig

_ResourcesByOldName = dict[str, list[KustomizeResource]]


def update_name_references(resources: list[KustomizeResource], config: TransformerConfig) -> None:
    check_reference_fields(resources, config)
    index = _index_by_old_name(resources)
    if not index:
        return
    old_gvks = {id.gvk for old_resource in resources for id in old_resource.history}
    targets = [
        (target, specs)
        for target, specs in config.name_references
        if any(gvk.is_selected_by(target) for gvk in old_gvks)
    ]
    paths_by_gvk: dict[Gvk, list[tuple[Gvk, str]]] = {}
    for resource in resources:
        gvk = resource.gvk
        paths = paths_by_gvk.get(gvk)
        if paths is None:
            paths = paths_by_gvk[gvk] = [
                (target, spec.path) for target, specs in targets for spec in specs if gvk.is_selected_by(spec.gvk)
            ]
        if not paths:
            continue
        referrer = _ReferenceUpdater(resource, index)
        for target, path in paths:
            resource.visit_field(path, referrer.build_visitor(target, path))


def _index_by_old_name(resources: list[KustomizeResource]) -> _ResourcesByOldName:
    index: _ResourcesByOldName = {}
    for resource in resources:
        for name in {id.name for id in resource.history}:
            index.setdefault(name, []).append(resource)
    return index


class _ReferenceUpdater:
    def __init__(self, resource: KustomizeResource, index: _ResourcesByOldName) -> None:
        self.resource = resource
        self.index = index
        id = resource.id
        self.is_cluster_scoped = id.gvk.is_cluster_scoped
        self.namespace = id.effective_namespace
        self.subject_namespaces = _list_subject_namespaces(resource)

    def build_visitor(self, target: Gvk, path: str) -> Callable[[dict[str, Any], str], None]:
        def update_field(holder: dict[str, Any], name: str) -> None:
            value = holder[name]
            if type(value) is list:
                for i, element in enumerate(value):
                    if type(element) is dict:
                        self.update_reference_map(element, target, path)
                    elif type(element) is str:
                        value[i] = self.resolve_name(element, target, path)
            elif type(value) is dict:
                self.update_reference_map(value, target, path)
            elif type(value) is str:
                holder[name] = self.resolve_name(value, target, path)

        return update_field

    def resolve_name(self, name: str, target: Gvk, path: str) -> str:
        candidates = self.index.get(name)
        if not candidates:
            return name
        referent = self.choose_referent(candidates, name, target, path)
        return referent.name if referent else name

    def update_reference_map(self, holder: dict[str, Any], target: Gvk, path: str) -> None:
        name = holder.get("name")
        if not isinstance(name, str) or not name:
            raise self.resource.build_error(f"{self.resource.id}: {path} has no name: add it", *path.split("/"))
        candidates = self.index.get(name)
        if not candidates:
            return
        if "namespace" in holder:
            namespace = str(holder["namespace"] or "")
            by_original_id = [
                candidate
                for candidate in candidates
                if candidate.original_id.effective_namespace == (namespace or "default")
            ]
            candidates = by_original_id or [
                candidate for candidate in candidates if candidate.id.effective_namespace == (namespace or "default")
            ]
        referent = self.choose_referent(candidates, name, target, path, with_namespace=True)
        if referent is None:
            return
        holder["name"] = referent.name
        if referent.namespace:
            holder["namespace"] = referent.namespace

    def choose_referent(
        self, candidates: list[KustomizeResource], name: str, target: Gvk, path: str, *, with_namespace: bool = False
    ) -> KustomizeResource | None:
        matching = [
            candidate for candidate in candidates if self.can_refer_to(candidate) and _had_gvk(candidate, target)
        ]
        if matching and path.endswith("roleRef/name"):
            role = _read_role_gvk(self.resource.manifest)
            matching = [candidate for candidate in matching if _had_gvk(candidate, role)]
        for allow_empty in (True, False):
            if len(matching) == 1:
                return matching[0]
            matching = [
                candidate for candidate in matching if _have_same_affixes(candidate, self.resource, allow_empty)
            ]
        if not matching:
            return None
        if len({(candidate.name, candidate.namespace if with_namespace else "") for candidate in matching}) > 1:
            names = ", ".join(str(candidate.id) for candidate in matching)
            message = f"{self.resource.id}: {path} refers to {name}, which may be any of {names}; rename one of them"
            raise self.resource.build_error(message, *path.split("/"))
        return matching[0]

    def can_refer_to(self, other: KustomizeResource) -> bool:
        if self.is_cluster_scoped:
            return True
        id = other.id
        is_subject = id.gvk.kind == "ServiceAccount" and id.effective_namespace in self.subject_namespaces
        return is_subject or id.gvk.is_cluster_scoped or id.effective_namespace == self.namespace


def _list_subject_namespaces(resource: KustomizeResource) -> set[str]:
    if resource.manifest.get("kind") != "RoleBinding":
        return set()
    subjects = resource.manifest.get("subjects")
    return {
        str(subject["namespace"])
        for subject in (subjects if isinstance(subjects, list) else ())
        if isinstance(subject, dict) and subject.get("kind") == "ServiceAccount" and subject.get("namespace")
    }


def _had_gvk(resource: KustomizeResource, gvk: Gvk) -> bool:
    return any(id.gvk.is_selected_by(gvk) for id in resource.history)


def _read_role_gvk(manifest: dict[str, Any]) -> Gvk:
    role = manifest.get("roleRef")
    if not isinstance(role, dict):
        return Gvk()
    return Gvk(str(role.get("apiGroup") or ""), "", str(role.get("kind") or ""))


def _have_same_affixes(candidate: KustomizeResource, referrer: KustomizeResource, allow_empty: bool) -> bool:
    return all(
        _have_same_ending(candidate_affixes, referrer_affixes, allow_empty)
        for candidate_affixes, referrer_affixes in (
            (candidate.prefixes, referrer.prefixes),
            (candidate.suffixes, referrer.suffixes),
        )
    )


def _have_same_ending(candidate_affixes: Iterable[str], referrer_affixes: Iterable[str], allow_empty: bool) -> bool:
    first, second = list(candidate_affixes), list(referrer_affixes)
    if not first or not second:
        return allow_empty or first == second
    length = min(len(first), len(second))
    return first[-length:] == second[-length:]
