"""Records what a render read, so that a later revision with the same inputs need not be rendered.

In: a tree, and the lookups of its readers. Out: ids by input; whether another tree has the same ids.
Never: reads a file to compare it.

The path of an input says which lookup was made: `a/b` for the entry (the id of a file, `folder`, or empty), `a/b/` for
the names in a folder. `a/b//` is not a lookup: it is the id of a whole folder, and avoids comparing every file in it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from argosy.errors import SourceError
from argosy.gitops.application.file_tree import Tree, TreeEntry
from argosy.gitops.application.step_results import Input
from argosy.gitops.render.generate_paths import PATHS, paths_are_current
from argosy.gitops.render.settings import Fetch

ENVIRONMENT: Final = "env"
_FOLDER: Final = "folder"
_WORTH_IT: Final = 3


class RecordingTree:
    """Implements `Tree`, and records the id of every lookup. A folder that is only looked up may change inside."""

    def __init__(self, tree: Tree, place: str, record: dict[Input, str]) -> None:
        self.tree = tree
        self.place = place
        self.record = record

    def __reduce__(self) -> tuple[Callable[[Tree], Tree], tuple[Tree]]:
        return _itself, (self.tree,)  # lookups in another process do not belong to the render

    def entry(self, path: str) -> TreeEntry | None:
        found = self.tree.entry(path)
        self.record[Input(self.place, path)] = _mark(found)
        return found

    def listing(self, path: str) -> Sequence[TreeEntry]:
        found = self.tree.listing(path)
        self.record[Input(self.place, f"{path}/")] = _digest(found)
        return found

    def read(self, path: str) -> bytes:
        if Input(self.place, path) not in self.record:
            self.entry(path)
        return self.tree.read(path)


class RecordingEnvironment(Mapping[str, str]):
    """Build variables; only those that are looked up become inputs."""

    def __init__(self, variables: Mapping[str, str], record: dict[Input, str]) -> None:
        self.variables = variables
        self.record = record

    def __reduce__(self) -> tuple[type[dict[str, str]], tuple[dict[str, str]]]:
        return dict, (dict(self.variables),)

    def __getitem__(self, name: str) -> str:
        self.record[Input(ENVIRONMENT, name)] = self.variables.get(name, "")
        return self.variables[name]

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)


class RecordingFetch:
    """Fetches each remote base once. Pickling keeps the fetched trees; another process cannot fetch more."""

    def __init__(self, fetch: Fetch, record: dict[Input, str]) -> None:
        self._fetch: Fetch | None = fetch
        self._record = record
        self._trees: dict[tuple[str, str], Tree] = {}

    def __call__(self, url: str, ref: str) -> Tree:
        known = self._trees.get((url, ref))
        if known is None:
            if self._fetch is None:
                raise SourceError("was not fetched during the render; render again", where=f"{url}@{ref}")
            known = RecordingTree(self._fetch(url, ref), f"{url}@{ref}", self._record)
            self._trees[url, ref] = known
        return known

    def __getstate__(self) -> dict[str, Any]:
        return {"_fetch": None, "_record": {}, "_trees": self._trees}


def _itself(tree: Tree) -> Tree:
    return tree


def are_current(inputs: Mapping[Input, str], trees: Mapping[str, Tree], environment: Mapping[str, str]) -> bool:
    """True if the same source with the same settings would render the same manifests again.

    `trees` are keyed by scope; an input of a scope that is not in `trees` counts as changed.
    """
    skipped = paths_are_current(inputs, trees)
    same = _same_folders(inputs, trees)
    for (place, path), id in inputs.items():
        if place in same and (path.rpartition("/")[0] in same[place] or path in same[place]):
            continue
        if path.endswith("//"):
            continue
        if place == PATHS or (skipped and _is_of_commit(place, path)):
            continue
        if place == ENVIRONMENT:
            if environment.get(path, "") != id:
                return False
        elif place not in trees or _ask(trees[place], path) != id:
            return False
    return True


def knows_ids(tree: Tree) -> bool:
    """True if the tree stores folder ids, as a commit does; on disk, computing one means reading every file below."""
    return bool(getattr(tree, "id", ""))


def whole_folders(tree: Tree, place: str, record: Mapping[Input, str]) -> dict[Input, str]:
    """Return inputs for whole folders in which several lookups were made.

    They must come first among the inputs, so that they are found without reading the others.
    """
    if not knows_ids(tree):
        return {}
    asked = Counter(path.rpartition("/")[0] for where, path in record if where == place)
    found = {folder: tree.entry(folder) for folder, count in asked.items() if count >= _WORTH_IT}
    return {Input(place, f"{folder}//"): each.id for folder, each in found.items() if each and each.kind == "folder"}


def _same_folders(inputs: Mapping[Input, str], trees: Mapping[str, Tree]) -> dict[str, set[str]]:
    same: dict[str, set[str]] = {}
    for (place, path), id in inputs.items():
        if not path.endswith("//"):
            break
        entry = trees[place].entry(path[:-2]) if place in trees else None
        if entry is not None and entry.kind == "folder" and entry.id == id:
            same.setdefault(place, set()).add(path[:-2])
    return same


def _is_of_commit(place: str, path: str) -> bool:
    # argo: with manifest-generate-paths, the last render is reused for the new commit, with its old revision in it.
    return not place or (place == ENVIRONMENT and path.startswith("ARGOCD_APP_REVISION"))


def _ask(tree: Tree, path: str) -> str:
    if path.endswith("/"):
        return _digest(tree.listing(path[:-1]))
    return _mark(tree.entry(path))


def _mark(entry: TreeEntry | None) -> str:
    if entry is None:
        return ""
    if entry.kind == "folder":
        return _FOLDER
    # A link and a file may have the same content, hence the same id.
    return entry.id if entry.kind == "file" else f"link {entry.id}"


def _digest(entries: Sequence[TreeEntry]) -> str:
    text = "\0".join(f"{entry.kind}/{entry.name}" for entry in entries)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
