"""ApiResource: one built-in or custom kind in one version, with its subresources, as discovery lists it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from argosy.kube.resource_key import GroupKind, join_api_version

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Subresource:
    """`deployments/scale` returns another kind than `deployments`; an empty `kind` means the parent's."""

    name: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""
    kind: str = ""


@dataclass(frozen=True)
class ApiResource:
    """One kind in one version, as discovery lists it."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...] = ALL_VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    list_kind: str = ""
    custom: bool = False

    @cached_property
    def api_version(self) -> str:
        return join_api_version(self.group, self.version)

    @cached_property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    @cached_property
    def group_resource(self) -> str:
        """The name in error messages: `configmaps`, `widgets.argosy.dev`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def find_subresource(self, name: str) -> Subresource | None:
        return next((subresource for subresource in self.subresources if subresource.name == name), None)
