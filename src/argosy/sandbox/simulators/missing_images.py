"""Decides which images can be pulled: all with a valid name, except those named `does-not-exist`.

In: an image name or a Pod. Out: True or False. Never: contacts a registry.
"""

from __future__ import annotations

import re
from typing import Final

from argosy.kube.objects import Manifest

MISSING_IMAGE_NAME: Final = "does-not-exist"
_PATH_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST_PART: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST: Final = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_DIGEST: Final = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
# k8s: the grammar of the distribution project, which the kubelet uses
_IMAGE_NAME: Final = re.compile(
    rf"(?:{_HOST}/)?{_PATH_PART}(?:/{_PATH_PART})*(?::\w[\w.-]{{0,127}})?(?:@{_DIGEST})?", re.ASCII
)


def is_missing(image: str) -> bool:
    """True if the image name is invalid, or its tag or last part is `does-not-exist`."""
    if not is_valid_name(image):
        return True
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return MISSING_IMAGE_NAME in (name, tag)


def is_valid_name(image: str) -> bool:
    return not image or _IMAGE_NAME.fullmatch(image) is not None


def has_invalid_image_name(pod: Manifest) -> bool:
    containers = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    return not all(is_valid_name(str(container.get("image") or "")) for container in containers)


def has_missing_image(pod: Manifest, containers_field: str = "containers") -> bool:
    return any(is_missing(str(container.get("image") or "")) for container in pod["spec"].get(containers_field) or ())
