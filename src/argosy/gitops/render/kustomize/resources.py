"""The resources of a build, in order. In: resources. Out: lookups by id or target. Never: two resources with one id."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from argosy.errors import ManifestError, RenderError
from argosy.gitops.render.kustomize.gvk import Gvk
from argosy.gitops.render.kustomize.patterns import Pattern, pattern
from argosy.gitops.render.kustomize.resource import Id, Resource

Addresses = dict[tuple[Gvk, str, str], Resource]


class Resources:
    def __init__(self) -> None:
        self.listed: list[Resource] = []

    def add(self, resource: Resource) -> None:
        self.add_all([resource], self.addresses())

    def addresses(self) -> Addresses:
        """Index the resources by id; valid until a name, a namespace or a kind changes."""
        return {_address(each.id): each for each in self.listed}

    def add_all(self, resources: Iterable[Resource], known: Addresses) -> None:
        for resource in resources:
            mine = resource.id
            each = known.setdefault(_address(mine), resource)
            if each is not resource:
                files = " and ".join(dict.fromkeys(file for file in (each.file, resource.file) if file))
                raise RenderError(f"{mine} is defined twice (in {files}): remove or rename one of them")
            self.listed.append(resource)

    def extend(self, others: Resources) -> None:
        if not self.listed:
            self.listed = list(others.listed)
            return
        known = {_address(each.id) for each in self.listed}
        for each in others.listed:
            if _address(each.id) in known:
                self.add(each)
            self.listed.append(each)

    def matching(self, accept: Callable[[Id], bool]) -> list[Resource]:
        """List the resources of which the current or an earlier id is accepted."""
        return [each for each in self.listed if any(map(accept, each.ids()))]

    def known_as(self, wanted: Id) -> list[Resource]:
        """List the resources that have or had exactly this id; names are compared first, because they rarely match."""
        named = [each for each in self.listed if each.name == wanted.name or each.history]
        return [each for each in named if any(id.name == wanted.name and id.equals(wanted) for id in each.ids())]

    def one(self, wanted: Id, where: str, what: str) -> Resource:
        found = self.known_as(wanted)
        if len(found) != 1:
            said = "no resource is" if not found else f"{len(found)} resources are"
            raise RenderError(f"{what}: {said} {wanted}; correct its name, kind or namespace", where=where)
        return found[0]

    def drop_empty(self) -> None:
        if not all(each.manifest for each in self.listed):
            self.listed = [each for each in self.listed if each.manifest]

    def select(self, target: dict[str, Any], where: str) -> list[Resource]:
        """k8s: the fields of a target are regular expressions that must match the whole text."""
        kind_of = [(_pattern(target.get(part) or "", where), at) for at, part in enumerate(Gvk._fields)]
        name = _pattern(target.get("name") or "", where)
        space = _pattern(target.get("namespace") or "", where)
        found = []
        for each in self.listed:
            gvk = each.gvk
            if any(part and not part.fits(gvk[at]) for part, at in kind_of):
                continue
            ids = (each.first_id, each.id)
            if space and not any(space.fits(id.place) for id in ids):
                continue
            if name and not any(name.fits(id.name) for id in ids):
                continue
            if carries(each, target, where):
                found.append(each)
        return found


def _address(id: Id) -> tuple[Gvk, str, str]:
    return id.gvk, id.name, id.place


def carries(resource: Resource, target: dict[str, Any], where: str) -> bool:
    """True if labels and annotations match the target's selectors."""
    for part, field in (("labelSelector", "labels"), ("annotationSelector", "annotations")):
        if text := target.get(part):
            from argosy.kube.schema.selectors.labels import labels as label_selector  # few patches need it

            try:
                selector = label_selector(text)
            except ManifestError as error:
                raise RenderError(f"{part} {text!r}: {error.message}", where=where) from error
            if not selector.matches(resource.texts(field)):
                return False
    return True


def _pattern(text: str, where: str) -> Pattern | None:
    return pattern(text, where) if text else None
