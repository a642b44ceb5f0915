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
from argosy.features.promote.classified_manifest_fields import (
    FieldKind,
    NameDecoration,
    ObjectIdentity,
    parse_field_path,
)
from argosy.features.promote.promotion_changes import FieldMove, mask_field_value, split_image
from argosy.kube.objects import dump_yaml, read_yaml, read_yaml_documents
from argosy.kube.objects.yaml_edits import REMOVED, YamlEdit, edited

KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_SETTING_OPERATIONS: Final = ("add", "replace")
ReadRepositoryFile = Callable[[str], str | None]  # reads a file of the repository; None if it does not exist


@dataclass(frozen=True)
class OverlayFile:
    """The kustomization file of an overlay: its path, text and parsed value."""

    path: str
    text: str
    value: Mapping[str, Any]

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.path)

    @property
    def decoration(self) -> NameDecoration:
        return NameDecoration(str(self.value.get("namePrefix") or ""), str(self.value.get("nameSuffix") or ""))

    def list_entries(self, name: str) -> list[Any]:
        entries = self.value.get(name)
        return entries if isinstance(entries, list) else []


def find_overlay_file(folder: str, read: ReadRepositoryFile) -> OverlayFile | None:
    for name in KUSTOMIZATIONS:
        path = posixpath.join(folder, name)
        if (text := read(path)) is not None:
            value = read_yaml(text, where=path)
            return OverlayFile(path, text, value if isinstance(value, dict) else {})
    return None


