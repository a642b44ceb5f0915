"""Lists the container images of a manifest.

In: a manifest of any shape. Out: image names, as written. Never: raises.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.kube.objects import Manifest

# argo: a Pod, workloads with Pod templates, and CronJobs.
_POD_SPEC_PATHS: Final = (
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
    ("spec",),
)


def list_images(manifest: Manifest) -> tuple[str, ...]:
    for path in _POD_SPEC_PATHS:
        pod_spec = _get_path(manifest, path)
        containers = pod_spec.get("containers") if isinstance(pod_spec, dict) else None
        if isinstance(containers, list):
            images = (container.get("image") for container in containers if isinstance(container, dict))
            return tuple(image for image in images if isinstance(image, str) and image)
    return ()


def _get_path(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
