"""Parses resource arguments of kubectl: `pods`, `deploy/web`, `application.argoproj.io llmops-dev`.

In: arguments, the kinds that a cluster serves. Out: kinds and names. Never: guesses a kind that is not served.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.errors import UserError
from argosy.kube.client import Catalog, KindInfo
from argosy.kube.names import GroupKind, ResourceKey


@dataclass(frozen=True)
class Named:
    """A kind, and the names of objects if any were given."""

    kind: GroupKind
    info: KindInfo
    names: tuple[str, ...] = ()

    @property
    def plural(self) -> str:
        return f"{self.info.plural}.{self.kind.group}" if self.kind.group else self.info.plural

    def called(self, name: str) -> str:
        """k8s: format like `kubectl -o name`."""
        return called(self.kind, name)

    def key(self, name: str, namespace: str) -> ResourceKey:
        return ResourceKey(*self.kind, namespace if self.info.namespaced else "", name)


def called(kind: GroupKind, name: str) -> str:
    group = f".{kind.group}" if kind.group else ""
    return f"{kind.kind.lower()}{group}/{name}"


def read_names(words: Sequence[str], catalog: Catalog) -> list[Named]:
    """Parse the arguments after `kubectl get`. Raises UserError."""
    if not words:
        raise UserError("no resource type given; write for example: get pods", where="kubectl")
    if "/" in words[0]:
        pairs = [word.partition("/") for word in words]
        if bad := next((kind for kind, slash, name in pairs if not slash or not name), None):
            raise UserError(f"{bad} is not of the form KIND/NAME like the other arguments", where="kubectl")
        return [_kind(kind, catalog, (name,)) for kind, _, name in pairs]
    return [_kind(word, catalog, tuple(words[1:])) for each in words[0].split(",") for word in _members(each, catalog)]


def _members(word: str, catalog: Catalog) -> list[str]:
    found = [
        f"{info.plural}.{kind.group}" if kind.group else info.plural
        for kind, info in catalog.items()
        if word in info.categories
    ]
    return found or [word]


def _kind(word: str, catalog: Catalog, names: tuple[str, ...]) -> Named:
    name, _, rest = word.lower().partition(".")
    found = [
        Named(kind, info, names)
        for kind, info in catalog.items()
        if name in (info.plural, kind.kind.lower(), *info.short_names) and _is_group(rest, kind, info)
    ]
    if not found:
        raise UserError(f"the server doesn't have a resource type {word!r}; list them with: kubectl api-resources")
    return min(found, key=lambda each: bool(each.kind.group))  # k8s: the core group goes before others


def _is_group(rest: str, kind: GroupKind, info: KindInfo) -> bool:
    return not rest or rest in (kind.group, *(f"{version}.{kind.group}" for version in info.versions))
