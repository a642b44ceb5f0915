"""Finds Pod specs inside of manifests: their containers, scripts, and the objects that they need.

In: a manifest. Out: paths and names. Never: an object without which the Pod starts anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from argosy.gitops.analysis.repository_view import ManifestWithLocations, PathStep

IMAGE_TRIGGERS_ANNOTATION: Final = (
    "image.openshift.io/triggers"  # an annotation: images that OpenShift writes into the object
)
_TEMPLATE_PATH: Final = ("spec", "template", "spec")
POD_SPEC_PATHS: Final[Mapping[tuple[str, str], tuple[PathStep, ...]]] = {
    ("", "Pod"): ("spec",),
    ("apps", "Deployment"): _TEMPLATE_PATH,
    ("apps", "StatefulSet"): _TEMPLATE_PATH,
    ("apps", "DaemonSet"): _TEMPLATE_PATH,
    ("apps", "ReplicaSet"): _TEMPLATE_PATH,
    ("batch", "Job"): _TEMPLATE_PATH,
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}
WAVE_BLOCKING_KINDS: Final = frozenset(POD_SPEC_PATHS) - {
    ("batch", "CronJob")
}  # argo: a wave waits until these are healthy


class PodDependency(NamedTuple):
    """An object without which a Pod does not start."""

    group: str
    kind: str
    name: str
    path: tuple[PathStep, ...]  # the field that references it


class PodContainer(NamedTuple):
    path: tuple[PathStep, ...]
    spec: Mapping[str, Any]


def find_pod_spec_path(item: ManifestWithLocations) -> tuple[PathStep, ...] | None:
    return POD_SPEC_PATHS.get(item.group_kind)


def list_containers(item: ManifestWithLocations) -> Iterator[PodContainer]:
    path = find_pod_spec_path(item)
    for name in ("initContainers", "containers") if path else ():
        for index, spec in enumerate(item.get_list(*(path or ()), name)):
            if isinstance(spec, dict):
                yield PodContainer((*(path or ()), name, index), spec)


def join_commands(container: PodContainer) -> str:
    """Return the container's command and arguments as one text."""
    words = [container.spec.get(name) for name in ("command", "args")]
    return "\n".join(str(word) for texts in words if isinstance(texts, list) for word in texts)


def list_dependencies(item: ManifestWithLocations) -> Iterator[PodDependency]:
    path = find_pod_spec_path(item)
    if path is None:
        return
    account = item.get_string(*path, "serviceAccountName")
    if account and account != "default":
        yield PodDependency("", "ServiceAccount", account, (*path, "serviceAccountName"))
    for index, volume in enumerate(item.get_list(*path, "volumes")):
        yield from _list_volume_dependencies(volume, (*path, "volumes", index))
    for container in list_containers(item):
        yield from _list_container_dependencies(container)


_VOLUME_SOURCES: Final = (
    ("configMap", "name", "ConfigMap"),
    ("secret", "secretName", "Secret"),
    ("persistentVolumeClaim", "claimName", "PersistentVolumeClaim"),
)


def _list_volume_dependencies(volume: Any, path: tuple[PathStep, ...]) -> Iterator[PodDependency]:
    for source, field, kind in _VOLUME_SOURCES:
        value = volume.get(source) if isinstance(volume, dict) else None
        if isinstance(value, dict) and value.get(field) and not value.get("optional"):
            yield PodDependency("", kind, str(value[field]), (*path, source, field))


def _list_container_dependencies(container: PodContainer) -> Iterator[PodDependency]:
    kinds = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
    for index, entry in enumerate(_as_maps(container.spec.get("envFrom"))):
        for source, kind in kinds.items():
            if (name := _find_required_name(entry.get(source))) is not None:
                yield PodDependency("", kind, name, (*container.path, "envFrom", index, source, "name"))
    keys = {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}
    for index, entry in enumerate(_as_maps(container.spec.get("env"))):
        value_from = entry.get("valueFrom")
        for source, kind in keys.items():
            if isinstance(value_from, dict) and (name := _find_required_name(value_from.get(source))) is not None:
                yield PodDependency("", kind, name, (*container.path, "env", index, "valueFrom", source, "name"))


def _as_maps(value: Any) -> list[dict[str, Any]]:
    return [entry if isinstance(entry, dict) else {} for entry in value] if isinstance(value, list) else []


def _find_required_name(reference: Any) -> str | None:
    if not isinstance(reference, dict) or reference.get("optional") or not isinstance(reference.get("name"), str):
        return None
    return str(reference["name"])
