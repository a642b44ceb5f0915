"""Parses resource arguments of kubectl: `pods`, `deploy/web`, `application.argoproj.io llmops-dev`.

In: arguments, the kinds that a cluster serves. Out: kinds and names. Never: guesses a kind that is not served.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.errors import UserError
from argosy.kube.client import Catalog, KindInfo
from argosy.kube.resource_key import GroupKind, ResourceKey


@dataclass(frozen=True)
class NamedResources:
    """A kind, and the names of objects if any were given."""

    kind: GroupKind
    info: KindInfo
    names: tuple[str, ...] = ()

    @property
    def qualified_plural(self) -> str:
        return f"{self.info.plural}.{self.kind.group}" if self.kind.group else self.info.plural

    def format_name(self, name: str) -> str:
        """k8s: format like `kubectl -o name`."""
        return format_resource_name(self.kind, name)

    def build_key(self, name: str, namespace: str) -> ResourceKey:
        return ResourceKey(*self.kind, namespace if self.info.namespaced else "", name)


def format_resource_name(kind: GroupKind, name: str) -> str:
    group = f".{kind.group}" if kind.group else ""
    return f"{kind.kind.lower()}{group}/{name}"


def parse_resource_arguments(words: Sequence[str], catalog: Catalog) -> list[NamedResources]:
    """Parse the arguments after `kubectl get`. Raises UserError."""
    if not words:
        raise UserError("no resource type given; write for example: get pods", where="kubectl")
    if "/" in words[0]:
        pairs = [word.partition("/") for word in words]
        if bad := next((kind for kind, slash, name in pairs if not slash or not name), None):
            raise UserError(f"{bad} is not of the form KIND/NAME like the other arguments", where="kubectl")
        return [_find_kind(kind, catalog, (name,)) for kind, _, name in pairs]
    return [
        _find_kind(word, catalog, tuple(words[1:]))
        for type_word in words[0].split(",")
        for word in _expand_category(type_word, catalog)
    ]


def _expand_category(word: str, catalog: Catalog) -> list[str]:
    plurals = [
        f"{info.plural}.{kind.group}" if kind.group else info.plural
        for kind, info in catalog.items()
        if word in info.categories
    ]
    return plurals or [word]


def _find_kind(word: str, catalog: Catalog, names: tuple[str, ...]) -> NamedResources:
    name, _, group = word.lower().partition(".")
    matches = [
        NamedResources(kind, info, names)
        for kind, info in catalog.items()
        if name in (info.plural, kind.kind.lower(), *info.short_names) and _matches_group(group, kind, info)
    ]
    if not matches:
        raise UserError(f"the server doesn't have a resource type {word!r}; list them with: kubectl api-resources")
    return min(matches, key=lambda match: bool(match.kind.group))  # k8s: the core group goes before others


def _matches_group(group: str, kind: GroupKind, info: KindInfo) -> bool:
    return not group or group in (kind.group, *(f"{version}.{kind.group}" for version in info.versions))
