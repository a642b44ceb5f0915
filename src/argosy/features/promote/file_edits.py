"""Edits the files of the target environment so that they render the promoted values.

In: moves, and the files of a kustomization. Out: the edited files. Never: edits a file outside the target's folder,
because other environments may share it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import ArgosyError, UserError
from argosy.features.promote.moves import Move, parted, shown
from argosy.features.promote.releases import Decoration, Kind, Owner, steps_of
from argosy.kube.objects import dump, load, load_all
from argosy.kube.objects.yaml_edits import REMOVED, Edit, edited

KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_OPS: Final = ("add", "replace")
Read = Callable[[str], str | None]  # reads a file of the repository; None if it does not exist


@dataclass(frozen=True)
class Kustomization:
    """The kustomization file of an overlay: its path, text and parsed value."""

    path: str
    text: str
    value: Mapping[str, Any]

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.path)

    @property
    def decoration(self) -> Decoration:
        return Decoration(str(self.value.get("namePrefix") or ""), str(self.value.get("nameSuffix") or ""))

    def entries(self, name: str) -> list[Any]:
        found = self.value.get(name)
        return found if isinstance(found, list) else []


def kustomization(folder: str, read: Read) -> Kustomization | None:
    for name in KUSTOMIZATIONS:
        path = posixpath.join(folder, name)
        if (text := read(path)) is not None:
            value = load(text, where=path)
            return Kustomization(path, text, value if isinstance(value, dict) else {})
    return None


class Writer:
    """Applies moves to the files of one environment; later edits build on earlier ones."""

    def __init__(self, folder: str, read: Read, source: Kustomization | None = None, plain: Sequence[str] = ()) -> None:
        """`plain` lists the manifest files of a folder without a kustomization."""
        found = kustomization(folder, read)
        if found is None and not plain:
            message = "no kustomization and no plain manifests found, and argosy edits only these"
            raise UserError(f"{message}; change the values by hand, and commit them", where=folder or ".")
        self.folder, self._read, self._source, self._plain = folder, read, source, plain
        self.path = found.path if found else ""
        self.files: dict[str, str] = {}

    def write(self, moves: Sequence[Move]) -> dict[str, str]:
        for move in moves:
            ways = (self._image_entry, self._literal, self._written, self._new_image_entry, self._appended)
            if not any(way(move) for way in (ways if self.path else ways[2:3])):
                told = f"{move.at.owner} {move.at.path} cannot be set in {self.path or self.folder}"
                raise UserError(f"{told}; set it to {shown(move.at, move.after)!r} by hand, and commit it")
        return {path: text for path, text in self.files.items() if text != self._read(path)}

    # -- the files, as they are after the edits so far --

    def _text(self, path: str) -> str | None:
        return self.files[path] if path in self.files else self._read(path)

    @property
    def _now(self) -> Kustomization:
        found = kustomization(self.folder, self._text)
        return found or Kustomization(f"{self.folder}/", "", {"resources": list(self._plain)})

    def _edit(self, path: str, *edits: Edit, document: int = 0) -> bool:
        text = self._text(path)
        assert text is not None
        self.files[path] = edited(text, edits, document=document, where=path)
        return True

    def _owner(self, move: Move) -> Owner:
        """The identity of the object in the target, whose name may differ from the source's."""
        if move.here is None:
            return move.at.owner
        kind = move.at.owner.kind
        name = self._now.decoration.plain(move.here.key.name, kind) if self.path else move.here.key.name
        return move.at.owner._replace(name=name)

    def _is_own(self, path: str) -> bool:
        return not path.startswith("../") and (not self.folder or path.startswith(f"{self.folder}/"))

    # -- images --

    def _image_entry(self, move: Move) -> bool:
        """Edit the entry of `images` that sets the image's version."""
        if move.kind is not Kind.IMAGE or move.here is None:
            return False
        own, _ = parted(str(move.before))
        for place, entry in enumerate(self._now.entries("images")):
            if isinstance(entry, dict) and own == str(entry.get("newName") or entry.get("name")):
                return self._edit(self.path, *_versioned(("images", place), str(move.after)))
        return False

    def _new_image_entry(self, move: Move) -> bool:
        """Add an entry to `images` if the source sets the version with one."""
        if move.kind is not Kind.IMAGE or self._source is None or self._is_set_here(move):
            return False
        wanted, own = parted(str(move.there.value))[0], parted(str(move.before))[0]
        for entry in self._source.entries("images"):
            if isinstance(entry, dict) and wanted == str(entry.get("newName") or entry.get("name")):
                made: dict[str, Any] = {"name": str(entry["name"])}
                if own != made["name"]:
                    made["newName"] = own
                made |= _version(str(move.after))
                place = len(self._now.entries("images"))
                return self._edit(self.path, Edit(("images", place), made))
        return False

    # -- parameters --

    def _literal(self, move: Move) -> bool:
        owner = self._owner(move)
        if owner.kind != "ConfigMap" or not move.at.path.startswith("data."):
            return False
        name = move.at.path.removeprefix("data.").strip('"')
        for place, entry in enumerate(self._now.entries("configMapGenerator")):
            literals = entry.get("literals") if isinstance(entry, dict) else None
            if not isinstance(literals, list) or entry.get("name") != owner.name:
                continue
            for number, literal in enumerate(literals):
                if str(literal).partition("=")[0] == name:
                    path = ("configMapGenerator", place, "literals", number)
                    return self._edit(self.path, Edit(path, f"{name}={move.after}"))
            if entry.get("behavior") == "merge":
                path = ("configMapGenerator", place, "literals", len(literals))
                return self._edit(self.path, Edit(path, f"{name}={move.after}"))
        return False

    # -- patches --

    def _is_set_here(self, move: Move) -> bool:
        return next(self._places(move), None) is not None

    def _written(self, move: Move) -> bool:
        """Edit the last patch or resource that sets the field, because the last one wins."""
        places = list(self._places(move))
        return bool(places) and places[-1](move.after)

    def _places(self, move: Move) -> Iterator[Callable[[Any], bool]]:
        """Yield a setter for each patch or resource that sets the field, in the order in which they are applied."""
        now = self._now
        for name in ("patchesStrategicMerge", "patches", "patchesJson6902"):
            for place, entry in enumerate(now.entries(name)):
                yield from self._in_patch(now, (name, place), entry, move)
        for entry in now.entries("resources"):
            path = posixpath.normpath(posixpath.join(self.folder, str(entry)))
            if self._is_own(path) and (text := self._text(path)) is not None:
                yield from self._in_file(path, text, None, move)

    def _in_patch(
        self, now: Kustomization, at: tuple[str, int], entry: Any, move: Move
    ) -> Iterator[Callable[[Any], bool]]:
        target = entry.get("target") if isinstance(entry, dict) else None
        owner = self._owner(move)
        if target is not None and not _aims(target, owner):
            return
        inline = entry if isinstance(entry, str) and "\n" in entry else None
        place = at if inline else (*at, "patch")
        inline = inline or (entry.get("patch") if isinstance(entry, dict) else None)
        if isinstance(inline, str):
            for edit in _edits(inline, target, move, owner):
                yield self._inner(place, inline, edit)
            return
        named = entry if isinstance(entry, str) else entry.get("path") if isinstance(entry, dict) else None
        path = posixpath.normpath(posixpath.join(self.folder, str(named or "")))
        if named and self._is_own(path) and (text := self._text(path)) is not None:
            yield from self._in_file(path, text, target, move)

    def _in_file(
        self, path: str, text: str, target: Mapping[str, Any] | None, move: Move
    ) -> Iterator[Callable[[Any], bool]]:
        for number, place in _edits(text, target, move, self._owner(move)):
            yield self._outer(path, number, place)

    def _outer(self, path: str, number: int, place: tuple[str | int, ...]) -> Callable[[Any], bool]:
        def write(value: Any) -> bool:
            return self._edit(path, Edit(place, value), document=number)

        return write

    def _inner(
        self, place: tuple[str | int, ...], text: str, edit: tuple[int, tuple[str | int, ...]]
    ) -> Callable[[Any], bool]:
        def write(value: Any) -> bool:
            inner = edited(text, [Edit(edit[1], value)], document=edit[0], where=self.path)
            return self._edit(self.path, Edit(place, inner))

        return write

    def _appended(self, move: Move) -> bool:
        """Append a JSON patch operation to the object's existing patch, or to a new one."""
        if "[" in move.at.path and move.here is None:
            return False
        owner = self._owner(move)
        pointer = (move.here or move.there).pointer
        operation = {"op": "replace" if move.here else "add", "path": pointer, "value": move.after}
        for place, entry in enumerate(self._now.entries("patches")):
            inline = entry.get("patch") if isinstance(entry, dict) else None
            if not isinstance(inline, str) or not _aims(entry.get("target") or {}, owner):
                continue
            found = load(inline)
            if isinstance(found, list):
                inner = edited(inline, [Edit((len(found),), operation)], where=self.path)
                return self._edit(self.path, Edit(("patches", place, "patch"), inner))
        target = {"kind": owner.kind, "name": owner.name}
        made = {"target": target, "patch": dump([operation]).rstrip("\n")}
        return self._edit(self.path, Edit(("patches", len(self._now.entries("patches"))), made))


