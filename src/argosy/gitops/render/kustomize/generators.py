"""Generates ConfigMaps and Secrets from files, env files and literals. In: generator arguments. Out: resources.

Never: reads a file itself; `read` is passed in.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.error_lines import LocatedError, prepend_path
from argosy.gitops.render.kustomize.resource import KustomizeResource
from argosy.gitops.render.kustomize.tree_paths import join_path, parent_folder

ReadSourceFile = Callable[[str], bytes]
_BASE64_LINE_LENGTH = 70


def generate_resource(
    kind: str, arguments: dict[str, Any], shared_options: dict[str, Any], read: ReadSourceFile, where: str
) -> KustomizeResource:
    name = arguments.get("name")
    if not name:
        raise RenderError(f"a {kind} to generate has no name: add it", where=where)
    resource_text = f"{kind} {name}"
    options = _merge_options(shared_options, arguments.get("options") or {})
    manifest: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
    if arguments.get("namespace"):
        manifest["metadata"]["namespace"] = arguments["namespace"]
    for field in ("labels", "annotations"):
        if options[field]:
            manifest["metadata"][field] = dict(options[field])
    pairs = _read_data(arguments, read, resource_text, where)
    if kind == "Secret":
        manifest["type"] = arguments.get("type") or "Opaque"
        manifest["data"] = {key: _encode_base64(value) for key, value in pairs.items()}
    else:
        _fill_config_map(manifest, pairs)
    if options["immutable"]:
        manifest["immutable"] = True
    resource = KustomizeResource(manifest, where)
    resource.needs_hash = not options["disableNameSuffixHash"]
    resource.behavior = _normalize_behavior(arguments.get("behavior") or "", resource_text, where)
    return resource


def _normalize_behavior(behavior: str, resource_text: str, where: str) -> str:
    # k8s: an unknown behavior counts as none.
    return behavior if behavior in ("replace", "merge") else "create"


def _merge_options(shared: dict[str, Any], local: dict[str, Any]) -> dict[str, Any]:
    return {
        **{name: {**(shared.get(name) or {}), **(local.get(name) or {})} for name in ("labels", "annotations")},
        **{name: bool(shared.get(name) or local.get(name)) for name in ("disableNameSuffixHash", "immutable")},
    }


def _fill_config_map(manifest: dict[str, Any], pairs: dict[str, bytes]) -> None:
    for key, value in pairs.items():
        try:
            manifest.setdefault("data", {})[key] = value.decode()
        except UnicodeDecodeError:
            manifest.setdefault("binaryData", {})[key] = _encode_base64(value)
    if not manifest.get("data"):
        manifest.pop("data", None)


def _encode_base64(value: bytes) -> str:
    text = base64.b64encode(value).decode()
    if len(text) < _BASE64_LINE_LENGTH:
        return text
    return "".join(f"{text[i : i + _BASE64_LINE_LENGTH]}\n" for i in range(0, len(text), _BASE64_LINE_LENGTH))


def _read_data(arguments: dict[str, Any], read: ReadSourceFile, resource_text: str, where: str) -> dict[str, bytes]:
    data: dict[str, bytes] = {}
    for key, value in _iterate_data(arguments, read, resource_text, where):
        if key in data:
            raise RenderError(f"{resource_text}: duplicate key {key}: remove one of them", where=where)
        data[key] = value
    return data


def _iterate_data(
    arguments: dict[str, Any], read: ReadSourceFile, resource_text: str, where: str
) -> Iterator[tuple[str, bytes]]:
    for i, path in enumerate(arguments.get("envs") or ()):
        yield from _parse_env_file(_read_content(read, path, "envs", i), join_path(parent_folder(where), path, where))
    for i, literal in enumerate(arguments.get("literals") or ()):
        key, equals, value = literal.partition("=")
        if not equals or not key:
            message = f"{resource_text}: the literal {literal[:40]!r} is not `key=value`"
            raise LocatedError(message, where=where, path=("literals", i))
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        yield key, value.encode()
    for i, source in enumerate(arguments.get("files") or ()):
        key, equals, path = source.partition("=")
        if not equals:
            key, path = source.rpartition("/")[2], source
        if not key or not path or "=" in path:
            message = f"{resource_text}: the file {source!r} is neither `path` nor `key=path`"
            raise LocatedError(message, where=where, path=("files", i))
        yield key, _read_content(read, path, "files", i)


def _read_content(read: ReadSourceFile, path: str, field: str, index: int) -> bytes:
    try:
        return read(path)
    except RenderError as error:
        raise prepend_path(error, field, index) from None


def _parse_env_file(data: bytes, file: str) -> Iterator[tuple[str, bytes]]:
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        line = line.removesuffix(b"\r").lstrip()
        if not line or line.startswith(b"#"):
            continue
        try:
            line.decode()
        except UnicodeDecodeError:
            raise RenderError("not valid UTF-8: save the file as UTF-8", where=file, line=number) from None
        key, _, value = line.partition(b"=")
        yield key.decode(), value
