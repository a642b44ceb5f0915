"""File tree of a commit with the edits of a working tree on top: the content of the next commit.

In: the commit's tree, the folder, the changed paths. Out: a tree. Never: includes a file that git ignores; reads an
unchanged file from the checkout, where filters and line endings may have changed it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from argosy.errors import SourceError
from argosy.gitops.application.file_tree_protocol import FileTree, TreeEntry
from argosy.gitops.source.git.local_repository import ChangedFile


class WorkingTreeOverlay:
    """Implements `Tree`."""

    def __init__(self, base: FileTree, folder: FileTree, changed: Iterable[ChangedFile]) -> None:
        self.base, self.folder = base, folder
        self._exists_after = {changed_file.path: changed_file.exists_after for changed_file in changed}
        self._names: dict[str, set[str]] = defaultdict(set)  # folder → names in it that lead to a changed file
        for path in self._exists_after:
            while path:
                parent, _, name = path.rpartition("/")
                self._names[parent].add(name)
                path = parent

    def find_entry(self, path: str) -> TreeEntry | None:
        if self._exists_after.get(path):
            file_entry = self.folder.find_entry(path)
            return file_entry if file_entry is not None and file_entry.kind != "folder" else None
        if path in self._names:  # also if a folder replaced a file
            exists = not path or bool(self.list_folder(path))
            return TreeEntry(path.rpartition("/")[2], "folder", "") if exists else None
        return None if path in self._exists_after else self.base.find_entry(path)

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        if path not in self._names:
            return () if path in self._exists_after else self.base.list_folder(path)
        if self._exists_after.get(path):
            return ()
        prefix = f"{path}/" if path else ""
        unchanged = [
            tree_entry for tree_entry in self.base.list_folder(path) if tree_entry.name not in self._names[path]
        ]
        new = (self.find_entry(prefix + name) for name in self._names[path])
        return sorted([*unchanged, *filter(None, new)], key=lambda tree_entry: tree_entry.name)

    def read_file(self, path: str) -> bytes:
        if path not in self._exists_after:
            return self.base.read_file(path)
        if not self._exists_after[path]:
            raise SourceError("no such file", where=path)
        return self.folder.read_file(path)
