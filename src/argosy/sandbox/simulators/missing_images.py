"""Decides which images can be pulled: all except those named `does-not-exist`.

In: an image name or a Pod. Out: True or False. Never: contacts a registry.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.objects import Manifest

MISSING_IMAGE_NAME: Final = "does-not-exist"


def is_missing(image: str) -> bool:
    """True if the tag or the last part of the image name is `does-not-exist`."""
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return MISSING_IMAGE_NAME in (name, tag)


def has_missing_image(pod: Manifest, containers_field: str = "containers") -> bool:
    return any(is_missing(str(container.get("image") or "")) for container in pod["spec"].get(containers_field) or ())
