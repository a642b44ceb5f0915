"""Which images can be pulled: all, but for those whose name says otherwise.

In: the name of an image. Out: yes or no, and what a registry would say. Never: asks a registry.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.objects import Manifest

MISSING: Final = "does-not-exist"


def is_missing(image: str) -> bool:
    """Its tag, or the last part of its name, is `does-not-exist`."""
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return MISSING in (name, tag)


def missing_of(pod: Manifest, which: str = "containers") -> bool:
    return any(is_missing(str(each.get("image") or "")) for each in pod["spec"].get(which) or ())