def _versioned(path: tuple[str | int, ...], image: str) -> list[Edit]:
    version = _version(image)
    gone = [Edit((*path, name), REMOVED) for name in ("newTag", "digest") if name not in version]
    return [*(Edit((*path, name), value) for name, value in version.items()), *gone]


def _version(image: str) -> dict[str, str]:
    _, version = parted(image)
    tag, _, digest = version.partition("@")
    return {"digest": digest} if digest else {"newTag": tag.removeprefix(":") or "latest"}


def _aims(target: Any, owner: Owner) -> bool:
    """True if a patch target selects this object and no other."""
    if not isinstance(target, dict):
        return False
    if any(target.get(name) for name in ("labelSelector", "annotationSelector")):
        return False
    return target.get("kind") == owner.kind and target.get("name") in (owner.name, None)


def _edits(
    text: str, target: Mapping[str, Any] | None, move: Move, owner: Owner
) -> Iterator[tuple[int, tuple[str | int, ...]]]:
    """Yield document index and path of each value in a patch or resource that sets the field."""
    try:
        documents = [each for each in load_all(text) if each is not None]
    except ArgosyError:
        return
    pointer = move.here.pointer if move.here else ""
    for number, document in enumerate(documents):
        if isinstance(document, list):
            for place, operation in enumerate(document):
                if target is not None and _sets(operation, pointer):
                    yield number, (place, "value")
        elif isinstance(document, dict) and (target is not None or _is_of(document, owner)):
            path = _walked(document, move)
            if path is not None:
                yield number, path


def _sets(operation: Any, pointer: str) -> bool:
    return isinstance(operation, dict) and operation.get("op") in _OPS and operation.get("path") == pointer


def _is_of(document: Mapping[str, Any], owner: Owner) -> bool:
    name = (document.get("metadata") or {}).get("name")
    return document.get("kind") == owner.kind and name == owner.name


def _walked(document: Any, move: Move) -> tuple[str | int, ...] | None:
    """Find the path of the field in a merge patch; list elements are matched by name."""
    here, path = document, list[str | int]()
    for step in steps_of(move.at.path):
        if isinstance(here, dict) and step.name in here:
            here = here[step.name]
            path.append(step.name)
        elif step.name:
            return None
        if step.element is not None:
            if not isinstance(here, list):
                return None
            place = next((at for at, each in enumerate(here) if _is_named(each, step.element, at)), None)
            if place is None:
                return None
            here = here[place]
            path.append(place)
    return tuple(path)


def _is_named(element: Any, name: str, place: int) -> bool:
    named = element.get("name") if isinstance(element, dict) else None
    return str(place) == name if named is None else named == name
