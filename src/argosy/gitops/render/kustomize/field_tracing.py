"""Traces every field through a build. In: resources after each transformer. Out: origins by key.

Never: runs in a build unless origins are requested.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from argosy.errors import UserError
from argosy.gitops.application.step_results import Origin
from argosy.gitops.render.kustomize.build_trees import parted
from argosy.gitops.render.kustomize.error_lines import APPLICATION, Path, line_in, listed_items, marked_queue, spelled
from argosy.gitops.render.kustomize.field_authors import (
    IDENTITY,
    EntriesGuide,
    PatchGuide,
    Tree,
    TreeGuide,
    line_of_entry,
    operations_guide,
)
from argosy.gitops.render.kustomize.patches import read_either
from argosy.gitops.render.kustomize.resource import Resource
from argosy.gitops.render.kustomize.resources import Resources
from argosy.gitops.render.origins import Guide, Traced, changed, traced, written
from argosy.kube.names import ResourceKey
from argosy.kube.objects.field_lines import Lines, Marked

if TYPE_CHECKING:
    from argosy.gitops.render.kustomize.build_level import Level

GuideOf = Callable[[Resource], Guide | None]
_PATCHES: Final = ("patches", "patchesJson6902", "patchesStrategicMerge")
_PATCHED: Final = tuple((each,) for each in _PATCHES)


class _Seen(NamedTuple):
    """A resource (kept so that its id() stays unique), its manifest after the last step, and its origins."""

    resource: Resource
    manifest: Any
    tree: Traced


class FieldTracer:
    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._lines: dict[str, Lines] = {}
        self.found: dict[ResourceKey, Traced] = {}

    def read(self, text: bytes, file: str, resources: Sequence[Resource]) -> None:
        """Trace resources as read from a file."""
        url, _, path = parted(file)
        marked = [each for each in marked_queue(text) if each.below and listed_items(each) is None]
        for place, resource in enumerate(resources):
            if len(marked) == len(resources):
                self._note(resource, traced(marked[place], path, url))
            else:  # JSON with escapes that YAML does not have
                self._note(resource, written(resource.manifest, Guide(Origin(path, 1, url))))

    def step(self, level: Level, listed: Sequence[Resource], plugin: Resource | None = None) -> None:
        """Attribute changed fields to the current entry, or to a transformer plug-in."""
        guide_of: GuideOf | None = None
        for resource in listed:
            seen = self._seen.get(id(resource))
            is_same = seen is not None and seen.manifest == resource.manifest
            if is_same and level.at[:1] not in _PATCHED:
                continue
            guide_of = guide_of or self._guide(level, listed, plugin)
            guide = guide_of(resource)
            if is_same and not (guide and guide.is_exact):
                continue
            if seen is None:
                self._note(resource, written(resource.manifest, guide))
            else:
                self._note(resource, changed(seen.manifest, seen.tree, resource.manifest, guide))

    def finish(self, resources: Iterable[Resource]) -> None:
        """Keep the origins of fields that the end of a build changes, such as name references."""
        for resource in resources:
            seen = self._seen.get(id(resource))
            gvk, manifest = resource.gvk, resource.manifest
            url, _, path = parted(resource.file)
            tree = changed(*seen[1:], manifest, None) if seen else written(manifest, Guide(Origin(path, 0, url)))
            self.found[ResourceKey(gvk.group, gvk.kind, resource.namespace, resource.name)] = tree

    def _note(self, resource: Resource, tree: Traced) -> None:
        self._seen[id(resource)] = _Seen(resource, copy.deepcopy(resource.manifest), tree)

    def _guide(self, level: Level, listed: Sequence[Resource], plugin: Resource | None) -> GuideOf:
        try:
            return self._plugin(level, plugin) if plugin else self._entry(level, listed)
        except UserError:  # empty text, or a file that the build did not need
            return _always(Guide(_at(level.file, line_in(self._of(level, level.file), level.at))))

    def _plugin(self, level: Level, plugin: Resource) -> GuideOf:
        if plugin.file == level.file:
            return _always(Guide(_at(level.file, line_in(self._of(level, level.file), level.at))))
        wanted = plugin.manifest.get("kind"), plugin.name
        for each in marked_queue(level.build.grounds.read(plugin.file)):
            if (each.said("kind"), each.said("metadata", "name")) == wanted:
                return _always(Guide(_at(plugin.file, each.line)))
        return _always(Guide(_at(plugin.file, 1)))

    def _entry(self, level: Level, listed: Sequence[Resource]) -> GuideOf:
        at = level.written_at()
        lines = self._of(level, level.file)
        if at is None or not lines.documents:
            return _always(Guide(Origin(APPLICATION) if at is None else _at(level.file, 1)))
        if at[0] in _PATCHES:
            return self._patch(level, at, lines, listed)
        top = lines.documents[0]
        entry, steps = top.at(spelled(top, at))
        if at[0] in ("configMapGenerator", "secretGenerator") and steps == len(at):
            return _always(self._generator(level, entry, top))
        if at[0] in ("labels", "commonLabels", "commonAnnotations"):
            pairs = entry.field("pairs") or entry if at[0] == "labels" else entry
            on_top = {} if at[0] == "labels" else _on_top(level.entry_at_hand(), level.own.get(str(at[0])) or {})
            return _always(EntriesGuide(_at(level.file, entry.line), {**_origins(pairs, level.file), **on_top}))
        return _always(Guide(_at(level.file, line_of_entry(entry))))

    def _patch(self, level: Level, at: Path, lines: Lines, listed: Sequence[Resource]) -> GuideOf:
        entry = level.entry_at_hand()
        path, text = (entry.get("path"), entry.get("patch")) if isinstance(entry, dict) else (entry, None)
        if isinstance(entry, str) and "\n" in entry:
            path, text = None, entry
        if path:
            file = level.name(path)
            text = level.build.grounds.read(file)
            documents = self._of(level, file).documents
        else:
            text = (text or "").strip().encode()
            file, documents = level.file, lines.inside((*at, "patch") if isinstance(entry, dict) else at)
        values = read_either(text, file)
        fallback = Guide(_at(level.file, line_in(lines, at)))
        guides = [(value, _patch_guide(value, marked, file)) for value, marked in zip(values, documents)]
        target = entry.get("target") if isinstance(entry, dict) else None
        if target:
            chosen = {id(each) for each in _selected(listed, target)}
            return lambda resource: guides[0][1] if guides and id(resource) in chosen else fallback
        return lambda resource: next((guide for value, guide in guides if _is_for(value, resource)), fallback)

    def _generator(self, level: Level, entry: Marked, top: Marked) -> Guide:
        file, data = level.file, dict(self._sources(level, entry))
        shared, own = (_options(each, file) for each in (top.field("generatorOptions"), entry.field("options")))
        name, space = (_at(file, (entry.field(each) or entry).line) for each in ("name", "namespace"))
        both: dict[str, Tree] = {
            part: {**shared.get(part, {}), **own.get(part, {})} for part in ("labels", "annotations")
        }
        kind = _at(file, (entry.field("type") or entry).line)
        fields = {
            "metadata": {"name": name, "namespace": space, **both},
            "data": data,
            "binaryData": data,
            "type": kind,
        }
        return TreeGuide(_at(file, entry.line), fields)

    def _sources(self, level: Level, entry: Marked) -> Iterator[tuple[str, Origin]]:
        for each in filter(_is_said, _listed(entry, "envs", "env")):
            file = level.name(each.text)
            for number, line in enumerate(level.build.grounds.read(file).decode("utf-8", "replace").split("\n"), 1):
                yield line.lstrip("\ufeff \t").partition("=")[0], _at(file, number)
        for each in _listed(entry, "literals"):
            yield each.text.partition("=")[0], _at(level.file, each.line)
        for each in _listed(entry, "files"):
            key, mark, path = each.text.partition("=")
            key, path = (key, path) if mark else (each.text.rpartition("/")[2], each.text)
            yield key, _at(level.name(path), 1)

    def _of(self, level: Level, file: str) -> Lines:
        known = self._lines.get(file)
        if known is None:
            known = self._lines[file] = Lines(level.build.grounds.read(file).decode("utf-8", "replace"))
        return known


def _always(guide: Guide) -> GuideOf:
    return lambda resource: guide


def _at(file: str, line: int) -> Origin:
    url, _, path = parted(file)
    return Origin(path, line, url)


def _origins(marked: Marked, file: str) -> dict[str, Origin]:
    below = marked.below if isinstance(marked.below, dict) else {}
    return {name: _at(file, each.line) for name, each in below.items()}


def _on_top(now: dict[str, str], own: dict[str, str]) -> dict[str, Origin]:
    """Return the entries that an Application sets."""
    return {name: Origin(APPLICATION) for name, value in now.items() if own.get(name) != value}


def _options(marked: Marked | None, file: str) -> dict[str, dict[str, Origin]]:
    parts = {name: marked.field(name) for name in ("labels", "annotations")} if marked else {}
    return {name: _origins(each, file) for name, each in parts.items() if each}


def _is_said(marked: Marked) -> bool:
    return bool(marked.text)


def _listed(entry: Marked, *names: str) -> Iterator[Marked]:
    for field in filter(None, map(entry.field, names)):
        yield from field.below if isinstance(field.below, list) else [field]


def _patch_guide(value: Any, marked: Marked, file: str) -> Guide:
    if isinstance(value, list):
        return operations_guide(value, marked, lambda line: _at(file, line))
    return PatchGuide(value, marked, lambda line: _at(file, line), names=IDENTITY)


def _selected(listed: Iterable[Resource], target: dict[str, Any]) -> list[Resource]:
    resources = Resources()
    resources.listed = list(listed)
    return resources.select(target, "")


def _is_for(patch: Any, resource: Resource) -> bool:
    metadata = patch.get("metadata") if isinstance(patch, dict) else None
    wanted = (patch.get("kind"), metadata.get("name")) if isinstance(metadata, dict) else None
    return any((id.gvk.kind, id.name) == wanted for id in resource.ids())
