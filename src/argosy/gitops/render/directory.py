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
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.application.step_results import FieldOrigin
from argosy.gitops.render.field_origins import OriginNode, OriginTrees, trace_documents
from argosy.gitops.render.kustomize.tree_paths import resolve_path
from argosy.gitops.render.lfs_check import reject_lfs_pointer
from argosy.gitops.render.manifest_lists import describe_manifest_problem, describe_missing_name, flatten_lists
from argosy.gitops.render.settings import RenderLimits
from argosy.kube.objects import Manifest, YamlDialect, read_json, read_yaml_documents
from argosy.kube.resource_key import ResourceKey
from argosy.languages.globs import compile_glob

SKIP_MARKER: Final = b"+argocd:skip-file-rendering"
_JSONNET_SUFFIX: Final = ".jsonnet"
_EXTENSIONS: Final = (".yaml", ".yml", ".json", _JSONNET_SUFFIX)
_MANIFEST_WORDS: Final = (b"apiVersion:", b"kind:", b"metadata:")
_MANIFEST_FIELDS: Final = ("apiVersion", "kind", "metadata")
_MAX_FOLDER_DEPTH: Final = 100
_BOM: Final = b"\xef\xbb\xbf"


EvaluateJsonnet = Callable[[Sequence[str]], Mapping[str, list[Manifest]]]
"""Evaluates Jsonnet files, given by path, and returns the manifests of each."""


class ManifestFile(NamedTuple):
    """A file with its path in the tree and its content."""

    path: str
    content: bytes

    @property
    def is_jsonnet(self) -> bool:
        return self.path.endswith(_JSONNET_SUFFIX)


def read_directory(
    tree: FileTree,
    folder: str,
    options: DirectoryOptions,
    limits: RenderLimits,
    evaluate: EvaluateJsonnet | None = None,
    notes: list[str] | None = None,
) -> list[tuple[str, Manifest]]:
    """Return each manifest with its file. `evaluate` gets all Jsonnet files at once; without it they are skipped."""
    collected_notes: list[str] = [] if notes is None else notes
    manifests_by_path = {
        file.path: [] if file.is_jsonnet else read_manifest_file(file.path, file.content, collected_notes)
        for file in list_manifest_files(tree, folder, options, limits)
    }
    jsonnet_paths = [path for path in manifests_by_path if path.endswith(_JSONNET_SUFFIX)]
    for path, evaluated in (evaluate(jsonnet_paths) if evaluate and jsonnet_paths else {}).items():
        manifests_by_path[path] = _flatten_and_check(path, evaluated)
    return [(path, manifest) for path, manifests in manifests_by_path.items() for manifest in manifests]


def _flatten_and_check(path: str, evaluated: list[Manifest]) -> list[Manifest]:
    try:
        manifests = list(flatten_lists(evaluated))
    except RenderError as error:
        raise RenderError(error.message, where=path) from None
    for manifest in manifests:
        if problem := describe_manifest_problem(manifest):
            raise RenderError(f"its output {problem}", where=path)
    return manifests


def list_manifest_files(
    tree: FileTree, folder: str, options: DirectoryOptions, limits: RenderLimits
) -> Iterator[ManifestFile]:
    """List the files that may hold manifests, folder by folder, sorted by name."""
    total_bytes = 0
    for path in tuple(
        _list_selected_paths(tree, folder, options, limits)
    ):  # list all first: refuse too many before reading any
        resolved_path, kind = resolve_path(tree, path, path)
        if kind != "file":
            continue  # argo: a link to nothing or to a folder is skipped
        content = tree.read_file(resolved_path)
        if SKIP_MARKER in content:
            continue
        reject_lfs_pointer(content, path)
        # argo: Jsonnet files do not count; their evaluation has its own limits.
        total_bytes += 0 if path.endswith(_JSONNET_SUFFIX) else len(content)
        if total_bytes > limits.manifest_bytes:
            message = f"the manifests exceed {limits.manifest_bytes} bytes in total: split the application"
            raise LimitError(message, where=folder or ".")
        yield ManifestFile(path, content)


def trace_directory(
    tree: FileTree,
    folder: str,
    options: DirectoryOptions,
    limits: RenderLimits,
    jsonnet_paths: Mapping[ResourceKey, str],
) -> OriginTrees:
    """Trace fields to their lines; manifests from Jsonnet are only traced to their file."""
    files = [file for file in list_manifest_files(tree, folder, options, limits) if not file.is_jsonnet]
    return {**trace_documents(files), **{key: OriginNode(FieldOrigin(path)) for key, path in jsonnet_paths.items()}}


def _list_selected_paths(tree: FileTree, folder: str, options: DirectoryOptions, limits: RenderLimits) -> Iterator[str]:
    include = compile_glob(options.include, "directory.include") if options.include else None
    exclude = compile_glob(options.exclude, "directory.exclude") if options.exclude else None
    prefix_length = len(folder) + 1 if folder else 0
    file_count = 0
    for path in _list_paths(tree, folder, options.recurse):
        file_count += 1
        if file_count > limits.files:
            raise LimitError(f"holds more than {limits.files} files: split it", where=folder or ".")
        if not options.disable_extension_filter and not path.endswith(_EXTENSIONS):
            continue
        relative_path = path[prefix_length:]
        if not (exclude and exclude.fullmatch(relative_path)) and (include is None or include.fullmatch(relative_path)):
            yield path


