"""Decides which images can be pulled: all except those named `does-not-exist`.

In: an image name or a Pod. Out: True or False. Never: contacts a registry.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.objects import Manifest

MISSING: Final = "does-not-exist"


def is_missing(image: str) -> bool:
    """True if the tag or the last part of the image name is `does-not-exist`."""
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return MISSING in (name, tag)


def missing_of(pod: Manifest, which: str = "containers") -> bool:
    return any(is_missing(str(each.get("image") or "")) for each in pod["spec"].get(which) or ())
