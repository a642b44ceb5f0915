"""Defaults of Pods and Pod templates."""

from __future__ import annotations

import re
from typing import Any

from argosy.kube.objects.short_text_result_cache import cache_short_texts
from argosy.kube.schema.defaults.missing_field_defaults import (
    ManifestPart,
    canonicalize_quantities,
    canonicalize_resources,
    copy_struct,
    copy_with_defaults,
    set_defaults,
    update_items,
    update_struct,
)
from argosy.kube.schema.quantity import canonicalize

_POD_SPEC_DEFAULTS = (
    ("restartPolicy", "Always"),
    ("terminationGracePeriodSeconds", 30),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", "default-scheduler"),
)
_PROBE_DEFAULTS = (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3))
_FILE_MODE = 420  # 0644
_VOLUME_SOURCE_DEFAULTS: dict[str, tuple[tuple[str, Any], ...]] = {
    "secret": (("defaultMode", _FILE_MODE),),
    "configMap": (("defaultMode", _FILE_MODE),),
    "downwardAPI": (("defaultMode", _FILE_MODE),),
    "projected": (("defaultMode", _FILE_MODE),),
    "hostPath": (("type", ""),),
    "iscsi": (("iscsiInterface", "default"),),
    "rbd": (("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")),
    "azureDisk": (("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("readOnly", False), ("kind", "Shared")),
    "scaleIO": (("storageMode", "ThinProvisioned"), ("fsType", "xfs")),
}
_IMAGE_PATH_PATTERN = re.compile(
    r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*", re.ASCII
)
_IMAGE_TAG_PATTERN = re.compile(r"[\w][\w.-]{0,127}", re.ASCII)
_IMAGE_ID_PATTERN = re.compile(r"[a-f0-9]{64}")


@cache_short_texts(2048)
def default_pull_policy(image: str) -> str:
    """`Always` for an explicit or implied `:latest`; `IfNotPresent` for other tags and for invalid image names."""
    name, _, digest = image.partition("@")
    head, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        head, tag = name, ""
    domain, slash, path = head.partition("/")
    has_domain = slash and ("." in domain or ":" in domain or domain == "localhost" or domain.lower() != domain)
    is_valid = _IMAGE_PATH_PATTERN.fullmatch(path if has_domain else head) and not _IMAGE_ID_PATTERN.fullmatch(head)
    if not is_valid or (tag and not _IMAGE_TAG_PATTERN.fullmatch(tag)):
        return "IfNotPresent"
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def default_probe(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    for name, value in _PROBE_DEFAULTS:
        defaulted[name] = defaulted.get(name) or value
    _default_http_get_action(defaulted)
    update_struct(defaulted, "grpc", lambda action: copy_with_defaults(action, ("service", "")))
    return defaulted


def _default_http_get_action(target: ManifestPart) -> None:
    update_struct(target, "httpGet", lambda action: copy_with_defaults(action, ("path", "/"), ("scheme", "HTTP")))


def _default_lifecycle_hook(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    _default_http_get_action(defaulted)
    return defaulted


def _default_lifecycle(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    update_struct(defaulted, "postStart", _default_lifecycle_hook)
    update_struct(defaulted, "preStop", _default_lifecycle_hook)
    return defaulted


def default_field_refs(source: ManifestPart) -> ManifestPart:
    """Default the field references of an environment variable or of a downward API file."""
    defaulted = dict(source)
    update_struct(defaulted, "fieldRef", lambda ref: copy_with_defaults(ref, ("apiVersion", "v1")))
    update_struct(
        defaulted, "resourceFieldRef", lambda ref: {**ref, "divisor": canonicalize(ref.get("divisor") or "0")}
    )
    return defaulted


def _default_env_variable(source: ManifestPart) -> ManifestPart:
    if not isinstance(source.get("valueFrom"), dict):
        return source
    return {**source, "valueFrom": default_field_refs(source["valueFrom"])}


def default_container(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    if not defaulted.get("imagePullPolicy"):
        defaulted["imagePullPolicy"] = default_pull_policy(str(defaulted.get("image") or ""))
    if not defaulted.get("terminationMessagePath"):
        defaulted["terminationMessagePath"] = "/dev/termination-log"
    if not defaulted.get("terminationMessagePolicy"):
        defaulted["terminationMessagePolicy"] = "File"
    defaulted["resources"] = canonicalize_resources(defaulted.get("resources") or {})
    update_items(defaulted, "ports", lambda port: copy_with_defaults(port, ("protocol", "TCP")))
    update_items(defaulted, "env", _default_env_variable)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        update_struct(defaulted, name, default_probe)
    update_struct(defaulted, "lifecycle", _default_lifecycle)
    return defaulted


def _default_projection(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    update_struct(
        defaulted, "serviceAccountToken", lambda token: copy_with_defaults(token, ("expirationSeconds", 3600))
    )
    update_struct(defaulted, "downwardAPI", _default_downward_api)
    return defaulted


def _default_downward_api(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    update_items(defaulted, "items", default_field_refs)
    return defaulted


def _default_ephemeral_volume(source: ManifestPart) -> ManifestPart:
    template = copy_struct(source, "volumeClaimTemplate")
    template["metadata"] = {"creationTimestamp": None, **(template.get("metadata") or {})}
    template["spec"] = default_claim_spec(template.get("spec") or {})
    return {**source, "volumeClaimTemplate": template}


def _canonicalize_empty_dir(source: ManifestPart) -> ManifestPart:
    return {**source, "sizeLimit": canonicalize(source["sizeLimit"])} if source.get("sizeLimit") is not None else source


def default_volume(source: ManifestPart) -> ManifestPart:
    defaulted = {name: value for name, value in source.items() if value is not None}
    if len(defaulted) <= ("name" in defaulted):
        defaulted["emptyDir"] = {}  # k8s: a volume without a source is an emptyDir
        return defaulted
    for name, default_values in _VOLUME_SOURCE_DEFAULTS.items():
        if name in defaulted:
            defaulted[name] = copy_with_defaults(defaulted[name], *default_values)
    update_struct(defaulted, "downwardAPI", _default_downward_api)
    update_struct(defaulted, "emptyDir", _canonicalize_empty_dir)
    update_struct(defaulted, "ephemeral", _default_ephemeral_volume)
    if "projected" in defaulted:
        projected = dict(defaulted["projected"])
        projected.setdefault("sources", None)
        update_items(projected, "sources", _default_projection)
        defaulted["projected"] = projected
    return defaulted


def default_claim_spec(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    defaulted["resources"] = canonicalize_resources(defaulted.get("resources") or {})
    return set_defaults(defaulted, (("volumeMode", "Filesystem"),))


def default_pod_spec(source: ManifestPart) -> ManifestPart:
    defaulted = set_defaults(dict(source), _POD_SPEC_DEFAULTS)
    if defaulted.get("securityContext") is None:
        defaulted["securityContext"] = {}
    account = defaulted.get("serviceAccountName") or defaulted.get("serviceAccount")
    if account:
        # k8s: serviceAccount is a deprecated alias
        defaulted["serviceAccountName"] = defaulted["serviceAccount"] = account
    for name in ("initContainers", "containers", "ephemeralContainers"):
        update_items(defaulted, name, default_container)
    update_items(defaulted, "volumes", default_volume)
    update_struct(defaulted, "overhead", canonicalize_quantities)
    update_struct(defaulted, "resources", canonicalize_resources)
    return defaulted


def default_pod_template(source: ManifestPart) -> ManifestPart:
    """Default a Pod template: metadata with a null creationTimestamp, and a spec."""
    defaulted = dict(source)
    defaulted["metadata"] = {"creationTimestamp": None, **(defaulted.get("metadata") or {})}
    defaulted["spec"] = default_pod_spec(defaulted.get("spec") or {})
    return defaulted


def _default_requests_from_limits(source: ManifestPart) -> ManifestPart:
    amounts = source["resources"]
    if not amounts.get("limits"):
        return source
    requests = {**(amounts.get("requests") or {})}
    for name, amount in amounts["limits"].items():
        requests.setdefault(name, amount)
    return {**source, "resources": {**amounts, "requests": requests}}


def _default_host_ports(source: ManifestPart) -> ManifestPart:
    defaulted = dict(source)
    update_items(
        defaulted, "ports", lambda port: {**port, "hostPort": port.get("hostPort") or port.get("containerPort")}
    )
    return defaulted


def default_pod(manifest: ManifestPart) -> ManifestPart:
    spec = default_pod_spec(manifest.get("spec") or {})
    for name in ("containers", "initContainers"):
        update_items(spec, name, _default_requests_from_limits)
        if spec.get("hostNetwork"):
            update_items(spec, name, _default_host_ports)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    return {**manifest, "spec": spec, "status": manifest.get("status") or {}}


def default_pod_template_object(manifest: ManifestPart) -> ManifestPart:
    return {**manifest, "template": default_pod_template(manifest.get("template") or {})}
