"""Validates the volumes of Pods."""

from __future__ import annotations

import re

from argosy.kube.schema import name_syntax, quantity
from argosy.kube.schema.field_error import duplicate, forbidden, go_value, invalid, required, unsupported
from argosy.kube.schema.validation.checks import Faults, Part, items, matches, one_volume

FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
# k8s: the order in which the server checks the types of a volume
_KINDS = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
_REQUIRED = {
    "secret": ("secretName",),
    "configMap": ("name",),
    "persistentVolumeClaim": ("claimName",),
    "nfs": ("server", "path"),
    "gitRepo": ("repository",),
    "csi": ("driver",),
}
_HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")


def volumes(faults: Faults, spec: Part, path: str) -> set[str]:
    """Validate the volumes, and return the names of those that may be mounted."""
    known: set[str] = set()
    for field, volume in items(spec, "volumes", path):
        found: Faults = []
        kinds = [kind for kind in _KINDS if volume.get(kind) is not None]
        if kinds:
            _source(found, f"{field}.{kinds[0]}", kinds[0], volume[kinds[0]])
        one_volume(found, field, kinds)
        name = volume.get("name") or ""
        if not name:
            found.append(required(f"{field}.name"))
        else:
            matches(found, f"{field}.name", name, name_syntax.dns_label)
        if name in known:
            found.append(duplicate(f"{field}.name", go_value(name)))
        if not found:
            known.add(name)
        faults.extend(found)
    return known


def _source(faults: Faults, field: str, kind: str, source: Part) -> None:
    for name in _REQUIRED.get(kind, ()):
        if not source.get(name):
            faults.append(required(f"{field}.{name}"))
    if kind == "emptyDir" and source.get("sizeLimit") is not None and quantity.parse(source["sizeLimit"]) < 0:
        faults.append(forbidden(f"{field}.sizeLimit", "SizeLimit field must be a valid resource quantity"))
    elif kind == "hostPath":
        _host_path(faults, field, source)
    elif kind in ("secret", "configMap"):
        _mode(faults, f"{field}.defaultMode", source.get("defaultMode"))
        for path, item in items(source, "items", field):
            _key_to_path(faults, path, item)
    elif kind == "nfs" and not str(source.get("path") or "").startswith("/"):
        faults.append(invalid(f"{field}.path", go_value(source.get("path") or ""), "must be an absolute path"))


def _host_path(faults: Faults, field: str, source: Part) -> None:
    if not source.get("path"):
        faults.append(required(f"{field}.path"))
        return
    no_backsteps(faults, f"{field}.path", source["path"])
    kind = source.get("type")
    if kind and kind not in _HOST_PATH_TYPES:
        faults.append(unsupported(f"{field}.type", go_value(kind), _HOST_PATH_TYPES))


def _mode(faults: Faults, field: str, mode: object) -> None:
    if isinstance(mode, int) and not 0 <= mode <= 0o777:
        faults.append(invalid(field, str(mode), FILE_MODE))


def _key_to_path(faults: Faults, field: str, item: Part) -> None:
    for name in ("key", "path"):
        if not item.get(name):
            faults.append(required(f"{field}.{name}"))
    relative_path(faults, f"{field}.path", item.get("path") or "")
    if re.match(r"\.\.[^/]", str(item.get("path") or "")):
        faults.append(invalid(f"{field}.path", go_value(item["path"]), "must not start with '..'"))
    _mode(faults, f"{field}.mode", item.get("mode"))


def no_backsteps(faults: Faults, field: str, path: str) -> None:
    if ".." in path.split("/"):
        faults.append(invalid(field, go_value(path), "must not contain '..'"))


def relative_path(faults: Faults, field: str, path: str) -> None:
    if path.startswith("/"):
        faults.append(invalid(field, go_value(path), "must be a relative path"))
    no_backsteps(faults, field, path)
