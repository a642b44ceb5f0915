"""Lists the container images of a manifest.

In: a manifest of any shape. Out: image names, as written. Never: raises.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.kube.objects import Manifest

# argo: a Pod, workloads with Pod templates, and CronJobs.
_PLACES: Final = (
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
    ("spec",),
)


def images_of(manifest: Manifest) -> tuple[str, ...]:
    for place in _PLACES:
        found = _at(manifest, place)
        containers = found.get("containers") if isinstance(found, dict) else None
        if isinstance(containers, list):
            images = (each.get("image") for each in containers if isinstance(each, dict))
            return tuple(image for image in images if isinstance(image, str) and image)
    return ()


def _at(value: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        value = value.get(name) if isinstance(value, dict) else None
    return value
