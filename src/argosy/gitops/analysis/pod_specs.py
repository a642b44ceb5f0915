"""Finds Pod specs inside of manifests: their containers, scripts, and the objects that they need.

In: a manifest. Out: paths and names. Never: an object without which the Pod starts anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from argosy.gitops.analysis.repository import Item, Step

TRIGGERS: Final = "image.openshift.io/triggers"  # an annotation: images that OpenShift writes into the object
_TEMPLATE: Final = ("spec", "template", "spec")
SPECS: Final[Mapping[tuple[str, str], tuple[Step, ...]]] = {
    ("", "Pod"): ("spec",),
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("batch", "Job"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}
AWAITED: Final = frozenset(SPECS) - {("batch", "CronJob")}  # argo: a wave waits until these are healthy


class Need(NamedTuple):
    """An object without which a Pod does not start."""

    group: str
    kind: str
    name: str
    path: tuple[Step, ...]  # the field that references it


class Container(NamedTuple):
    path: tuple[Step, ...]
    spec: Mapping[str, Any]


def spec_path(item: Item) -> tuple[Step, ...] | None:
    return SPECS.get(item.kind)


def containers(item: Item) -> Iterator[Container]:
    path = spec_path(item)
    for name in ("initContainers", "containers") if path else ():
        for number, each in enumerate(item.all(*(path or ()), name)):
            if isinstance(each, dict):
                yield Container((*(path or ()), name, number), each)


def script_of(container: Container) -> str:
    """Return the container's command and arguments as one text."""
    words = [container.spec.get(name) for name in ("command", "args")]
    return "\n".join(str(word) for each in words if isinstance(each, list) for word in each)


def needs(item: Item) -> Iterator[Need]:
    path = spec_path(item)
    if path is None:
        return
    account = item.text(*path, "serviceAccountName")
    if account and account != "default":
        yield Need("", "ServiceAccount", account, (*path, "serviceAccountName"))
    for number, volume in enumerate(item.all(*path, "volumes")):
        yield from _of_volume(volume, (*path, "volumes", number))
    for container in containers(item):
        yield from _of_container(container)


_VOLUMES: Final = (
    ("configMap", "name", "ConfigMap"),
    ("secret", "secretName", "Secret"),
    ("persistentVolumeClaim", "claimName", "PersistentVolumeClaim"),
)


def _of_volume(volume: Any, path: tuple[Step, ...]) -> Iterator[Need]:
    for source, field, kind in _VOLUMES:
        given = volume.get(source) if isinstance(volume, dict) else None
        if isinstance(given, dict) and given.get(field) and not given.get("optional"):
            yield Need("", kind, str(given[field]), (*path, source, field))


def _of_container(container: Container) -> Iterator[Need]:
    kinds = {"configMapRef": "ConfigMap", "secretRef": "Secret"}
    for number, each in enumerate(_dicts(container.spec.get("envFrom"))):
        for source, kind in kinds.items():
            if (name := _required(each.get(source))) is not None:
                yield Need("", kind, name, (*container.path, "envFrom", number, source, "name"))
    keys = {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}
    for number, each in enumerate(_dicts(container.spec.get("env"))):
        given = each.get("valueFrom")
        for source, kind in keys.items():
            if isinstance(given, dict) and (name := _required(given.get(source))) is not None:
                yield Need("", kind, name, (*container.path, "env", number, "valueFrom", source, "name"))


def _dicts(given: Any) -> list[dict[str, Any]]:
    return [each if isinstance(each, dict) else {} for each in given] if isinstance(given, list) else []


def _required(given: Any) -> str | None:
    if not isinstance(given, dict) or given.get("optional") or not isinstance(given.get("name"), str):
        return None
    return str(given["name"])
