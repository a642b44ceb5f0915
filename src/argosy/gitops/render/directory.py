"""Reads manifests from plain files. In: a folder of a tree. Out: the manifests in its files, sorted by file name.

Never: follows a link out of the repository; ignores a file that looks like a manifest without a note.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from argosy.errors import LimitError, ManifestError, RenderError
from argosy.gitops.application import DirectoryOptions
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.application.step_results import Origin
from argosy.gitops.render.kustomize.tree_paths import located
from argosy.gitops.render.lfs_check import refuse_pointer
from argosy.gitops.render.manifest_lists import fault_of, flattened
from argosy.gitops.render.origins import Trace, Traced, of_documents
from argosy.gitops.render.settings import RenderLimits
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, Profile, load_all, load_json
from argosy.languages.globs import glob_pattern

SKIP_MARKER: Final = b"+argocd:skip-file-rendering"
_JSONNET: Final = ".jsonnet"
_EXTENSIONS: Final = (".yaml", ".yml", ".json", _JSONNET)
_WORDS: Final = (b"apiVersion:", b"kind:", b"metadata:")
_FIELDS: Final = ("apiVersion", "kind", "metadata")
_DEEPEST: Final = 100
_BOM: Final = b"\xef\xbb\xbf"


Evaluate = Callable[[Sequence[str]], Mapping[str, list[Manifest]]]
"""Evaluates Jsonnet files, given by path, and returns the manifests of each."""


class ManifestFile(NamedTuple):
    """A file with its path in the tree and its content."""

    path: str
    text: bytes

    @property
    def is_jsonnet(self) -> bool:
        return self.path.endswith(_JSONNET)


def read_directory(
    tree: Tree,
    folder: str,
    options: DirectoryOptions,
    limits: RenderLimits,
    evaluate: Evaluate | None = None,
    notes: list[str] | None = None,
) -> list[tuple[str, Manifest]]:
    """Return each manifest with its file. `evaluate` gets all Jsonnet files at once; without it they are skipped."""
    told: list[str] = [] if notes is None else notes
    found = {
        file.path: [] if file.is_jsonnet else read_file(file.path, file.text, told)
        for file in manifest_files(tree, folder, options, limits)
    }
    programs = [path for path in found if path.endswith(_JSONNET)]
    for path, made in (evaluate(programs) if evaluate and programs else {}).items():
        found[path] = _checked(path, made)
    return [(path, manifest) for path, manifests in found.items() for manifest in manifests]


def _checked(path: str, made: list[Manifest]) -> list[Manifest]:
    try:
        manifests = list(flattened(made))
    except RenderError as error:
        raise RenderError(error.message, where=path) from None
    for manifest in manifests:
        if fault := fault_of(manifest):
            raise RenderError(f"its output {fault}", where=path)
    return manifests


def manifest_files(tree: Tree, folder: str, options: DirectoryOptions, limits: RenderLimits) -> Iterator[ManifestFile]:
    """List the files that may hold manifests, folder by folder, sorted by name."""
    size = 0
    for path in tuple(_walk(tree, folder, options, limits)):  # list all first: refuse too many before reading any
        place, kind = located(tree, path, path)
        if kind != "file":
            continue  # argo: a link to nothing or to a folder is skipped
        text = tree.read(place)
        if SKIP_MARKER in text:
            continue
        refuse_pointer(text, path)
        # argo: Jsonnet files do not count; their evaluation has its own limits.
        size += 0 if path.endswith(_JSONNET) else len(text)
        if size > limits.manifest_bytes:
            message = f"the manifests exceed {limits.manifest_bytes} bytes in total: split the application"
            raise LimitError(message, where=folder or ".")
        yield ManifestFile(path, text)


def directory_trace(
    tree: Tree, folder: str, options: DirectoryOptions, limits: RenderLimits, made: Mapping[ResourceKey, str]
) -> Trace:
    """Trace fields to their lines; manifests from Jsonnet are only traced to their file."""
    files = [file for file in manifest_files(tree, folder, options, limits) if not file.is_jsonnet]
    return {**of_documents(files), **{key: Traced(Origin(path)) for key, path in made.items()}}


def _walk(tree: Tree, folder: str, options: DirectoryOptions, limits: RenderLimits) -> Iterator[str]:
    include = glob_pattern(options.include, "directory.include") if options.include else None
    exclude = glob_pattern(options.exclude, "directory.exclude") if options.exclude else None
    lead = len(folder) + 1 if folder else 0
    seen = 0
    for path in _files(tree, folder, options.recurse):
        seen += 1
        if seen > limits.files:
            raise LimitError(f"holds more than {limits.files} files: split it", where=folder or ".")
        if not options.disable_extension_filter and not path.endswith(_EXTENSIONS):
            continue
        within = path[lead:]
        if not (exclude and exclude.fullmatch(within)) and (include is None or include.fullmatch(within)):
            yield path


def _files(tree: Tree, folder: str, recurse: bool, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        raise LimitError(f"is nested more than {_DEEPEST} folders deep: move it up", where=folder)
    for entry in tree.listing(folder):
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.kind != "folder":
            yield path
        elif recurse:
            yield from _files(tree, path, recurse, depth + 1)


def read_file(path: str, text: bytes, notes: list[str] | None = None) -> list[Manifest]:
    """Return the manifests of one file; empty for other kinds of files, with a note if it looks like a manifest."""
    if path.endswith(".json"):
        return list(flattened(_json_object(path, text)))
    try:
        values = load_all(text, profile=Profile.KUBERNETES, where=path)
    except ManifestError as error:
        if any(word in text for word in _WORDS):
            raise RenderError(error.message, where=path, line=error.line) from error
        return []  # argo: a file that does not look like manifests is ignored
    found: list[Manifest] = []
    for number, value in enumerate(values):
        if value is None:
            continue
        if fault := fault_of(value):
            # argo: a document without a kind is not a manifest; but a file that looks like manifests must be one.
            if not found and _is_foreign(value) and not all(word in text for word in _WORDS):
                if notes is not None and (slip := _slip(value)):
                    notes.append(f"{path}:{_line_of(text, number)}: {slip}")
                return []
            raise _error(path, text, number, fault)
        try:
            found += flattened([value])
        except RenderError as error:
            raise _error(path, text, number, error.message) from None
    return found


def _json_object(path: str, text: bytes) -> list[Manifest]:
    try:
        value = load_json(text.removeprefix(_BOM), where=path).value
    except ManifestError as error:
        message = error.message
        if _holds_several(text):
            message = "has several objects, and a JSON file may have only one: use a List, or one file per object"
        raise RenderError(message, where=path, line=error.line) from error
    if isinstance(value, dict) and _is_foreign(value):
        return []  # argo: an object without a kind, such as a dashboard, is ignored
    if fault := fault_of(value):
        raise _error(path, text, 0, fault)
    return [value]


def _holds_several(text: bytes) -> bool:
    try:
        decoded = text.removeprefix(_BOM).decode().lstrip()
        _, end = json.JSONDecoder().raw_decode(decoded)
    except ValueError:
        return False
    return bool(decoded[end:].strip())


def _is_foreign(value: Any) -> bool:
    return not isinstance(value, dict) or not isinstance(value.get("kind"), str) or not value["kind"]


def _slip(value: Any) -> str:
    """Return why a document without a kind looks like a manifest; empty if it does not."""
    if not isinstance(value, dict):
        return ""
    others = [name for name in value if isinstance(name, str) and name not in _FIELDS]
    near = {field: next((name for name in others if _is_near(name, field)), "") for field in _FIELDS}
    there = sum(1 for field in _FIELDS if field in value or near[field])
    if there < 2 or ("apiVersion" not in value and not near["kind"]):
        return ""
    meant = [f"{name} for {field}" for field, name in near.items() if name and field not in value]
    why = f"it has {' and '.join(meant)}" if meant else "it has no kind"
    return f"is ignored because it is not a manifest: {why}"


def _is_near(name: str, field: str) -> bool:
    """True if the names differ only in case, or in one missing letter."""
    short, long = sorted((name.lower(), field.lower()), key=len)
    return short == long or (
        len(long) - len(short) == 1 and any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
    )


def _error(path: str, text: bytes, number: int, fault: str) -> RenderError:
    message = f"document {number + 1} {fault}, or set directory.exclude for this file"
    return RenderError(message, where=path, line=_line_of(text, number))


def _line_of(text: bytes, number: int) -> int:
    """Return the line where a document starts, counted by `---` separators."""
    found = list(re.finditer(rb"^---(?:[ \t]*(?:#.*)?\r?\n|(?=\s|$))", text, re.MULTILINE))
    starts = [each.end() for each in found]
    head = text[: found[0].start()] if found else text
    if any(line.strip() and not line.lstrip().startswith((b"#", b"%")) for line in head.splitlines()):
        starts.insert(0, 0)
    return text.count(b"\n", 0, starts[min(number, len(starts) - 1)]) + 1 if starts else 1
