"""Validates PersistentVolumeClaims, PersistentVolumes and StorageClasses."""

from __future__ import annotations

from argosy.kube.schema import name_syntax, quantity
from argosy.kube.schema.field_error import forbidden, go_value, invalid, required, unsupported
from argosy.kube.schema.validation.checks import Faults, Part, immutable, label_selector, matches, one_volume

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_SOURCES = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
_CLAIM_FROZEN = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
)


def _access_modes(faults: Faults, spec: Part, path: str, words: str) -> None:
    modes = spec.get("accessModes") or ()
    if not modes:
        faults.append(required(f"{path}.accessModes", words))
    for mode in modes:
        if mode not in _MODES:
            faults.append(unsupported(f"{path}.accessModes", go_value(mode), _MODES))
    if "ReadWriteOncePod" in modes and any(mode in _MODES[:3] for mode in modes):
        faults.append(forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes"))


def _volume_mode(faults: Faults, spec: Part, path: str) -> None:
    mode = spec.get("volumeMode")
    if mode is not None and mode not in _VOLUME_MODES:
        faults.append(unsupported(f"{path}.volumeMode", go_value(mode), _VOLUME_MODES))


def claim_spec(faults: Faults, spec: Part, path: str) -> None:
    _access_modes(faults, spec, path, "at least 1 access mode is required")
    label_selector(faults, f"{path}.selector", spec.get("selector"))
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    field = f"{path}.resources[storage]"
    if size is None:
        faults.append(required(field))
    elif quantity.parse(size) <= 0:
        faults.append(invalid(field, go_value(quantity.canonical(size)), "must be greater than zero"))
    if spec.get("storageClassName"):
        matches(faults, f"{path}.storageClassName", spec["storageClassName"], name_syntax.dns_subdomain)
    _volume_mode(faults, spec, path)


def claim(manifest: Part) -> Faults:
    faults: Faults = []
    claim_spec(faults, manifest.get("spec") or {}, "spec")
    return faults


def claim_updated(manifest: Part, old: Part) -> Faults:
    faults = claim(manifest)
    spec, before = manifest.get("spec") or {}, old.get("spec") or {}
    status = manifest.get("status") or old.get("status") or {}
    bound = status.get("phase") == "Bound"
    new, past = _frozen(spec, before, bound=bound), _frozen(before, before, bound=bound)
    if new != past:
        changed = sorted(name for name in new.keys() | past.keys() if new.get(name) != past.get(name))
        lines = "".join(f"- spec.{name}: {past.get(name)!r}\n+ spec.{name}: {new.get(name)!r}\n" for name in changed)
        faults.append(forbidden("spec", _CLAIM_FROZEN + lines))
    size, size_before = _size(spec), _size(before)
    if size is not None and size_before is not None and quantity.compare(size, size_before) < 0:
        words = "field can not be less than status.capacity"
        capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage") or "0"
        # k8s: a request may be reduced again, but not to or below the actual capacity
        if quantity.compare(size, capacity) <= 0:
            faults.append(forbidden("spec.resources.requests.storage", words))
    immutable(faults, "volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    return faults


def _size(spec: Part) -> str | None:
    found: str | None = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return found


def _frozen(spec: Part, before: Part, *, bound: bool) -> Part:
    kept = {name: value for name, value in spec.items() if value not in (None, {}, [], "")}
    if not before.get("volumeName"):
        kept.pop("volumeName", None)
    if before.get("storageClassName") is None:
        kept.pop("storageClassName", None)  # k8s: a claim without a storage class may get one later
    if bound:
        kept.pop("resources", None)
        kept.pop("volumeAttributesClassName", None)
    return kept


def volume(manifest: Part) -> Faults:
    faults: Faults = []
    spec = manifest.get("spec") or {}
    _access_modes(faults, spec, "spec", "")
    capacity = spec.get("capacity") or {}
    if not capacity:
        faults.append(required("spec.capacity"))
    if set(capacity) != {"storage"}:
        shown = "core.ResourceList(nil)" if not capacity else "core.ResourceList{...}"
        faults.append(unsupported("spec.capacity", shown, ("storage",)))
    for name, value in capacity.items():
        if quantity.parse(value) <= 0:
            shown = go_value(quantity.canonical(value))
            faults.append(invalid(f"spec.capacity[{name}]", shown, "must be greater than zero"))
    policy, policies = spec.get("persistentVolumeReclaimPolicy"), ("Delete", "Recycle", "Retain")
    if policy and policy not in policies:
        faults.append(unsupported("spec.persistentVolumeReclaimPolicy", go_value(policy), policies))
    kinds = [kind for kind in _SOURCES if spec.get(kind) is not None]
    if kinds[:1] == ["hostPath"] and not spec["hostPath"].get("path"):
        faults.append(required("spec.hostPath.path"))
    one_volume(faults, "spec", kinds)
    if "local" in kinds and spec.get("nodeAffinity") is None:
        faults.append(required("spec.nodeAffinity", "Local volume requires node affinity"))
    if spec.get("storageClassName"):
        matches(faults, "spec.storageClassName", spec["storageClassName"], name_syntax.dns_subdomain)
    _volume_mode(faults, spec, "spec")
    return faults


def volume_updated(manifest: Part, old: Part) -> Faults:
    faults = volume(manifest)
    spec, before = manifest.get("spec") or {}, old.get("spec") or {}
    changed = [kind for kind in _SOURCES if spec.get(kind) != before.get(kind)]
    if changed:
        lines = "".join(f"- spec.{kind}: {before.get(kind)!r}\n+ spec.{kind}: {spec.get(kind)!r}\n" for kind in changed)
        words = f"spec.persistentvolumesource is immutable after creation\n{lines}"
        faults.append(forbidden("spec.persistentvolumesource", words))
    immutable(faults, "volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    return faults


def storage_class(manifest: Part) -> Faults:
    faults: Faults = []
    provisioner = manifest.get("provisioner") or ""
    if not provisioner:
        faults.append(required("provisioner"))
    else:
        matches(faults, "provisioner", provisioner.lower(), name_syntax.qualified_name)
    for name, supported in (
        ("reclaimPolicy", ("Delete", "Retain")),
        ("volumeBindingMode", ("Immediate", "WaitForFirstConsumer")),
    ):
        value = manifest.get(name)
        if value and value not in supported:
            faults.append(unsupported(name, go_value(value), supported))
    return faults


def storage_class_updated(manifest: Part, old: Part) -> Faults:
    faults: Faults = []
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if (manifest.get(name) or None) != (old.get(name) or None):
            faults.append(forbidden(name, f"updates to {name} are forbidden."))
    immutable(faults, "volumeBindingMode", manifest.get("volumeBindingMode"), old.get("volumeBindingMode"))
    return faults
