"""Reads a kustomization file. In: a folder of a tree. Out: its fields, with deprecated fields converted.

Never: reads the files that it refers to.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from argosy.errors import ManifestError, RenderError
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.kustomize.error_lines import LocatedError, set_line_from_text
from argosy.gitops.render.kustomize.kustomization_schema import KUSTOMIZATION, validate_fields
from argosy.kube.objects import read_yaml

_DOCUMENT_MARKER: Final = re.compile(rb"(?:---|\.\.\.)(?:\s|$)")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
KUSTOMIZATION_FILE_NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_API_VERSION_BY_KIND: Final = {
    "Kustomization": "kustomize.config.k8s.io/v1beta1",
    "Component": "kustomize.config.k8s.io/v1alpha1",
}


class KustomizationFile(NamedTuple):
    file: str
    fields: dict[str, Any]

    def get(self, name: str) -> Any:
        return self.fields.get(name)

    def get_list(self, name: str) -> list[Any]:
        return self.fields.get(name) or []

    @property
    def is_component(self) -> bool:
        return self.fields.get("kind") == "Component"


def find_kustomization_file(tree: FileTree, folder: str) -> str | None:
    """Return the folder's kustomization file; None if there is none."""
    folder_prefix = f"{folder}/" if folder else ""
    files = [
        folder_prefix + name for name in KUSTOMIZATION_FILE_NAMES if tree.find_entry(folder_prefix + name) is not None
    ]
    if len(files) > 1:
        raise RenderError(f"several kustomization files: {', '.join(files)}; keep one of them", where=folder or ".")
    return files[0] if files else None


def reject_yaml_version(text: bytes, file: str) -> None:
    if text[:5] == b"%YAML" and text[5:].split()[:1] != [b"1.1"]:
        raise RenderError("starts with a YAML directive: remove it", where=file, line=1)


def cut_first_document(text: bytes) -> bytes:
    """k8s: only the first document of a kustomization, a configuration or a JSON patch is read."""
    if b"\n---" not in text and b"\n..." not in text:
        return text
    has_started, length = False, 0
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if _DOCUMENT_MARKER.match(line):
            if has_started:
                return text[:length]
            has_started = True
        elif stripped and stripped[:1] not in b"#%" and not stripped.startswith(_BYTE_ORDER_MARK):
            has_started = True
        length += len(line)
    return text


def read_kustomization(text: bytes, file: str) -> KustomizationFile:
    reject_yaml_version(text, file)
    try:
        # k8s: unlike the files it refers to, a kustomization is parsed like Kubernetes YAML.
        value = read_yaml(cut_first_document(text), where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=error.where, line=error.line) from error
    if value is None:
        raise RenderError("the file is empty: add resources", where=file, line=1)
    try:
        fields = validate_fields(value, KUSTOMIZATION, file)
        if not fields.keys() - {"apiVersion", "kind"}:
            raise RenderError("has only apiVersion and kind: add resources", where=file)
        _check_kind(fields, file)
    except RenderError as error:
        raise set_line_from_text(error, text) from None
    _convert_deprecated_fields(fields)
    return KustomizationFile(file, fields)


def _check_kind(fields: dict[str, Any], file: str) -> None:
    kind = fields.setdefault("kind", "Kustomization") or "Kustomization"
    fields["kind"] = kind
    if kind not in _API_VERSION_BY_KIND:
        raise LocatedError(f"kind is {kind!r}: it must be Kustomization or Component", where=file, path=("kind",))
    api_version = fields.get("apiVersion") or _API_VERSION_BY_KIND[kind]
    if api_version != _API_VERSION_BY_KIND[kind]:
        message = f"apiVersion of a {kind} is {api_version!r}: it must be {_API_VERSION_BY_KIND[kind]}"
        raise LocatedError(message, where=file, path=("apiVersion",))


def _convert_deprecated_fields(fields: dict[str, Any]) -> None:
    if bases := fields.pop("bases", None):
        fields["resources"] = [*(fields.get("resources") or []), *bases]
    if tags := fields.pop("imageTags", None):
        fields["images"] = [*(fields.get("images") or []), *tags]
    for name in ("configMapGenerator", "secretGenerator"):
        for generator in fields.get(name) or ():
            if env := generator.pop("env", None):
                generator["envs"] = [*(generator.get("envs") or []), env]