def _list_paths(tree: FileTree, folder: str, recurse: bool, depth: int = 0) -> Iterator[str]:
    if depth > _MAX_FOLDER_DEPTH:
        raise LimitError(f"is nested more than {_MAX_FOLDER_DEPTH} folders deep: move it up", where=folder)
    for entry in tree.list_folder(folder):
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.kind != "folder":
            yield path
        elif recurse:
            yield from _list_paths(tree, path, recurse, depth + 1)


def read_manifest_file(path: str, content: bytes, notes: list[str] | None = None) -> list[Manifest]:
    """Return the manifests of one file; empty for other kinds of files, with a note if it looks like a manifest."""
    if path.endswith(".json"):
        json_manifests = list(flatten_lists(_read_json_file(path, content)))
        if notes is not None:
            notes += _list_missing_names(path, content, 0, json_manifests)
        return json_manifests
    try:
        values = read_yaml_documents(content, dialect=YamlDialect.KUBERNETES, where=path)
    except ManifestError as error:
        if any(word in content for word in _MANIFEST_WORDS):
            raise RenderError(error.message, where=path, line=error.line) from error
        return []  # argo: a file that does not look like manifests is ignored
    manifests: list[Manifest] = []
    for document_index, value in enumerate(values):
        if value is None:
            continue
        if problem := describe_manifest_problem(value):
            # argo: a document without a kind is not a manifest; but a file that looks like manifests must be one.
            if not manifests and _lacks_kind(value) and not all(word in content for word in _MANIFEST_WORDS):
                if notes is not None and (near_miss := _describe_near_miss(value)):
                    notes.append(f"{path}:{_find_document_line(content, document_index)}: {near_miss}")
                return []
            raise _build_document_error(path, content, document_index, problem)
        try:
            objects = list(flatten_lists([value]))
        except RenderError as error:
            raise _build_document_error(path, content, document_index, error.message) from None
        if notes is not None:
            notes += _list_missing_names(path, content, document_index, objects)
        manifests += objects
    return manifests


def _read_json_file(path: str, content: bytes) -> list[Manifest]:
    try:
        value = read_json(content.removeprefix(_BOM), where=path).value
    except ManifestError as error:
        message = error.message
        if _has_several_json_values(content):
            message = "has several objects, and a JSON file may have only one: use a List, or one file per object"
        raise RenderError(message, where=path, line=error.line) from error
    if isinstance(value, dict) and _lacks_kind(value):
        return []  # argo: an object without a kind, such as a dashboard, is ignored
    if problem := describe_manifest_problem(value):
        raise _build_document_error(path, content, 0, problem)
    return [value]


def _has_several_json_values(text: bytes) -> bool:
    try:
        decoded = text.removeprefix(_BOM).decode().lstrip()
        _, end = json.JSONDecoder().raw_decode(decoded)
    except ValueError:
        return False
    return bool(decoded[end:].strip())


def _lacks_kind(value: Any) -> bool:
    return not isinstance(value, dict) or not isinstance(value.get("kind"), str) or not value["kind"]


def _describe_near_miss(value: Any) -> str:
    """Return why a document without a kind looks like a manifest; empty if it does not."""
    if not isinstance(value, dict):
        return ""
    other_names = [name for name in value if isinstance(name, str) and name not in _MANIFEST_FIELDS]
    similar_names = {
        field: next((name for name in other_names if _is_similar_name(name, field)), "") for field in _MANIFEST_FIELDS
    }
    matching_count = sum(1 for field in _MANIFEST_FIELDS if field in value or similar_names[field])
    if matching_count < 2 or ("apiVersion" not in value and not similar_names["kind"]):
        return ""
    misspellings = [f"{name} for {field}" for field, name in similar_names.items() if name and field not in value]
    reason = f"it has {' and '.join(misspellings)}" if misspellings else "it has no kind"
    return f"is ignored because it is not a manifest: {reason}"


def _is_similar_name(name: str, field: str) -> bool:
    """True if the names differ only in case, or in one missing letter."""
    short, long = sorted((name.lower(), field.lower()), key=len)
    return short == long or (
        len(long) - len(short) == 1 and any(long[:i] + long[i + 1 :] == short for i in range(len(long)))
    )


def _list_missing_names(path: str, content: bytes, document_index: int, manifests: list[Manifest]) -> Iterator[str]:
    for manifest in manifests:
        if problem := describe_missing_name(manifest):
            yield str(_build_document_error(path, content, document_index, problem))


def _build_document_error(path: str, text: bytes, document_index: int, problem: str) -> RenderError:
    message = f"document {document_index + 1} {problem}, or set directory.exclude for this file"
    return RenderError(message, where=path, line=_find_document_line(text, document_index))


def _find_document_line(text: bytes, document_index: int) -> int:
    """Return the line where a document starts, counted by `---` separators."""
    separators = list(re.finditer(rb"^---(?:[ \t]*(?:#.*)?\r?\n|(?=\s|$))", text, re.MULTILINE))
    starts = [separator.end() for separator in separators]
    head = text[: separators[0].start()] if separators else text
    if any(line.strip() and not line.lstrip().startswith((b"#", b"%")) for line in head.splitlines()):
        starts.insert(0, 0)
    return text.count(b"\n", 0, starts[min(document_index, len(starts) - 1)]) + 1 if starts else 1
