"""Applies an Application's `source.kustomize` overrides to a kustomization.

In: the fields of the kustomization that is built. Out: the fields with the overrides. Never: changes its bases.

argo: Argo CD runs `kustomize edit` on the file before the build, so most overrides replace the file's own fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from argosy.errors import RenderError
from argosy.gitops.application import KustomizeOptions
from argosy.gitops.render.kustomize.build_trees import Spot
from argosy.gitops.render.kustomize.images import split
from argosy.gitops.render.kustomize.kustomization_fields import PATCH, shaped
from argosy.gitops.render.kustomize.kustomization_file import Kustomization
from argosy.gitops.render.kustomize.remote_bases import looks_remote, remote_of
from argosy.gitops.render.kustomize.tree_paths import joined

Fields = dict[str, Any]
Substitute = Callable[[str], str]
_WHERE: Final = "source.kustomize"
_KEEP: Final = "*"
_PARTS: Final = ("newName", "newTag", "digest")
_MAGIC: Final = re.compile(r"[*?\[]")


def overridden(
    kustomization: Kustomization, options: KustomizeOptions, folder: Spot, substitute: Substitute
) -> Kustomization:
    """Return the kustomization with the Application's overrides; `substitute` replaces build variables."""
    plain = {"namePrefix": options.name_prefix, "nameSuffix": options.name_suffix, "namespace": options.namespace}
    fields = {**kustomization.fields, **{name: text for name, text in plain.items() if text}}
    if options.images:
        fields["images"] = _images(fields.get("images") or [], map(substitute, options.images))
    if options.replicas:
        fields["replicas"] = _replicas(fields.get("replicas") or [], options.replicas)
    if options.common_labels:
        _add_labels(fields, options, {name: substitute(each) for name, each in options.common_labels.items()})
    if options.common_annotations:
        put = substitute if options.common_annotations_envsubst else str
        given = {name: put(each) for name, each in options.common_annotations.items()}
        known = fields.get("commonAnnotations") or {}
        fields["commonAnnotations"] = _added(known, _entries(given), options.force_common_annotations, "Annotations")
    if options.patches:
        fields["patches"] = [*(fields.get("patches") or []), *_patches(options.patches)]
    if options.components:
        fields["components"] = _components(fields.get("components") or [], options, folder)
    return kustomization._replace(fields=fields)


def _images(known: list[Fields], given: Iterable[str]) -> list[Fields]:
    # argo: one entry per name, sorted by name.
    found = {each["name"]: each for each in map(_image, given)}
    for old in known:
        name = old.get("name") or ""
        new = found.get(name)
        found[name] = old if new is None else {**new, **{part: old.get(part) or "" for part in _kept(new)}}
    dropped = ({**each, **dict.fromkeys(_kept(each), "")} for each in found.values())
    return sorted(dropped, key=lambda each: each.get("name") or "")


def _kept(image: Fields) -> list[str]:
    return [part for part in _PARTS if image.get(part) == _KEEP]


def _image(text: str) -> Fields:
    """Parse `name=new:tag`, `name=new@digest`, `name=new`, `name:tag` or `name@digest`."""
    name, mark, new = text.partition("=")
    new_name, tag, digest = split(new if mark else text)
    if not mark and not tag and not digest:
        message = f"{text!r} does not set a new image: write NAME=NEW:TAG, NAME:TAG or NAME@DIGEST"
        raise RenderError(message, where=f"{_WHERE}.images")
    parts = {"newName": new_name if mark else "", "newTag": tag, "digest": digest}
    return {"name": name if mark else new_name, **{part: each for part, each in parts.items() if each}}


def _replicas(known: list[Fields], given: Iterable[tuple[str, int]]) -> list[Fields]:
    found = {each.get("name") or "": each for each in known}
    for name, count in given:
        if not name or "=" in name:
            raise RenderError(f"invalid name {name!r} for {count} replicas: correct it", where=f"{_WHERE}.replicas")
        found[name] = {"name": name, "count": count}
    return [found[name] for name in sorted(found)]


