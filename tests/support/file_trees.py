"""A file tree in memory. In: texts by path. Out: a Tree. Never: touches the disk."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping, Sequence

from argosy.errors import SourceError
from argosy.gitops.application.file_tree_protocol import TreeEntry


class TextTree:
    def __init__(self, files: Mapping[str, str | bytes], links: Mapping[str, str] | None = None) -> None:
        self.files = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
        self.links = dict(links or {})

    def find_entry(self, path: str) -> TreeEntry | None:
        name = posixpath.basename(path)
        if path in self.links:
            return TreeEntry(name, "link", self.links[path])
        if path in self.files:
            return TreeEntry(name, "file", hashlib.sha256(self.files[path]).hexdigest())
        inside = not path or any(file.startswith(f"{path}/") for file in (*self.files, *self.links))
        return TreeEntry(name, "folder", self._folder_id(path)) if inside else None

    def _folder_id(self, path: str) -> str:
        lead = f"{path}/" if path else ""
        below = sorted(file for file in (*self.files, *self.links) if file.startswith(lead))
        contents = [(file, self.links.get(file), self.files.get(file)) for file in below]
        return hashlib.sha256(repr(contents).encode()).hexdigest()

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        lead = f"{path}/" if path else ""
        below = (file.removeprefix(lead) for file in (*self.files, *self.links) if file.startswith(lead))
        names = sorted({file.split("/")[0] for file in below})
        return [entry for name in names if (entry := self.find_entry(lead + name))]

    def read_file(self, path: str) -> bytes:
        if path in self.links:
            return self.links[path].encode()
        if path not in self.files:
            raise SourceError("no such file", where=path)
        return self.files[path]
