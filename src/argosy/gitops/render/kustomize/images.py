"""Sets container images (`images`). In: an image's new name, tag or digest. Out: changed manifests.

Never: asks a registry.
"""

from __future__ import annotations

from typing import Any

from argosy.gitops.render.kustomize.field_specs import check_single
from argosy.gitops.render.kustomize.patterns import pattern
from argosy.gitops.render.kustomize.resources import Resources
from argosy.gitops.render.kustomize.transformers import SpecsOf

_REST = r"(?::[a-zA-Z0-9_.{}-]*)?(?:@sha256:[a-zA-Z0-9_.{}-]*)?"


def set_image(resources: Resources, image: dict[str, Any], specs: SpecsOf, where: str) -> None:
    # k8s: the name is a regular expression, including its dots.
    known = pattern(image.get("name") or "", where, _REST)

    def put(holder: dict[str, Any], name: str) -> None:
        current = holder.get(name)
        if isinstance(current, str) and known.fits(current):
            holder[name] = renamed(current, image)

    def put_single(holder: dict[str, Any], name: str) -> None:
        check_single(holder, name)
        put(holder, name)

    for resource in resources.listed:
        if resource.manifest.get("kind") != "CustomResourceDefinition":
            _visit_containers(resource.manifest, put)
        for spec in specs(resource.gvk):
            resource.visit(spec.path, put_single)


def _visit_containers(node: Any, put: Any) -> None:
    if type(node) is dict:
        for key, value in node.items():
            kind = type(value)
            if kind is not dict and kind is not list:
                continue
            if key in ("containers", "initContainers") and kind is list:
                for each in value:
                    if type(each) is dict and "image" in each:
                        put(each, "image")
            else:
                _visit_containers(value, put)
    elif type(node) is list:
        for each in node:
            _visit_containers(each, put)


def split(image: str) -> tuple[str, str, str]:
    """Split into name, tag and digest; a colon before the first slash is a port."""
    head, slash, tail = image.partition("/")
    if not slash:
        head, tail = "", image
    rest, at, digest = tail.partition("@")
    name, _, tag = rest.partition(":")
    return f"{head}{slash}{name}", tag, digest if at else ""


def renamed(current: str, image: dict[str, Any]) -> str:
    name, tag, digest = split(current)
    name = image.get("newName") or name
    new_tag, new_digest = image.get("newTag"), image.get("digest")
    if new_tag and new_digest:
        tag, digest = new_tag, new_digest
    elif new_tag:
        tag, digest = new_tag, ""
    elif new_digest:
        tag, digest = "", new_digest
    elif image.get("tagSuffix"):
        tag, digest = f"{tag}{image['tagSuffix']}", ""
    return f"{name}{':' + tag if tag else ''}{'@' + digest if digest else ''}"
