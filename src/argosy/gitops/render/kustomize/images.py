"""Sets container images (`images`). In: an image's new name, tag or digest. Out: changed manifests.

Never: asks a registry.
"""

from __future__ import annotations

from typing import Any

from argosy.gitops.render.kustomize.field_spec_traversal import check_is_scalar
from argosy.gitops.render.kustomize.resource_map import KustomizeResources
from argosy.gitops.render.kustomize.selector_regex import compile_pattern
from argosy.gitops.render.kustomize.transformers import SelectSpecs

_TAG_AND_DIGEST = r"(?::[a-zA-Z0-9_.{}-]*)?(?:@sha256:[a-zA-Z0-9_.{}-]*)?"


def set_image(resources: KustomizeResources, image: dict[str, Any], specs: SelectSpecs, where: str) -> None:
    # k8s: the name is a regular expression, including its dots.
    image_pattern = compile_pattern(image.get("name") or "", where, _TAG_AND_DIGEST)

    def set_if_matching(holder: dict[str, Any], name: str) -> None:
        current = holder.get(name)
        if isinstance(current, str) and image_pattern.matches(current):
            holder[name] = format_new_image(current, image)

    def set_scalar(holder: dict[str, Any], name: str) -> None:
        check_is_scalar(holder, name)
        set_if_matching(holder, name)

    for resource in resources.items:
        if resource.manifest.get("kind") != "CustomResourceDefinition":
            _visit_containers(resource.manifest, set_if_matching)
        for spec in specs(resource.gvk):
            resource.visit_field(spec.path, set_scalar)


def _visit_containers(node: Any, visitor: Any) -> None:
    if type(node) is dict:
        for key, value in node.items():
            kind = type(value)
            if kind is not dict and kind is not list:
                continue
            if key in ("containers", "initContainers") and kind is list:
                for element in value:
                    if type(element) is dict and "image" in element:
                        visitor(element, "image")
            else:
                _visit_containers(value, visitor)
    elif type(node) is list:
        for element in node:
            _visit_containers(element, visitor)


def split_image(image: str) -> tuple[str, str, str]:
    """Split into name, tag and digest; a colon before the first slash is a port."""
    head, slash, tail = image.partition("/")
    if not slash:
        head, tail = "", image
    name_and_tag, separator, digest = tail.partition("@")
    name, _, tag = name_and_tag.partition(":")
    return f"{head}{slash}{name}", tag, digest if separator else ""


def format_new_image(current: str, image: dict[str, Any]) -> str:
    name, tag, digest = split_image(current)
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
