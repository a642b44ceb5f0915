"""The files of a commit, read from the Git object store.

In: a tree id and a path. Out: entries and file contents. Never: uses a work tree; follows a link or submodule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from argosy.errors import CorruptSource, SourceError, SourceTooLarge
from argosy.gitops.application.file_tree import TreeEntry
from argosy.gitops.source.git.object_reader import ObjectReader
from argosy.gitops.source.tree_paths import split_path

_KINDS: Mapping[bytes, Literal["file", "folder", "link"]] = {
    b"40000": "folder",
    b"040000": "folder",
    b"160000": "folder",  # a submodule: listed, but its content is not fetched
    b"120000": "link",
}


class _Named(NamedTuple):
    entry: TreeEntry
    is_submodule: bool


_Folder = Mapping[str, _Named]


class GitTree:
    """Implements `Tree`. Trees with the same id have the same content, in any commit."""

    def __init__(self, objects: ObjectReader, id: str) -> None:
        self.objects = objects
        self.id = id

    def __getstate__(self) -> tuple[ObjectReader, str]:
        return self.objects, self.id

    def __setstate__(self, state: tuple[ObjectReader, str]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def entry(self, path: str) -> TreeEntry | None:
        found = self._find(path)
        return found.entry if found else None

    def listing(self, path: str) -> Sequence[TreeEntry]:
        found = self._find(path)
        if found is None or found.entry.kind != "folder" or found.is_submodule:
            return ()
        return sorted(named.entry for named in self._folder(found.entry.id).values())

    def read(self, path: str) -> bytes:
        found = self._find(path)
        if found is None:
            raise SourceError(self._why_not(path), where=path)
        if found.entry.kind == "folder":
            raise SourceError("is a folder, not a file", where=path)
        return self.objects.read(found.entry.id).content

    def _find(self, path: str) -> _Named | None:
        here = _Named(TreeEntry("", "folder", self.id), is_submodule=False)
        for part in split_path(path):
            if here.entry.kind != "folder" or here.is_submodule:
                return None
            found = self._folder(here.entry.id).get(part)
            if found is None:
                return None
            here = found
        return here

    def _why_not(self, path: str) -> str:
        parts = split_path(path)
        for count in range(1, len(parts)):
            above = "/".join(parts[:count])
            found = self._find(above)
            if found and found.is_submodule:
                return f"{above} is a submodule, which is not fetched; add its repository as a separate source"
            if found and found.entry.kind == "link":
                return f"{above} is a link, not a folder"
        return "no such file in the repository"

    def _folder(self, id: str) -> _Folder:
        known = self.objects.folders.get(id)
        if known is None:
            found = self.objects.read(id)
            if found.kind != "tree":
                raise CorruptSource(f"object {id} is a {found.kind}, not a tree", where=self.objects.where)
            known = self._parse(found.content, len(id) // 2)
            self.objects.folders.keep(id, known, is_root=id == self.id)
        return known

    def _parse(self, content: bytes, id_length: int) -> _Folder:
        folder: dict[str, _Named] = {}
        place, end = 0, len(content)
        while place < end:
            space, zero = content.find(b" ", place), content.find(b"\0", place)
            after = zero + 1 + id_length
            if not place < space < zero or after > end:
                message = "the repository contains a malformed tree; run `git fsck` there"
                raise CorruptSource(message, where=self.objects.where)
            mode, name = content[place:space], content[space + 1 : zero].decode("utf-8", "surrogateescape")
            # git fsck rejects these names, too; code that writes a tree to disk relies on it.
            if name in ("", ".", "..") or "/" in name or name.lower() == ".git":
                message = f"the repository contains a tree with an entry named {name!r}"
                raise CorruptSource(message, where=self.objects.where)
            entry = TreeEntry(name, _KINDS.get(mode, "file"), content[zero + 1 : after].hex())
            folder[name] = _Named(entry, mode == b"160000")
            place = after
            if len(folder) > self.objects.limits.folder_entries:
                message = "the repository contains a folder with too many entries; split it"
                raise SourceTooLarge(message, where=self.objects.where)
        return folder