def _add_labels(fields: Fields, options: KustomizeOptions, given: Mapping[str, str]) -> None:
    force, templates = options.force_common_labels, options.label_include_templates
    if not options.label_without_selector:
        if templates:
            message = "labelIncludeTemplates needs labelWithoutSelector: set both, or neither"
            raise RenderError(message, where=_WHERE)
        fields["commonLabels"] = _added(fields.get("commonLabels") or {}, _entries(given), force, "Labels")
        return
    left = dict(_entries(given))
    labels = [_relabelled(each, left, force, templates) for each in fields.get("labels") or ()]
    added = [{"pairs": left, "includeTemplates": templates}] if left else []
    fields["labels"] = [*labels, *added]


def _relabelled(label: Fields, left: dict[str, str], force: bool, templates: bool) -> Fields:
    """Update the keys that an entry of `labels` already has, and remove them from `remaining`."""
    known = label.get("pairs") or {}
    alike = not label.get("includeSelectors") and bool(label.get("includeTemplates")) == templates
    mine = {name: left.pop(name) for name in list(left) if alike and name in known}
    return {**label, "pairs": _added(known, mine, force, "Labels")} if mine else label


def _entries(given: Mapping[str, str]) -> dict[str, str]:
    """argo: passed as `name:value`; double quotes around a value are removed."""
    found: dict[str, str] = {}
    for name, value in given.items():
        key, _, text = f"{name}:{value}".partition(":")
        found[key] = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    return found


def _added(known: Mapping[str, str], given: Mapping[str, str], force: bool, what: str) -> dict[str, str]:
    for name in given if not force else ():
        if name in known:
            message = f"{name} is already in the kustomization: remove it there, or set forceCommon{what}"
            raise RenderError(message, where=f"{_WHERE}.common{what}")
    return {**known, **given}


def _patches(given: Iterable[Mapping[str, Any]]) -> Iterator[Fields]:
    for place, patch in enumerate(given):
        yield shaped(dict(patch), PATCH, _WHERE, f"patches[{place}]")


def _components(known: list[str], options: KustomizeOptions, folder: Spot) -> list[str]:
    found = list(known)
    for text in options.components:
        for each in _matching(text, folder, options.ignore_missing_components):
            if each not in found:
                found.append(each)
    return found


def _matching(text: str, folder: Spot, ignore_missing: bool) -> list[str]:
    if looks_remote(text) or remote_of(text):
        # argo: a remote component counts as missing.
        return [] if ignore_missing else [text]
    where = f"{_WHERE}.components"
    found = [text] if folder.ground.find(folder.path, text, where).kind else []
    if not found and not ignore_missing:
        found = _globbed(text, folder) if _MAGIC.search(text) else []
        if not found:
            message = f"{text} does not exist: correct the path, or set ignoreMissingComponents"
            raise RenderError(message, where=where)
    return found


def _globbed(text: str, folder: Spot) -> list[str]:
    """argo: expand a glob step by step, as `kustomize edit add component` does."""
    found = [""]
    for step in text.split("/"):
        lead = [f"{each}/" if each else "" for each in found]
        if not _MAGIC.search(step):
            found = [f"{each}{step}" for each in lead]
            continue
        fits = _pattern(step)
        tree = folder.ground.tree
        found = [
            f"{each}{entry.name}"
            for each in lead
            for entry in tree.listing(joined(folder.path, each, _WHERE))
            if fits.fullmatch(entry.name)
        ]
    return [each for each in found if folder.ground.find(folder.path, each, _WHERE).kind]


def _pattern(step: str) -> re.Pattern[str]:
    pieces = re.split(r"(\*|\?|\[[^]]*\])", step)
    try:
        return re.compile("".join(map(_piece, pieces)))
    except re.error:
        raise RenderError(f"{step!r} is not a valid glob: close its bracket", where=f"{_WHERE}.components") from None


def _piece(text: str) -> str:
    if text in ("*", "?"):
        return "[^/]*" if text == "*" else "[^/]"
    return text if len(text) > 1 and text[0] == "[" and text[-1] == "]" else re.escape(text)
