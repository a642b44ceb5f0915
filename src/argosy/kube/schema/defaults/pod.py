"""Defaults of Pods and Pod templates."""

from __future__ import annotations

import re
from typing import Any

from argosy.kube.objects.text_cache import remembered
from argosy.kube.schema.defaults.fill import Part, each, fill, filled, part, quantities, resources, within
from argosy.kube.schema.quantity import canonical

_POD_SPEC = (
    ("restartPolicy", "Always"),
    ("terminationGracePeriodSeconds", 30),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", "default-scheduler"),
)
_PROBE = (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3))
_FILE_MODE = 420  # 0644
_VOLUME_FIELDS: dict[str, tuple[tuple[str, Any], ...]] = {
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
_PATH = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*", re.ASCII)
_TAG = re.compile(r"[\w][\w.-]{0,127}", re.ASCII)
_HEX_ID = re.compile(r"[a-f0-9]{64}")


@remembered(2048)
def pull_policy(image: str) -> str:
    """`Always` for an explicit or implied `:latest`; `IfNotPresent` for other tags and for invalid image names."""
    name, _, digest = image.partition("@")
    head, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        head, tag = name, ""
    domain, slash, rest = head.partition("/")
    has_domain = slash and ("." in domain or ":" in domain or domain == "localhost" or domain.lower() != domain)
    readable = _PATH.fullmatch(rest if has_domain else head) and not _HEX_ID.fullmatch(head)
    if not readable or (tag and not _TAG.fullmatch(tag)):
        return "IfNotPresent"
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def probe(given: Part) -> Part:
    made = dict(given)
    for name, value in _PROBE:
        made[name] = made.get(name) or value
    _handler(made)
    within(made, "grpc", lambda action: filled(action, ("service", "")))
    return made


def _handler(made: Part) -> None:
    within(made, "httpGet", lambda action: filled(action, ("path", "/"), ("scheme", "HTTP")))


def _hook(given: Part) -> Part:
    made = dict(given)
    _handler(made)
    return made


def _lifecycle(given: Part) -> Part:
    made = dict(given)
    within(made, "postStart", _hook)
    within(made, "preStop", _hook)
    return made


def field_refs(given: Part) -> Part:
    """Default the field references of an environment variable or of a downward API file."""
    made = dict(given)
    within(made, "fieldRef", lambda ref: filled(ref, ("apiVersion", "v1")))
    within(made, "resourceFieldRef", lambda ref: {**ref, "divisor": canonical(ref.get("divisor") or "0")})
    return made


def _variable(given: Part) -> Part:
    if not isinstance(given.get("valueFrom"), dict):
        return given
    return {**given, "valueFrom": field_refs(given["valueFrom"])}


def container(given: Part) -> Part:
    made = dict(given)
    if not made.get("imagePullPolicy"):
        made["imagePullPolicy"] = pull_policy(str(made.get("image") or ""))
    if not made.get("terminationMessagePath"):
        made["terminationMessagePath"] = "/dev/termination-log"
    if not made.get("terminationMessagePolicy"):
        made["terminationMessagePolicy"] = "File"
    made["resources"] = resources(made.get("resources") or {})
    each(made, "ports", lambda port: filled(port, ("protocol", "TCP")))
    each(made, "env", _variable)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        within(made, name, probe)
    within(made, "lifecycle", _lifecycle)
    return made


def _projection(given: Part) -> Part:
    made = dict(given)
    within(made, "serviceAccountToken", lambda token: filled(token, ("expirationSeconds", 3600)))
    within(made, "downwardAPI", _downward)
    return made


def _downward(given: Part) -> Part:
    made = dict(given)
    each(made, "items", field_refs)
    return made


def _ephemeral(given: Part) -> Part:
    template = part(given, "volumeClaimTemplate")
    template["metadata"] = {"creationTimestamp": None, **(template.get("metadata") or {})}
    template["spec"] = claim_spec(template.get("spec") or {})
    return {**given, "volumeClaimTemplate": template}


def _empty_dir(given: Part) -> Part:
    return {**given, "sizeLimit": canonical(given["sizeLimit"])} if given.get("sizeLimit") is not None else given


def volume(given: Part) -> Part:
    made = {name: value for name, value in given.items() if value is not None}
    if len(made) <= ("name" in made):
        made["emptyDir"] = {}  # k8s: a volume without a source is an emptyDir
        return made
    for name, pairs in _VOLUME_FIELDS.items():
        if name in made:
            made[name] = filled(made[name], *pairs)
    within(made, "downwardAPI", _downward)
    within(made, "emptyDir", _empty_dir)
    within(made, "ephemeral", _ephemeral)
    if "projected" in made:
        projected = dict(made["projected"])
        projected.setdefault("sources", None)
        each(projected, "sources", _projection)
        made["projected"] = projected
    return made


def claim_spec(given: Part) -> Part:
    made = dict(given)
    made["resources"] = resources(made.get("resources") or {})
    return fill(made, (("volumeMode", "Filesystem"),))


def pod_spec(given: Part) -> Part:
    made = fill(dict(given), _POD_SPEC)
    if made.get("securityContext") is None:
        made["securityContext"] = {}
    account = made.get("serviceAccountName") or made.get("serviceAccount")
    if account:
        made["serviceAccountName"] = made["serviceAccount"] = account  # k8s: serviceAccount is a deprecated alias
    for name in ("initContainers", "containers", "ephemeralContainers"):
        each(made, name, container)
    each(made, "volumes", volume)
    within(made, "overhead", quantities)
    within(made, "resources", resources)
    return made


def template(given: Part) -> Part:
    """Default a Pod template: metadata with a null creationTimestamp, and a spec."""
    made = dict(given)
    made["metadata"] = {"creationTimestamp": None, **(made.get("metadata") or {})}
    made["spec"] = pod_spec(made.get("spec") or {})
    return made


def _requests_from_limits(given: Part) -> Part:
    amounts = given["resources"]
    if not amounts.get("limits"):
        return given
    requests = {**(amounts.get("requests") or {})}
    for name, amount in amounts["limits"].items():
        requests.setdefault(name, amount)
    return {**given, "resources": {**amounts, "requests": requests}}


def _host_ports(given: Part) -> Part:
    made = dict(given)
    each(made, "ports", lambda port: {**port, "hostPort": port.get("hostPort") or port.get("containerPort")})
    return made


def pod(manifest: Part) -> Part:
    spec = pod_spec(manifest.get("spec") or {})
    for name in ("containers", "initContainers"):
        each(spec, name, _requests_from_limits)
        if spec.get("hostNetwork"):
            each(spec, name, _host_ports)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    return {**manifest, "spec": spec, "status": manifest.get("status") or {}}


def pod_template(manifest: Part) -> Part:
    return {**manifest, "template": template(manifest.get("template") or {})}
