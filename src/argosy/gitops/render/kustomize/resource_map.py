"""The resources of a build, in order. In: resources. Out: lookups by id or target. Never: two resources with one id."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from argosy.errors import ManifestError, RenderError
from argosy.gitops.render.kustomize.gvk import Gvk
from argosy.gitops.render.kustomize.resource import KustomizeResource, ResourceId
from argosy.gitops.render.kustomize.selector_regex import ResourcePattern, compile_pattern

ResourcesById = dict[tuple[Gvk, str, str], KustomizeResource]


class KustomizeResources:
    def __init__(self) -> None:
        self.items: list[KustomizeResource] = []

    def add(self, resource: KustomizeResource) -> None:
        self.add_all([resource], self.index_by_id())

    def index_by_id(self) -> ResourcesById:
        """Index the resources by id; valid until a name, a namespace or a kind changes."""
        return {_id_key(resource.id): resource for resource in self.items}

    def add_all(self, resources: Iterable[KustomizeResource], by_id: ResourcesById) -> None:
        for resource in resources:
            resource_id = resource.id
            existing = by_id.setdefault(_id_key(resource_id), resource)
            if existing is not resource:
                files = " and ".join(dict.fromkeys(file for file in (existing.file, resource.file) if file))
                raise RenderError(f"{resource_id} is defined twice (in {files}): remove or rename one of them")
            self.items.append(resource)

    def extend(self, others: KustomizeResources) -> None:
        if not self.items:
            self.items = list(others.items)
            return
        known_ids = {_id_key(resource.id) for resource in self.items}
        for resource in others.items:
            if _id_key(resource.id) in known_ids:
                self.add(resource)
            self.items.append(resource)

    def list_matching(self, accept: Callable[[ResourceId], bool]) -> list[KustomizeResource]:
        """List the resources of which the current or an earlier id is accepted."""
        return [resource for resource in self.items if any(map(accept, resource.list_ids()))]

    def list_by_id(self, resource_id: ResourceId) -> list[KustomizeResource]:
        """List the resources that have or had exactly this id; names are compared first, because they rarely match."""
        candidates = [resource for resource in self.items if resource.name == resource_id.name or resource.history]
        return [
            resource
            for resource in candidates
            if any(id.name == resource_id.name and id.equals(resource_id) for id in resource.list_ids())
        ]

    def get_single(self, resource_id: ResourceId, where: str, problem: str) -> KustomizeResource:
        resources = self.list_by_id(resource_id)
        if len(resources) != 1:
            count_text = "no resource is" if not resources else f"{len(resources)} resources are"
            raise RenderError(
                f"{problem}: {count_text} {resource_id}; correct its name, kind or namespace", where=where
            )
        return resources[0]

    def drop_empty(self) -> None:
        if not all(resource.manifest for resource in self.items):
            self.items = [resource for resource in self.items if resource.manifest]

    def select(self, target: dict[str, Any], where: str) -> list[KustomizeResource]:
        """k8s: the fields of a target are regular expressions that must match the whole text."""
        gvk_patterns = [(_compile_pattern(target.get(part) or "", where), i) for i, part in enumerate(Gvk._fields)]
        name = _compile_pattern(target.get("name") or "", where)
        namespace = _compile_pattern(target.get("namespace") or "", where)
        selected = []
        for resource in self.items:
            gvk = resource.gvk
            if any(part and not part.matches(gvk[i]) for part, i in gvk_patterns):
                continue
            ids = (resource.original_id, resource.id)
            if namespace and not any(namespace.matches(id.effective_namespace) for id in ids):
                continue
            if name and not any(name.matches(id.name) for id in ids):
                continue
            if matches_selectors(resource, target, where):
                selected.append(resource)
        return selected


def _id_key(id: ResourceId) -> tuple[Gvk, str, str]:
    return id.gvk, id.name, id.effective_namespace


def matches_selectors(resource: KustomizeResource, target: dict[str, Any], where: str) -> bool:
    """True if labels and annotations match the target's selectors."""
    for part, field in (("labelSelector", "labels"), ("annotationSelector", "annotations")):
        if text := target.get(part):
            from argosy.kube.schema.selectors.labels import (
                parse_label_selector as label_selector,  # few patches need it
            )

            try:
                selector = label_selector(text)
            except ManifestError as error:
                raise RenderError(f"{part} {text!r}: {error.message}", where=where) from error
            if not selector.matches(resource.get_metadata_strings(field)):
                return False
    return True


def _compile_pattern(text: str, where: str) -> ResourcePattern | None:
    return compile_pattern(text, where) if text else None