class OverlayWriter:
    """Applies moves to the files of one environment; later edits build on earlier ones."""

    def __init__(
        self, folder: str, read: ReadRepositoryFile, source: OverlayFile | None = None, plain: Sequence[str] = ()
    ) -> None:
        """`plain` lists the manifest files of a folder without a kustomization."""
        overlay = find_overlay_file(folder, read)
        if overlay is None and not plain:
            message = "no kustomization and no plain manifests found, and argosy edits only these"
            raise UserError(f"{message}; change the values by hand, and commit them", where=folder or ".")
        self.folder, self._read, self._source, self._plain = folder, read, source, plain
        self.path = overlay.path if overlay else ""
        self.edited_files: dict[str, str] = {}

    def write(self, moves: Sequence[FieldMove]) -> dict[str, str]:
        for move in moves:
            methods = (
                self._edit_image_entry,
                self._edit_literal,
                self._edit_last_setter,
                self._add_image_entry,
                self._append_json_patch_operation,
            )
            if not any(method(move) for method in (methods if self.path else methods[2:3])):
                problem = f"{move.address.owner} {move.address.path} cannot be set in {self.path or self.folder}"
                raise UserError(
                    f"{problem}; set it to {mask_field_value(move.address, move.after)!r} by hand, and commit it"
                )
        return {path: text for path, text in self.edited_files.items() if text != self._read(path)}

    # -- the files, as they are after the edits so far --

    def _read_current(self, path: str) -> str | None:
        return self.edited_files[path] if path in self.edited_files else self._read(path)

    @property
    def _current_overlay(self) -> OverlayFile:
        overlay = find_overlay_file(self.folder, self._read_current)
        return overlay or OverlayFile(f"{self.folder}/", "", {"resources": list(self._plain)})

    def _edit(self, path: str, *edits: YamlEdit, document: int = 0) -> bool:
        text = self._read_current(path)
        assert text is not None
        self.edited_files[path] = edited(text, edits, document_index=document, where=path)
        return True

    def _find_target_identity(self, move: FieldMove) -> ObjectIdentity:
        """The identity of the object in the target, whose name may differ from the source's."""
        if move.target_field is None:
            return move.address.owner
        kind = move.address.owner.kind
        name = (
            self._current_overlay.decoration.strip_name(move.target_field.key.name, kind)
            if self.path
            else move.target_field.key.name
        )
        return move.address.owner._replace(name=name)

    def _is_inside_folder(self, path: str) -> bool:
        return not path.startswith("../") and (not self.folder or path.startswith(f"{self.folder}/"))

    # -- images --

    def _edit_image_entry(self, move: FieldMove) -> bool:
        """Edit the entry of `images` that sets the image's version."""
        if move.kind is not FieldKind.IMAGE or move.target_field is None:
            return False
        image_name, _ = split_image(str(move.before))
        for index, entry in enumerate(self._current_overlay.list_entries("images")):
            if isinstance(entry, dict) and image_name == str(entry.get("newName") or entry.get("name")):
                return self._edit(self.path, *_build_version_edits(("images", index), str(move.after)))
        return False

    def _add_image_entry(self, move: FieldMove) -> bool:
        """Add an entry to `images` if the source sets the version with one."""
        if move.kind is not FieldKind.IMAGE or self._source is None or self._is_set_in_target(move):
            return False
        source_name, target_name = split_image(str(move.source_field.value))[0], split_image(str(move.before))[0]
        for entry in self._source.list_entries("images"):
            if isinstance(entry, dict) and source_name == str(entry.get("newName") or entry.get("name")):
                new_entry: dict[str, Any] = {"name": str(entry["name"])}
                if target_name != new_entry["name"]:
                    new_entry["newName"] = target_name
                new_entry |= _read_version_fields(str(move.after))
                index = len(self._current_overlay.list_entries("images"))
                return self._edit(self.path, YamlEdit(("images", index), new_entry))
        return False

    # -- parameters --

    def _edit_literal(self, move: FieldMove) -> bool:
        owner = self._find_target_identity(move)
        if owner.kind != "ConfigMap" or not move.address.path.startswith("data."):
            return False
        name = move.address.path.removeprefix("data.").strip('"')
        for index, entry in enumerate(self._current_overlay.list_entries("configMapGenerator")):
            literals = entry.get("literals") if isinstance(entry, dict) else None
            if not isinstance(literals, list) or entry.get("name") != owner.name:
                continue
            for number, literal in enumerate(literals):
                if str(literal).partition("=")[0] == name:
                    path = ("configMapGenerator", index, "literals", number)
                    return self._edit(self.path, YamlEdit(path, f"{name}={move.after}"))
            if entry.get("behavior") == "merge":
                path = ("configMapGenerator", index, "literals", len(literals))
                return self._edit(self.path, YamlEdit(path, f"{name}={move.after}"))
        return False

    # -- patches --

    def _is_set_in_target(self, move: FieldMove) -> bool:
        return next(self._iterate_setters(move), None) is not None

    def _edit_last_setter(self, move: FieldMove) -> bool:
        """Edit the last patch or resource that sets the field, because the last one wins."""
        setters = list(self._iterate_setters(move))
        return bool(setters) and setters[-1](move.after)

    def _iterate_setters(self, move: FieldMove) -> Iterator[Callable[[Any], bool]]:
        """Yield a setter for each patch or resource that sets the field, in the order in which they are applied."""
        now = self._current_overlay
        for name in ("patchesStrategicMerge", "patches", "patchesJson6902"):
            for index, entry in enumerate(now.list_entries(name)):
                yield from self._iterate_patch_setters(now, (name, index), entry, move)
        for entry in now.list_entries("resources"):
            path = posixpath.normpath(posixpath.join(self.folder, str(entry)))
            if self._is_inside_folder(path) and (text := self._read_current(path)) is not None:
                yield from self._iterate_file_setters(path, text, None, move)

    def _iterate_patch_setters(
        self, now: OverlayFile, entry_path: tuple[str, int], entry: Any, move: FieldMove
    ) -> Iterator[Callable[[Any], bool]]:
        target = entry.get("target") if isinstance(entry, dict) else None
        owner = self._find_target_identity(move)
        if target is not None and not _is_patch_for(target, owner):
            return
        inline = entry if isinstance(entry, str) and "\n" in entry else None
        patch_path = entry_path if inline else (*entry_path, "patch")
        inline = inline or (entry.get("patch") if isinstance(entry, dict) else None)
        if isinstance(inline, str):
            for edit in _iterate_edit_paths(inline, target, move, owner):
                yield self._build_inline_setter(patch_path, inline, edit)
            return
        file_name = entry if isinstance(entry, str) else entry.get("path") if isinstance(entry, dict) else None
        path = posixpath.normpath(posixpath.join(self.folder, str(file_name or "")))
        if file_name and self._is_inside_folder(path) and (text := self._read_current(path)) is not None:
            yield from self._iterate_file_setters(path, text, target, move)

    def _iterate_file_setters(
        self, path: str, text: str, target: Mapping[str, Any] | None, move: FieldMove
    ) -> Iterator[Callable[[Any], bool]]:
        for number, field_path in _iterate_edit_paths(text, target, move, self._find_target_identity(move)):
            yield self._build_file_setter(path, number, field_path)

    def _build_file_setter(self, path: str, number: int, field_path: tuple[str | int, ...]) -> Callable[[Any], bool]:
        def write(value: Any) -> bool:
            return self._edit(path, YamlEdit(field_path, value), document=number)

        return write

    def _build_inline_setter(
        self, patch_path: tuple[str | int, ...], text: str, edit: tuple[int, tuple[str | int, ...]]
    ) -> Callable[[Any], bool]:
        def write(value: Any) -> bool:
            inner = edited(text, [YamlEdit(edit[1], value)], document_index=edit[0], where=self.path)
            return self._edit(self.path, YamlEdit(patch_path, inner))

        return write

    def _append_json_patch_operation(self, move: FieldMove) -> bool:
        """Append a JSON patch operation to the object's existing patch, or to a new one."""
        if "[" in move.address.path and move.target_field is None:
            return False
        owner = self._find_target_identity(move)
        pointer = (move.target_field or move.source_field).pointer
        operation = {"op": "replace" if move.target_field else "add", "path": pointer, "value": move.after}
        for index, entry in enumerate(self._current_overlay.list_entries("patches")):
            inline = entry.get("patch") if isinstance(entry, dict) else None
            if not isinstance(inline, str) or not _is_patch_for(entry.get("target") or {}, owner):
                continue
            operations = read_yaml(inline)
            if isinstance(operations, list):
                inner = edited(inline, [YamlEdit((len(operations),), operation)], where=self.path)
                return self._edit(self.path, YamlEdit(("patches", index, "patch"), inner))
        target = {"kind": owner.kind, "name": owner.name}
        new_patch = {"target": target, "patch": dump_yaml([operation]).rstrip("\n")}
        return self._edit(
            self.path, YamlEdit(("patches", len(self._current_overlay.list_entries("patches"))), new_patch)
        )


