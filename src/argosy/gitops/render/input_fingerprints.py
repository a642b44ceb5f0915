"""Records what a render read, so that a later revision with the same inputs need not be rendered.

In: a tree, and the lookups of its readers. Out: ids by input; whether another tree has the same ids.
Never: reads a file to compare it.

The path of an input says which lookup was made: `a/b` for the entry (the id of a file, `folder`, or empty), `a/b/` for
the names in a folder. `a/b//` is not a lookup: it is the id of a whole folder, and avoids comparing every file in it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from typing import Any, Final

from argosy.errors import SourceError
from argosy.gitops.application.file_tree_protocol import FileTree, TreeEntry
from argosy.gitops.application.gitmodules import GITMODULES_FILE
from argosy.gitops.application.step_results import RenderInput
from argosy.gitops.render.manifest_generate_paths import GENERATE_PATHS_SCOPE, are_generate_paths_unchanged
from argosy.gitops.render.settings import FetchTree

ENVIRONMENT_SCOPE: Final = "env"
_FOLDER_ID: Final = "folder"
_MIN_LOOKUPS_PER_FOLDER: Final = 3


class SerializedRenderInputs(Mapping[RenderInput, str]):
    """The inputs of a render as one JSON text: an engine keeps a dozen for each of thousands of Applications."""

    __slots__ = ("_json_text",)

    def __init__(self, inputs: Mapping[RenderInput, str]) -> None:
        self._json_text = json.dumps([(*render_input, id) for render_input, id in inputs.items()])

    def _parse(self) -> dict[RenderInput, str]:
        return {RenderInput(scope, path): id for scope, path, id in json.loads(self._json_text)}

    def __getitem__(self, render_input: RenderInput) -> str:
        return self._parse()[render_input]

    def __iter__(self) -> Iterator[RenderInput]:
        return iter(self._parse())

    def __len__(self) -> int:
        return len(self._parse())

    def items(self) -> ItemsView[RenderInput, str]:
        return self._parse().items()


class RecordingTree:
    """Implements `Tree`, and records the id of every lookup. A folder that is only looked up may change inside."""

    def __init__(self, tree: FileTree, scope: str, record: dict[RenderInput, str]) -> None:
        self.tree = tree
        self.scope = scope
        self.record = record
        self.find_entry(GITMODULES_FILE)  # it decides what the folders of submodules have, whatever their ids are

    def __reduce__(self) -> tuple[Callable[[FileTree], FileTree], tuple[FileTree]]:
        return _return_tree, (self.tree,)  # lookups in another process do not belong to the render

    def find_entry(self, path: str) -> TreeEntry | None:
        entry = self.tree.find_entry(path)
        self.record[RenderInput(self.scope, path)] = _compute_entry_id(entry)
        return entry

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        entries = self.tree.list_folder(path)
        self.record[RenderInput(self.scope, f"{path}/")] = _hash_entry_names(entries)
        return entries

    def read_file(self, path: str) -> bytes:
        if RenderInput(self.scope, path) not in self.record:
            self.find_entry(path)
        return self.tree.read_file(path)


class RecordingEnvironment(Mapping[str, str]):
    """Build variables; only those that are looked up become inputs."""

    def __init__(self, variables: Mapping[str, str], record: dict[RenderInput, str]) -> None:
        self.variables = variables
        self.record = record

    def __reduce__(self) -> tuple[type[dict[str, str]], tuple[dict[str, str]]]:
        return dict, (dict(self.variables),)

    def __getitem__(self, name: str) -> str:
        self.record[RenderInput(ENVIRONMENT_SCOPE, name)] = self.variables.get(name, "")
        return self.variables[name]

    def __contains__(self, name: object) -> bool:
        return name in self.variables

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)


class RecordingFetch:
    """Fetches each remote base once. Pickling keeps the fetched trees; another process cannot fetch more."""

    def __init__(self, fetch: FetchTree, record: dict[RenderInput, str]) -> None:
        self._fetch: FetchTree | None = fetch
        self._record = record
        self._trees: dict[tuple[str, str], FileTree] = {}

    def __call__(self, url: str, ref: str) -> FileTree:
        tree = self._trees.get((url, ref))
        if tree is None:
            if self._fetch is None:
                raise SourceError("was not fetched during the render; render again", where=f"{url}@{ref}")
            tree = RecordingTree(self._fetch(url, ref), f"{url}@{ref}", self._record)
            self._trees[url, ref] = tree
        return tree

    def __getstate__(self) -> dict[str, Any]:
        return {"_fetch": None, "_record": {}, "_trees": self._trees}


def _return_tree(tree: FileTree) -> FileTree:
    return tree


def are_inputs_unchanged(
    inputs: Mapping[RenderInput, str], trees: Mapping[str, FileTree], environment: Mapping[str, str]
) -> bool:
    """True if the same source with the same settings would render the same manifests again.

    `trees` are keyed by scope; an input of a scope that is not in `trees` counts as changed.
    """
    are_paths_unchanged = are_generate_paths_unchanged(inputs, trees)
    unchanged_folders = _find_unchanged_folders(inputs, trees)
    for (scope, path), id in inputs.items():
        if scope in unchanged_folders and (
            path.rpartition("/")[0] in unchanged_folders[scope] or path in unchanged_folders[scope]
        ):
            continue
        if path.endswith("//"):
            continue
        if scope == GENERATE_PATHS_SCOPE or (are_paths_unchanged and _depends_on_commit(scope, path)):
            continue
        if scope == ENVIRONMENT_SCOPE:
            if environment.get(path, "") != id:
                return False
        elif scope not in trees or _compute_input_id(trees[scope], path) != id:
            return False
    return True


def has_folder_ids(tree: FileTree) -> bool:
    """True if the tree stores folder ids, as a commit does; on disk, computing one means reading every file below."""
    return bool(getattr(tree, "id", ""))


def build_folder_inputs(tree: FileTree, scope: str, record: Mapping[RenderInput, str]) -> dict[RenderInput, str]:
    """Return inputs for whole folders in which several lookups were made.

    They must come first among the inputs, so that they are found without reading the others.
    """
    if not has_folder_ids(tree):
        return {}
    paths = (path for input_scope, path in record if input_scope == scope and path != GITMODULES_FILE)
    lookup_counts = Counter(path.rpartition("/")[0] for path in paths)
    entries = {
        folder: tree.find_entry(folder) for folder, count in lookup_counts.items() if count >= _MIN_LOOKUPS_PER_FOLDER
    }
    return {
        RenderInput(scope, f"{folder}//"): entry.id
        for folder, entry in entries.items()
        if entry and entry.kind == "folder"
    }


def _find_unchanged_folders(inputs: Mapping[RenderInput, str], trees: Mapping[str, FileTree]) -> dict[str, set[str]]:
    unchanged: dict[str, set[str]] = {}
    for (scope, path), id in inputs.items():
        if not path.endswith("//"):
            break
        entry = trees[scope].find_entry(path[:-2]) if scope in trees else None
        if entry is not None and entry.kind == "folder" and entry.id == id:
            unchanged.setdefault(scope, set()).add(path[:-2])
    return unchanged


def _depends_on_commit(scope: str, path: str) -> bool:
    # argo: with manifest-generate-paths, the last render is reused for the new commit, with its old revision in it.
    return not scope or (scope == ENVIRONMENT_SCOPE and path.startswith("ARGOCD_APP_REVISION"))


def _compute_input_id(tree: FileTree, path: str) -> str:
    if path.endswith("/"):
        return _hash_entry_names(tree.list_folder(path[:-1]))
    return _compute_entry_id(tree.find_entry(path))


def _compute_entry_id(entry: TreeEntry | None) -> str:
    if entry is None:
        return ""
    if entry.kind == "folder":
        return _FOLDER_ID
    # A link and a file may have the same content, hence the same id.
    return entry.id if entry.kind == "file" else f"link {entry.id}"


def _hash_entry_names(entries: Sequence[TreeEntry]) -> str:
    text = "\0".join(f"{entry.kind}/{entry.name}" for entry in entries)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
