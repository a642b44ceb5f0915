"""Validates the volumes of Pods."""

from __future__ import annotations

import re

from argosy.kube.schema import name_label_address_syntax, quantity
from argosy.kube.schema.field_error import (
    duplicate,
    forbidden,
    format_go_value,
    invalid,
    not_supported_unsorted,
    required,
)
from argosy.kube.schema.validation.shared_field_checks import (
    FieldErrors,
    ManifestPart,
    check_one_volume_type,
    check_syntax,
    iterate_items,
)

FILE_MODE_ERROR = "must be a number between 0 and 0777 (octal), both inclusive"
# k8s: the order in which the server checks the types of a volume
_VOLUME_KINDS = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
_REQUIRED_FIELDS = {
    "secret": ("secretName",),
    "configMap": ("name",),
    "persistentVolumeClaim": ("claimName",),
    "nfs": ("server", "path"),
    "gitRepo": ("repository",),
    "csi": ("driver",),
}
_HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")


def validate_volumes(errors: FieldErrors, spec: ManifestPart, path: str) -> set[str]:
    """Validate the volumes, and return the names of those that may be mounted."""
    valid_names: set[str] = set()
    for field, volume in iterate_items(spec, "volumes", path):
        volume_errors: FieldErrors = []
        kinds = [kind for kind in _VOLUME_KINDS if volume.get(kind) is not None]
        if kinds:
            _validate_volume_source(volume_errors, f"{field}.{kinds[0]}", kinds[0], volume[kinds[0]])
        check_one_volume_type(volume_errors, field, kinds)
        name = volume.get("name") or ""
        if not name:
            volume_errors.append(required(f"{field}.name"))
        else:
            check_syntax(volume_errors, f"{field}.name", name, name_label_address_syntax.check_dns_label)
        if name in valid_names:
            volume_errors.append(duplicate(f"{field}.name", format_go_value(name)))
        if not volume_errors:
            valid_names.add(name)
        errors.extend(volume_errors)
    return valid_names


def _validate_volume_source(errors: FieldErrors, field: str, kind: str, source: ManifestPart) -> None:
    for name in _REQUIRED_FIELDS.get(kind, ()):
        if not source.get(name):
            errors.append(required(f"{field}.{name}"))
    if kind == "emptyDir" and source.get("sizeLimit") is not None and quantity.parse(source["sizeLimit"]) < 0:
        errors.append(forbidden(f"{field}.sizeLimit", "SizeLimit field must be a valid resource quantity"))
    elif kind == "hostPath":
        _validate_host_path(errors, field, source)
    elif kind in ("secret", "configMap"):
        _check_file_mode(errors, f"{field}.defaultMode", source.get("defaultMode"))
        for path, item in iterate_items(source, "items", field):
            _validate_key_to_path(errors, path, item)
    elif kind == "nfs" and not str(source.get("path") or "").startswith("/"):
        errors.append(invalid(f"{field}.path", format_go_value(source.get("path") or ""), "must be an absolute path"))


def _validate_host_path(errors: FieldErrors, field: str, source: ManifestPart) -> None:
    if not source.get("path"):
        errors.append(required(f"{field}.path"))
        return
    check_no_parent_references(errors, f"{field}.path", source["path"])
    kind = source.get("type")
    if kind and kind not in _HOST_PATH_TYPES:
        errors.append(not_supported_unsorted(f"{field}.type", format_go_value(kind), _HOST_PATH_TYPES))


def _check_file_mode(errors: FieldErrors, field: str, mode: object) -> None:
    if isinstance(mode, int) and not 0 <= mode <= 0o777:
        errors.append(invalid(field, str(mode), FILE_MODE_ERROR))


def _validate_key_to_path(errors: FieldErrors, field: str, item: ManifestPart) -> None:
    for name in ("key", "path"):
        if not item.get(name):
            errors.append(required(f"{field}.{name}"))
    check_relative_path(errors, f"{field}.path", item.get("path") or "")
    if re.match(r"\.\.[^/]", str(item.get("path") or "")):
        errors.append(invalid(f"{field}.path", format_go_value(item["path"]), "must not start with '..'"))
    _check_file_mode(errors, f"{field}.mode", item.get("mode"))


def check_no_parent_references(errors: FieldErrors, field: str, path: str) -> None:
    if ".." in path.split("/"):
        errors.append(invalid(field, format_go_value(path), "must not contain '..'"))


def check_relative_path(errors: FieldErrors, field: str, path: str) -> None:
    if path.startswith("/"):
        errors.append(invalid(field, format_go_value(path), "must be a relative path"))
    check_no_parent_references(errors, field, path)
