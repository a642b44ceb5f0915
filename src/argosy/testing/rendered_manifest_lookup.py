"""Rendered manifests, with lookups for tests.

In: items of a rendering. Out: manifests by kind and name, and the file and line that set a field. Never: returns None
for a missing manifest: the AssertionError lists the manifests that exist.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import overload

from argosy.gitops.analysis.repository_view import ManifestWithLocations
from argosy.kube.objects import Manifest


class Manifests(Sequence[Manifest]):
    """A sequence of manifests. Kinds are written `Deployment`, or `Deployment.apps` if two groups have the kind."""

    def __init__(self, items: Sequence[ManifestWithLocations], *, source: str, namespace: str = "") -> None:
        self._items = tuple(items)
        self.source = source  # the Application or folder, for messages
        self.namespace = namespace  # of manifests without a namespace

    @overload
    def __getitem__(self, index: int) -> Manifest: ...
    @overload
    def __getitem__(self, index: slice) -> Manifests: ...
    def __getitem__(self, index: int | slice) -> Manifest | Manifests:
        if isinstance(index, slice):
            return self._with_items(self._items[index])
        return self._items[index].manifest

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Manifest]:
        return (item.manifest for item in self._items)

    def __repr__(self) -> str:
        return f"<{self.source}: {', '.join(self.names) or 'nothing'}>"

    @property
    def names(self) -> list[str]:
        """`KIND/NAME` of each manifest, in rendering order."""
        return [item.name for item in self._items]

    def of(self, kind: str) -> Manifests:
        """The manifests of one kind; may be empty."""
        return self._with_items([item for item in self._items if _is_of_kind(item, kind)])

    def one(self, kind: str, name: str = "") -> Manifest:
        """The only manifest of this kind, or of this kind and name."""
        __tracebackhide__ = True
        return self._find_only_item(kind, name).manifest

    def place(self, kind: str, name: str, *path: str | int) -> str:
        """`FILE:LINE` where a field is set: in the base, an overlay or a patch."""
        __tracebackhide__ = True
        return str(self._find_only_item(kind, name).find_location(*path))

    def _find_only_item(self, kind: str, name: str) -> ManifestWithLocations:
        __tracebackhide__ = True
        matches = [item for item in self._items if _is_of_kind(item, kind) and name in ("", item.key.name)]
        if len(matches) == 1:
            return matches[0]
        requested = f"{kind}/{name}" if name else kind
        if matches:
            names = ", ".join(item.name for item in matches)
            raise AssertionError(f"{self.source}: {requested} is ambiguous: {names}; add the name")
        close_matches = difflib.get_close_matches(requested, self.names, n=1)
        hint = (
            f"did you mean {close_matches[0]}?"
            if close_matches
            else f"it renders to {', '.join(self.names) or 'nothing'}"
        )
        raise AssertionError(f"{self.source}: there is no {requested}; {hint}")

    def _with_items(self, items: Sequence[ManifestWithLocations]) -> Manifests:
        return Manifests(items, source=self.source, namespace=self.namespace)


def _is_of_kind(item: ManifestWithLocations, kind: str) -> bool:
    name, _, group = kind.partition(".")
    return item.key.kind.lower() == name.lower() and group in ("", item.key.group)
