"""Reads a kustomization file. In: a folder of a tree. Out: its fields, with deprecated fields converted.

Never: reads the files that it refers to.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from argosy.errors import ManifestError, RenderError
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.render.kustomize.error_lines import Fault, placed
from argosy.gitops.render.kustomize.kustomization_fields import KUSTOMIZATION, shaped
from argosy.kube.objects import load

_BORDER: Final = re.compile(rb"(?:---|\.\.\.)(?:\s|$)")
_MARK: Final = b"\xef\xbb\xbf"
NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_API: Final = {"Kustomization": "kustomize.config.k8s.io/v1beta1", "Component": "kustomize.config.k8s.io/v1alpha1"}


class Kustomization(NamedTuple):
    file: str
    fields: dict[str, Any]

    def get(self, name: str) -> Any:
        return self.fields.get(name)

    def listed(self, name: str) -> list[Any]:
        return self.fields.get(name) or []

    @property
    def is_component(self) -> bool:
        return self.fields.get("kind") == "Component"


def kustomization_file(tree: Tree, folder: str) -> str | None:
    """Return the folder's kustomization file; None if there is none."""
    lead = f"{folder}/" if folder else ""
    found = [lead + name for name in NAMES if tree.entry(lead + name) is not None]
    if len(found) > 1:
        raise RenderError(f"several kustomization files: {', '.join(found)}; keep one of them", where=folder or ".")
    return found[0] if found else None


def refuse_version(text: bytes, file: str) -> None:
    if text[:5] == b"%YAML" and text[5:].split()[:1] != [b"1.1"]:
        raise RenderError("starts with a YAML directive: remove it", where=file, line=1)


def first_document(text: bytes) -> bytes:
    """k8s: only the first document of a kustomization, a configuration or a JSON patch is read."""
    if b"\n---" not in text and b"\n..." not in text:
        return text
    begun, length = False, 0
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if _BORDER.match(line):
            if begun:
                return text[:length]
            begun = True
        elif bare and bare[:1] not in b"#%" and not bare.startswith(_MARK):
            begun = True
        length += len(line)
    return text


def read_kustomization(text: bytes, file: str) -> Kustomization:
    refuse_version(text, file)
    try:
        # k8s: unlike the files it refers to, a kustomization is parsed like Kubernetes YAML.
        value = load(first_document(text), where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=error.where, line=error.line) from error
    if value is None:
        raise RenderError("the file is empty: add resources", where=file, line=1)
    try:
        fields = shaped(value, KUSTOMIZATION, file)
        if not fields.keys() - {"apiVersion", "kind"}:
            raise RenderError("has only apiVersion and kind: add resources", where=file)
        _check_kind(fields, file)
    except RenderError as error:
        raise placed(error, text) from None
    _modernize(fields)
    return Kustomization(file, fields)


def _check_kind(fields: dict[str, Any], file: str) -> None:
    kind = fields.setdefault("kind", "Kustomization") or "Kustomization"
    fields["kind"] = kind
    if kind not in _API:
        raise Fault(f"kind is {kind!r}: it must be Kustomization or Component", where=file, inside=("kind",))
    given = fields.get("apiVersion") or _API[kind]
    if given != _API[kind]:
        message = f"apiVersion of a {kind} is {given!r}: it must be {_API[kind]}"
        raise Fault(message, where=file, inside=("apiVersion",))


def _modernize(fields: dict[str, Any]) -> None:
    if bases := fields.pop("bases", None):
        fields["resources"] = [*(fields.get("resources") or []), *bases]
    if tags := fields.pop("imageTags", None):
        fields["images"] = [*(fields.get("images") or []), *tags]
    for name in ("configMapGenerator", "secretGenerator"):
        for given in fields.get(name) or ():
            if env := given.pop("env", None):
                given["envs"] = [*(given.get("envs") or []), env]
