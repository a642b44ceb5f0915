"""Validates PersistentVolumeClaims, PersistentVolumes and StorageClasses."""

from __future__ import annotations

from argosy.kube.schema import name_label_address_syntax, quantity
from argosy.kube.schema.field_error import forbidden, format_go_value, invalid, not_supported_unsorted, required
from argosy.kube.schema.validation.shared_field_checks import (
    FieldErrors,
    ManifestPart,
    check_immutable,
    check_label_selector,
    check_one_volume_type,
    check_syntax,
)

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_VOLUME_SOURCES = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
_CLAIM_IMMUTABLE_ERROR = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
)


def _validate_access_modes(errors: FieldErrors, spec: ManifestPart, path: str, missing_detail: str) -> None:
    modes = spec.get("accessModes") or ()
    if not modes:
        errors.append(required(f"{path}.accessModes", missing_detail))
    for mode in modes:
        if mode not in _ACCESS_MODES:
            errors.append(not_supported_unsorted(f"{path}.accessModes", format_go_value(mode), _ACCESS_MODES))
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS_MODES[:3] for mode in modes):
        errors.append(forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes"))


def _validate_volume_mode(errors: FieldErrors, spec: ManifestPart, path: str) -> None:
    mode = spec.get("volumeMode")
    if mode is not None and mode not in _VOLUME_MODES:
        errors.append(not_supported_unsorted(f"{path}.volumeMode", format_go_value(mode), _VOLUME_MODES))


def validate_claim_spec(errors: FieldErrors, spec: ManifestPart, path: str) -> None:
    _validate_access_modes(errors, spec, path, "at least 1 access mode is required")
    check_label_selector(errors, f"{path}.selector", spec.get("selector"))
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    field = f"{path}.resources[storage]"
    if size is None:
        errors.append(required(field))
    elif quantity.parse(size) <= 0:
        errors.append(invalid(field, format_go_value(quantity.canonicalize(size)), "must be greater than zero"))
    if spec.get("storageClassName"):
        check_syntax(
            errors, f"{path}.storageClassName", spec["storageClassName"], name_label_address_syntax.check_dns_subdomain
        )
    _validate_volume_mode(errors, spec, path)


def validate_claim(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    validate_claim_spec(errors, manifest.get("spec") or {}, "spec")
    return errors


def validate_claim_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    errors = validate_claim(manifest)
    spec, old_spec = manifest.get("spec") or {}, old.get("spec") or {}
    status = manifest.get("status") or old.get("status") or {}
    is_bound = status.get("phase") == "Bound"
    new_fields, old_fields = (
        _immutable_claim_fields(spec, old_spec, is_bound=is_bound),
        _immutable_claim_fields(old_spec, old_spec, is_bound=is_bound),
    )
    if new_fields != old_fields:
        changed = sorted(
            name for name in new_fields.keys() | old_fields.keys() if new_fields.get(name) != old_fields.get(name)
        )
        lines = "".join(
            f"- spec.{name}: {old_fields.get(name)!r}\n+ spec.{name}: {new_fields.get(name)!r}\n" for name in changed
        )
        errors.append(forbidden("spec", _CLAIM_IMMUTABLE_ERROR + lines))
    size, old_size = _requested_storage(spec), _requested_storage(old_spec)
    if size is not None and old_size is not None and quantity.compare(size, old_size) < 0:
        detail = "field can not be less than status.capacity"
        capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage") or "0"
        # k8s: a request may be reduced again, but not to or below the actual capacity
        if quantity.compare(size, capacity) <= 0:
            errors.append(forbidden("spec.resources.requests.storage", detail))
    check_immutable(errors, "volumeMode", spec.get("volumeMode"), old_spec.get("volumeMode"))
    return errors


def _requested_storage(spec: ManifestPart) -> str | None:
    size: str | None = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return size


def _immutable_claim_fields(spec: ManifestPart, old_spec: ManifestPart, *, is_bound: bool) -> ManifestPart:
    kept = {name: value for name, value in spec.items() if value not in (None, {}, [], "")}
    if not old_spec.get("volumeName"):
        kept.pop("volumeName", None)
    if old_spec.get("storageClassName") is None:
        kept.pop("storageClassName", None)  # k8s: a claim without a storage class may get one later
    if is_bound:
        kept.pop("resources", None)
        kept.pop("volumeAttributesClassName", None)
    return kept


def validate_persistent_volume(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    spec = manifest.get("spec") or {}
    _validate_access_modes(errors, spec, "spec", "")
    capacity = spec.get("capacity") or {}
    if not capacity:
        errors.append(required("spec.capacity"))
    if set(capacity) != {"storage"}:
        value_text = "core.ResourceList(nil)" if not capacity else "core.ResourceList{...}"
        errors.append(not_supported_unsorted("spec.capacity", value_text, ("storage",)))
    for name, value in capacity.items():
        if quantity.parse(value) <= 0:
            value_text = format_go_value(quantity.canonicalize(value))
            errors.append(invalid(f"spec.capacity[{name}]", value_text, "must be greater than zero"))
    policy, policies = spec.get("persistentVolumeReclaimPolicy"), ("Delete", "Recycle", "Retain")
    if policy and policy not in policies:
        errors.append(not_supported_unsorted("spec.persistentVolumeReclaimPolicy", format_go_value(policy), policies))
    kinds = [kind for kind in _VOLUME_SOURCES if spec.get(kind) is not None]
    if kinds[:1] == ["hostPath"] and not spec["hostPath"].get("path"):
        errors.append(required("spec.hostPath.path"))
    check_one_volume_type(errors, "spec", kinds)
    if "local" in kinds and spec.get("nodeAffinity") is None:
        errors.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    if spec.get("storageClassName"):
        check_syntax(
            errors, "spec.storageClassName", spec["storageClassName"], name_label_address_syntax.check_dns_subdomain
        )
    _validate_volume_mode(errors, spec, "spec")
    return errors


def validate_persistent_volume_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    errors = validate_persistent_volume(manifest)
    spec, old_spec = manifest.get("spec") or {}, old.get("spec") or {}
    changed = [kind for kind in _VOLUME_SOURCES if spec.get(kind) != old_spec.get(kind)]
    if changed:
        lines = "".join(
            f"- spec.{kind}: {old_spec.get(kind)!r}\n+ spec.{kind}: {spec.get(kind)!r}\n" for kind in changed
        )
        detail = f"spec.persistentvolumesource is immutable after creation\n{lines}"
        errors.append(forbidden("spec.persistentvolumesource", detail))
    check_immutable(errors, "volumeMode", spec.get("volumeMode"), old_spec.get("volumeMode"))
    return errors


def validate_storage_class(manifest: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    provisioner = manifest.get("provisioner") or ""
    if not provisioner:
        errors.append(required("provisioner"))
    else:
        check_syntax(errors, "provisioner", provisioner.lower(), name_label_address_syntax.check_qualified_name)
    for name, supported in (
        ("reclaimPolicy", ("Delete", "Retain")),
        ("volumeBindingMode", ("Immediate", "WaitForFirstConsumer")),
    ):
        value = manifest.get(name)
        if value and value not in supported:
            errors.append(not_supported_unsorted(name, format_go_value(value), supported))
    return errors


def validate_storage_class_update(manifest: ManifestPart, old: ManifestPart) -> FieldErrors:
    errors: FieldErrors = []
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if (manifest.get(name) or None) != (old.get(name) or None):
            errors.append(forbidden(name, f"updates to {name} are forbidden."))
    check_immutable(errors, "volumeBindingMode", manifest.get("volumeBindingMode"), old.get("volumeBindingMode"))
    return errors