def _build_version_edits(path: tuple[str | int, ...], image: str) -> list[YamlEdit]:
    version = _read_version_fields(image)
    removals = [YamlEdit((*path, name), REMOVED) for name in ("newTag", "digest") if name not in version]
    return [*(YamlEdit((*path, name), value) for name, value in version.items()), *removals]


def _read_version_fields(image: str) -> dict[str, str]:
    _, version = split_image(image)
    tag, _, digest = version.partition("@")
    return {"digest": digest} if digest else {"newTag": tag.removeprefix(":") or "latest"}


def _is_patch_for(target: Any, owner: ObjectIdentity) -> bool:
    """True if a patch target selects this object and no other."""
    if not isinstance(target, dict):
        return False
    if any(target.get(name) for name in ("labelSelector", "annotationSelector")):
        return False
    return target.get("kind") == owner.kind and target.get("name") in (owner.name, None)


def _iterate_edit_paths(
    text: str, target: Mapping[str, Any] | None, move: FieldMove, owner: ObjectIdentity
) -> Iterator[tuple[int, tuple[str | int, ...]]]:
    """Yield document index and path of each value in a patch or resource that sets the field."""
    try:
        documents = [item for item in read_yaml_documents(text) if item is not None]
    except ArgosyError:
        return
    pointer = move.target_field.pointer if move.target_field else ""
    for number, document in enumerate(documents):
        if isinstance(document, list):
            for index, operation in enumerate(document):
                if target is not None and _sets_pointer(operation, pointer):
                    yield number, (index, "value")
        elif isinstance(document, dict) and (target is not None or _is_manifest_of(document, owner)):
            path = _find_path(document, move)
            if path is not None:
                yield number, path


def _sets_pointer(operation: Any, pointer: str) -> bool:
    return (
        isinstance(operation, dict) and operation.get("op") in _SETTING_OPERATIONS and operation.get("path") == pointer
    )


def _is_manifest_of(document: Mapping[str, Any], owner: ObjectIdentity) -> bool:
    name = (document.get("metadata") or {}).get("name")
    return document.get("kind") == owner.kind and name == owner.name


def _find_path(document: Any, move: FieldMove) -> tuple[str | int, ...] | None:
    """Find the path of the field in a merge patch; list elements are matched by name."""
    current, path = document, list[str | int]()
    for step in parse_field_path(move.address.path):
        if isinstance(current, dict) and step.name in current:
            current = current[step.name]
            path.append(step.name)
        elif step.name:
            return None
        if step.element is not None:
            if not isinstance(current, list):
                return None
            index = next(
                (position for position, element in enumerate(current) if _has_name(element, step.element, position)),
                None,
            )
            if index is None:
                return None
            current = current[index]
            path.append(index)
    return tuple(path)


def _has_name(element: Any, name: str, index: int) -> bool:
    element_name = element.get("name") if isinstance(element, dict) else None
    return str(index) == name if element_name is None else element_name == name
