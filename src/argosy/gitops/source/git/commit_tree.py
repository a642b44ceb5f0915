"""The files of a commit, read from the Git object store.

In: a tree id and a path. Out: entries and file contents. Never: uses a work tree; follows a link or submodule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from argosy.errors import CorruptSource, SourceError, SourceTooLarge, UnnamedSubmodule
from argosy.gitops.application.file_tree_protocol import TreeEntry
from argosy.gitops.application.gitmodules import GITMODULES_FILE, Submodule, read_gitmodules
from argosy.gitops.source.git.object_reader import ObjectReader
from argosy.gitops.source.validated_path_components import split_path

_KIND_BY_MODE: Mapping[bytes, Literal["file", "folder", "link"]] = {
    b"40000": "folder",
    b"040000": "folder",
    b"160000": "folder",  # a submodule: listed, but its content is not fetched
    b"120000": "link",
}


class _FolderEntry(NamedTuple):
    entry: TreeEntry
    is_submodule: bool


_FolderEntries = Mapping[str, _FolderEntry]


class GitTree:
    """Implements `FileTree`. Trees with the same id have the same content, in any commit.

    `empty_submodules`: which submodules may be read as empty folders; None: all. Reading another one is a SourceError,
    because what was rendered without its files would prune their objects.
    """

    def __init__(self, objects: ObjectReader, id: str, empty_submodules: frozenset[str] | None = None) -> None:
        self.objects = objects
        self.id = id
        self.empty_submodules = empty_submodules
        self.submodules: Sequence[tuple[Submodule, str]] | None = None  # None: not loaded yet

    def __getstate__(self) -> tuple[ObjectReader, str, frozenset[str] | None]:
        return self.objects, self.id, self.empty_submodules

    def __setstate__(self, state: tuple[ObjectReader, str, frozenset[str] | None]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def find_entry(self, path: str) -> TreeEntry | None:
        match = self._find_entry(path)
        return match.entry if match else None

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        match = self._find_entry(path)
        if match is None or match.entry.kind != "folder":
            return ()
        if match.is_submodule:
            self._check_may_be_empty(path)
            return ()
        return sorted(folder_entry.entry for folder_entry in self._load_folder(match.entry.id).values())

    def read_file(self, path: str) -> bytes:
        match = self._find_entry(path)
        if match is None:
            raise SourceError(self._explain_missing(path), where=path)
        if match.entry.kind == "folder":
            raise SourceError("is a folder, not a file", where=path)
        return self.objects.read(match.entry.id).content

    def load_submodules(self) -> Sequence[tuple[Submodule, str]]:
        """Return the submodules that .gitmodules names, with their commits.

        As in git, a path without a submodule in the commit is ignored. Raises SourceError if git rejects .gitmodules.
        """
        entry = self.find_entry(GITMODULES_FILE)
        submodules: list[tuple[Submodule, str]] = []
        if entry is not None and entry.kind == "file":
            for submodule in read_gitmodules(self.read_file(GITMODULES_FILE).decode("utf-8", "surrogateescape")):
                match = self._find_submodule(submodule.path)
                if match is not None:
                    submodules.append((submodule, match.entry.id))
        self.submodules = submodules
        return submodules

    def require_submodules(self, empty_submodules: frozenset[str]) -> GitTree:
        """Return this tree, in which only these submodules may be read as empty folders."""
        return GitTree(self.objects, self.id, empty_submodules)

    def _find_submodule(self, path: str) -> _FolderEntry | None:
        try:
            match = GitTree(self.objects, self.id)._find_entry(path)
        except SourceError:
            return None  # not a path of a tree
        return match if match is not None and match.is_submodule else None

    def _check_may_be_empty(self, path: str) -> None:
        if self.empty_submodules is not None and path not in self.empty_submodules:
            message = f"no url found for submodule path '{path}' in .gitmodules"  # argo: git says so
            raise UnnamedSubmodule(
                f"{message}; add the submodule there, or remove it: git rm --cached {path}", where=self.objects.where
            )

    def _find_entry(self, path: str) -> _FolderEntry | None:
        current = _FolderEntry(TreeEntry("", "folder", self.id), is_submodule=False)
        parts = split_path(path)
        for depth, part in enumerate(parts):
            if current.is_submodule:
                self._check_may_be_empty("/".join(parts[:depth]))
            if current.entry.kind != "folder" or current.is_submodule:
                return None
            child = self._load_folder(current.entry.id).get(part)
            if child is None:
                return None
            current = child
        return current

    def _explain_missing(self, path: str) -> str:
        parts = split_path(path)
        for count in range(1, len(parts)):
            ancestor = "/".join(parts[:count])
            match = self._find_entry(ancestor)
            if match and match.is_submodule:
                return f"{ancestor} is a submodule that is not fetched; add its repository as a separate source"
            if match and match.entry.kind == "link":
                return f"{ancestor} is a link, not a folder"
        return "no such file in the repository"

    def _load_folder(self, id: str) -> _FolderEntries:
        entries = self.objects.folders.get(id)
        if entries is None:
            tree_object = self.objects.read(id)
            if tree_object.kind != "tree":
                raise CorruptSource(f"object {id} is a {tree_object.kind}, not a tree", where=self.objects.where)
            entries = self._parse_tree(tree_object.content, len(id) // 2)
            self.objects.folders.store(id, entries, is_root=id == self.id)
        return entries

    def _parse_tree(self, content: bytes, id_length: int) -> _FolderEntries:
        folder: dict[str, _FolderEntry] = {}
        position, end = 0, len(content)
        while position < end:
            space, nul = content.find(b" ", position), content.find(b"\0", position)
            next_position = nul + 1 + id_length
            if not position < space < nul or next_position > end:
                message = "the repository contains a malformed tree; run `git fsck` there"
                raise CorruptSource(message, where=self.objects.where)
            mode, name = content[position:space], content[space + 1 : nul].decode("utf-8", "surrogateescape")
            # git fsck rejects these names, too; code that writes a tree to disk relies on it.
            if name in ("", ".", "..") or "/" in name or name.lower() == ".git":
                message = f"the repository contains a tree with an entry named {name!r}"
                raise CorruptSource(message, where=self.objects.where)
            id = content[nul + 1 : next_position].hex()
            entry = TreeEntry(name, _KIND_BY_MODE.get(mode, "file"), id, mode == b"100755")
            folder[name] = _FolderEntry(entry, mode == b"160000")
            position = next_position
            if len(folder) > self.objects.limits.folder_entries:
                message = "the repository contains a folder with too many entries; split it"
                raise SourceTooLarge(message, where=self.objects.where)
        return folder
