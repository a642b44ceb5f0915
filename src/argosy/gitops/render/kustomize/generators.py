"""Generates ConfigMaps and Secrets from files, env files and literals. In: generator arguments. Out: resources.

Never: reads a file itself; `read` is passed in.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from argosy.errors import RenderError
from argosy.gitops.render.kustomize.error_lines import Fault, within
from argosy.gitops.render.kustomize.resource import Resource
from argosy.gitops.render.kustomize.tree_paths import folder_of, joined

Read = Callable[[str], bytes]
_WRAP_AT = 70


def generate(kind: str, given: dict[str, Any], shared: dict[str, Any], read: Read, where: str) -> Resource:
    name = given.get("name")
    if not name:
        raise RenderError(f"a {kind} to generate has no name: add it", where=where)
    what = f"{kind} {name}"
    options = _options(shared, given.get("options") or {})
    manifest: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}
    if given.get("namespace"):
        manifest["metadata"]["namespace"] = given["namespace"]
    for field in ("labels", "annotations"):
        if options[field]:
            manifest["metadata"][field] = dict(options[field])
    pairs = _pairs(given, read, what, where)
    if kind == "Secret":
        manifest["type"] = given.get("type") or "Opaque"
        manifest["data"] = {key: _base64(value) for key, value in pairs.items()}
    else:
        _fill_config_map(manifest, pairs)
    if options["immutable"]:
        manifest["immutable"] = True
    resource = Resource(manifest, where)
    resource.wants_hash = not options["disableNameSuffixHash"]
    resource.behavior = _behavior(given.get("behavior") or "", what, where)
    return resource


def _behavior(given: str, what: str, where: str) -> str:
    # k8s: an unknown behavior counts as none.
    return given if given in ("replace", "merge") else "create"


def _options(shared: dict[str, Any], local: dict[str, Any]) -> dict[str, Any]:
    return {
        **{name: {**(shared.get(name) or {}), **(local.get(name) or {})} for name in ("labels", "annotations")},
        **{name: bool(shared.get(name) or local.get(name)) for name in ("disableNameSuffixHash", "immutable")},
    }


def _fill_config_map(manifest: dict[str, Any], pairs: dict[str, bytes]) -> None:
    for key, value in pairs.items():
        try:
            manifest.setdefault("data", {})[key] = value.decode()
        except UnicodeDecodeError:
            manifest.setdefault("binaryData", {})[key] = _base64(value)
    if not manifest.get("data"):
        manifest.pop("data", None)


def _base64(value: bytes) -> str:
    text = base64.b64encode(value).decode()
    if len(text) < _WRAP_AT:
        return text
    return "".join(f"{text[at : at + _WRAP_AT]}\n" for at in range(0, len(text), _WRAP_AT))


def _pairs(given: dict[str, Any], read: Read, what: str, where: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for key, value in _sources(given, read, what, where):
        if key in found:
            raise RenderError(f"{what}: duplicate key {key}: remove one of them", where=where)
        found[key] = value
    return found


def _sources(given: dict[str, Any], read: Read, what: str, where: str) -> Iterator[tuple[str, bytes]]:
    for number, path in enumerate(given.get("envs") or ()):
        yield from _lines(_content(read, path, "envs", number), joined(folder_of(where), path, where))
    for number, literal in enumerate(given.get("literals") or ()):
        key, equals, value = literal.partition("=")
        if not equals or not key:
            message = f"{what}: the literal {literal[:40]!r} is not `key=value`"
            raise Fault(message, where=where, inside=("literals", number))
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        yield key, value.encode()
    for number, source in enumerate(given.get("files") or ()):
        key, equals, path = source.partition("=")
        if not equals:
            key, path = source.rpartition("/")[2], source
        if not key or not path or "=" in path:
            message = f"{what}: the file {source!r} is neither `path` nor `key=path`"
            raise Fault(message, where=where, inside=("files", number))
        yield key, _content(read, path, "files", number)


def _content(read: Read, path: str, field: str, number: int) -> bytes:
    try:
        return read(path)
    except RenderError as error:
        raise within(error, field, number) from None


def _lines(data: bytes, file: str) -> Iterator[tuple[str, bytes]]:
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
