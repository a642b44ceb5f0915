"""What a render has looked at, so that the next revision need not be rendered when all of it is the same.

In: a tree, and what asks for its files. Out: ids by input; whether another tree answers every question alike.
Never: reads a file to find out.

The path of an input says what was asked: `a/b` for what is there (the id of a file, `folder`, or nothing), `a/b/` for
the names in a folder. `a/b//` was not asked: it is the id of a whole folder, which spares a look at what is in it.
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
    """Implements `Tree`, and notes every answer. A folder that is only looked at may change inside."""

    def __init__(self, tree: Tree, place: str, record: dict[Input, str]) -> None:
        self.tree = tree
        self.place = place
        self.record = record

    def __reduce__(self) -> tuple[Callable[[Tree], Tree], tuple[Tree]]:
        return _itself, (self.tree,)  # whoever asks in another process is not the render

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
    """Build variables; only those that somebody asks for are inputs."""

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
    """Fetches each remote base once. What was fetched travels along to other processes; there, the rest is refused."""

    def __init__(self, fetch: Fetch, record: dict[Input, str]) -> None:
        self._fetch: Fetch | None = fetch
        self._record = record
        self._trees: dict[tuple[str, str], Tree] = {}

    def __call__(self, url: str, ref: str) -> Tree:
        known = self._trees.get((url, ref))
        if known is None:
            if self._fetch is None:
                raise SourceError("was not fetched when this was rendered; render it again", where=f"{url}@{ref}")
            known = RecordingTree(self._fetch(url, ref), f"{url}@{ref}", self._record)
            self._trees[url, ref] = known
        return known

    def __getstate__(self) -> dict[str, Any]:
        return {"_fetch": None, "_record": {}, "_trees": self._trees}


def _itself(tree: Tree) -> Tree:
    return tree


def are_current(inputs: Mapping[Input, str], trees: Mapping[str, Tree], environment: Mapping[str, str]) -> bool:
    """Would the same source of the same application, with the same settings, give the same again?

    `trees` are by place; an input of a place that is not among them counts as changed.
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
    """A commit knows the ids of its folders; to find that of a folder on a disk means to read all that is in it."""
    return bool(getattr(tree, "id", ""))


def whole_folders(tree: Tree, place: str, record: Mapping[Input, str]) -> dict[Input, str]:
    """Folders of which several things were asked.

    They must be the first of all inputs, to be found without a look at the others.
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
    # argo: with manifest-generate-paths, what was rendered is carried to the new commit, its old revision included.
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
    # A link and a file may hold the same bytes.
    return entry.id if entry.kind == "file" else f"link {entry.id}"


def _digest(entries: Sequence[TreeEntry]) -> str:
    text = "\0".join(f"{entry.kind}/{entry.name}" for entry in entries)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
