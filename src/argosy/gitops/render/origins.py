"""Traces the fields of rendered manifests to files and lines. In: files. Out: origins by key and JSON pointer.

Never: computes an origin before it is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from argosy.gitops.application.step_results import Origin
from argosy.kube.names import ResourceKey, split_api_version
from argosy.kube.objects.field_lines import Lines, Marked

_DEEPEST = 120


class Traced:
    """The origin of a value, and of the fields or elements in it."""

    __slots__ = ("below", "origin")

    def __init__(self, origin: Origin, below: dict[str, Traced] | list[Traced] | None = None) -> None:
        self.origin = origin
        self.below = below

    def at(self, pointer: str) -> Origin:
        """Return the origin of the field at a JSON pointer, or of its nearest parent that has one."""
        here = self
        for step in pointer.split("/")[1:]:
            found = here.step(step.replace("~1", "/").replace("~0", "~"))
            if found is None:
                break
            here = found
        return here.origin

    def step(self, name: str) -> Traced | None:
        if isinstance(self.below, dict):
            return self.below.get(name)
        if isinstance(self.below, list) and name.isdecimal() and int(name) < len(self.below):
            return self.below[int(name)]
        return None


Trace = Mapping[ResourceKey, Traced]


class LazyOrigins:
    """Implements `Origins`, computed on first use. To pickle it, pass a partial of a module function."""

    def __init__(self, trace: Callable[[], Trace]) -> None:
        self._trace = trace
        self._found: Trace | None = None

    def find(self, key: ResourceKey, pointer: str) -> Origin | None:
        if self._found is None:
            self._found = self._trace()
        # A manifest without a namespace gets the destination's namespace later.
        found = self._found.get(key) or self._found.get(key._replace(namespace=""))
        return found.at(pointer) if found else None

    def __reduce__(self) -> tuple[type[LazyOrigins], tuple[Callable[[], Trace]]]:
        return LazyOrigins, (self._trace,)


def of_documents(files: Iterable[tuple[str, bytes]], *, repository: str = "") -> dict[ResourceKey, Traced]:
    """Trace plain files, given by name and content; Lists are flattened."""
    found: dict[ResourceKey, Traced] = {}
    for file, text in files:
        for document in Lines(text.decode("utf-8", "replace")).documents:
            for manifest, kind, api_version in _manifests(document):
                found[_key(manifest, kind, api_version)] = traced(manifest, file, repository)
    return found


def _manifests(
    marked: Marked, kind: str = "", api_version: str = "", depth: int = 0
) -> Iterator[tuple[Marked, str, str]]:
    kind, api_version = marked.said("kind") or kind, marked.said("apiVersion") or api_version
    items = marked.field("items")
    if items is None or not isinstance(items.below, list):
        if isinstance(marked.below, dict):
            yield marked, kind, api_version
    elif depth < _DEEPEST:
        for each in items.below:
            yield from _manifests(each, kind.removesuffix("List"), api_version, depth + 1)


def _key(manifest: Marked, kind: str, api_version: str) -> ResourceKey:
    group, _ = split_api_version(api_version)
    return ResourceKey(group, kind, manifest.said("metadata", "namespace"), manifest.said("metadata", "name"))


def traced(marked: Marked, file: str, repository: str = "", depth: int = 0) -> Traced:
    """Trace a document as written in its file."""
    found = Traced(Origin(file, marked.line, repository))
    if depth > _DEEPEST:
        return found
    if isinstance(marked.below, dict):
        found.below = {name: traced(each, file, repository, depth + 1) for name, each in marked.below.items()}
    elif isinstance(marked.below, list):
        found.below = [traced(each, file, repository, depth + 1) for each in marked.below]
    return found


class Guide:
    """Attributes a change to an origin: this class attributes all of it to one. None as an author keeps old origins."""

    __slots__ = ("is_exact", "origin")

    def __init__(self, origin: Origin, *, is_exact: bool = False) -> None:
        self.origin = origin
        self.is_exact = is_exact  # it names every field that it sets, so it also owns unchanged fields

    def field(self, name: str, value: Any) -> Guide:
        """Return the author of a field that now has this value."""
        return self

    def element(self, place: int, value: Any) -> Guide:
        return self


def written(value: Any, guide: Guide | None, above: Traced | None = None, over: Origin | None = None) -> Traced:
    """Trace a new value; `parent` holds it, `replaced` is the origin of the value that it replaces."""
    origin = guide.origin if guide else above.origin if above else Origin("")
    if guide and over and over != origin:
        origin = Origin(origin.file, origin.line, origin.repository, over)
    found = Traced(origin)
    if type(value) is dict:
        found.below = {name: written(each, guide and guide.field(name, each), found) for name, each in value.items()}
    elif type(value) is list:
        found.below = [written(each, guide and guide.element(at, each), found) for at, each in enumerate(value)]
    return found


def changed(before: Any, tree: Traced, after: Any, guide: Guide | None) -> Traced:
    """Trace `after`: unchanged values keep their origin; values that changed or were set again get the author's."""
    if type(before) is type(after) and before == after and not (guide and guide.is_exact):
        return tree
    if type(before) is dict and type(after) is dict and isinstance(tree.below, dict):
        fields: dict[str, Traced] = {}
        for name, value in after.items():
            known, inner = tree.below.get(name), guide and guide.field(name, value)
            if known is not None and name in before:
                fields[name] = changed(before[name], known, value, inner)
            else:
                fields[name] = written(value, inner, tree)
        return Traced(tree.origin, fields)
    if type(before) is list and type(after) is list and isinstance(tree.below, list):
        pairs = zip(after, _aligned(before, after))
        elements = [_element(before, tree, at, each, old, guide) for at, (each, old) in enumerate(pairs)]
        return Traced(tree.origin, elements)
    if guide is None and type(after) not in (dict, list):
        return tree
    return written(after, guide, tree, tree.origin)


def _element(before: list[Any], tree: Traced, at: int, value: Any, old: int | None, guide: Guide | None) -> Traced:
    inner = guide and guide.element(at, value)
    if old is None or not isinstance(tree.below, list) or old >= len(tree.below):
        return written(value, inner, tree)
    return changed(before[old], tree.below[old], value, inner)


def _aligned(before: list[Any], after: list[Any]) -> list[int | None]:
    """Return the old index of each new element: equal elements first, then equal merge keys, then the same index."""
    left = dict(enumerate(before))
    found: list[int | None] = [None] * len(after)
    for match in (_is_in_place, _is_equal, _is_namesake):
        for at, each in enumerate(after):
            if found[at] is None:
                place = next((place for place, old in left.items() if match(place, old, at, each)), None)
                if place is not None:
                    found[at] = place
                    del left[place]
    if len(before) == len(after):
        for at in [at for at, place in enumerate(found) if place is None and at in left]:
            found[at] = at
    return found


def _is_in_place(place: int, old: Any, at: int, new: Any) -> bool:
    return place == at and type(old) is type(new) and bool(old == new)


def _is_equal(place: int, old: Any, at: int, new: Any) -> bool:
    return type(old) is type(new) and bool(old == new)


def _is_namesake(place: int, old: Any, at: int, new: Any) -> bool:
    if type(old) is not dict or type(new) is not dict:
        return False
    for key in KEYS:
        if key in old and key in new:
            return bool(old[key] == new[key])
    return False


KEYS = ("name", "mountPath", "devicePath", "containerPort", "port", "key", "ip", "topologyKey", "uid", "type")
