"""A file tree in memory. In: texts by path. Out: a Tree. Never: touches the disk."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping, Sequence

from argosy.errors import SourceError
from argosy.gitops.application.file_tree import TreeEntry


class TextTree:
    def __init__(self, files: Mapping[str, str | bytes], links: Mapping[str, str] | None = None) -> None:
        self.files = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
        self.links = dict(links or {})

    def entry(self, path: str) -> TreeEntry | None:
        name = posixpath.basename(path)
        if path in self.links:
            return TreeEntry(name, "link", self.links[path])
        if path in self.files:
            return TreeEntry(name, "file", hashlib.sha256(self.files[path]).hexdigest())
        inside = not path or any(each.startswith(f"{path}/") for each in (*self.files, *self.links))
        return TreeEntry(name, "folder", self._folder_id(path)) if inside else None

    def _folder_id(self, path: str) -> str:
        lead = f"{path}/" if path else ""
        below = sorted(each for each in (*self.files, *self.links) if each.startswith(lead))
        held = [(each, self.links.get(each), self.files.get(each)) for each in below]
        return hashlib.sha256(repr(held).encode()).hexdigest()

    def listing(self, path: str) -> Sequence[TreeEntry]:
        lead = f"{path}/" if path else ""
        below = (each.removeprefix(lead) for each in (*self.files, *self.links) if each.startswith(lead))
        names = sorted({each.split("/")[0] for each in below})
        return [entry for name in names if (entry := self.entry(lead + name))]

    def read(self, path: str) -> bytes:
        if path in self.links:
            return self.links[path].encode()
        if path not in self.files:
            raise SourceError("no such file", where=path)
        return self.files[path]
