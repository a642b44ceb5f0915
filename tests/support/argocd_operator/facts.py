"""Reduces the objects of one Argo CD installation to facts that two runs, and two operators, can agree on.

In: live objects by kind. Out: facts by object. Never: shows the value of a Secret; keeps uids, times or versions.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from argosy.annotations import SIMULATED

Facts = dict[str, dict[str, Any]]

# The objects of which everything is compared, and those of which only the names are.
COMPARED_KINDS: Final = {"ConfigMap": "/api/v1/configmaps", "Secret": "/api/v1/secrets"}
NAMED_KINDS: Final = {
    "Deployment": "/apis/apps/v1/deployments",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "Service": "/api/v1/services",
    "ServiceAccount": "/api/v1/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "Route": "/apis/route.openshift.io/v1/routes",
    "Ingress": "/apis/networking.k8s.io/v1/ingresses",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/networkpolicies",
}
ARGOCD_PATH: Final = "/apis/argoproj.io/v1beta1/argocds"
# Made in every namespace by the cluster itself.
_OBJECTS_OF_THE_CLUSTER: Final = {"ConfigMap kube-root-ca.crt", "ServiceAccount default"}
_LONG_CONFIG_MAPS: Final = {"argocd-notifications-cm"}  # templates, which have nothing to do with the ArgoCD
_PUBLIC_KEYS: Final = {"name", "server", "config", "namespaces"}  # of a Secret that names a cluster
TURN_ANNOTATION: Final = "tests.argosy.dev/turn"  # written by a test, to make an operator reconcile
_ANNOTATIONS_PER_RUN: Final = ("kubernetes.io/service-account.uid", TURN_ANNOTATION)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_BCRYPT: Final = re.compile(r"\$2[aby]\$(\d\d)\$.{53}")
_GENERATED_NAME_END: Final = re.compile(r"(?<=-token-)[bcdfghjklmnpqrstvwxz2456789]{5}$")


def list_facts(objects: Mapping[str, Iterable[Mapping[str, Any]]]) -> Facts:
    """Return the facts of all objects of one namespace. `objects` has lists by kind."""
    facts: Facts = {}
    for kind, items in objects.items():
        for item in items:
            subject = f"{kind} {_GENERATED_NAME_END.sub('xxxxx', item['metadata']['name'])}"
            if subject in _OBJECTS_OF_THE_CLUSTER or _is_token_of_default_account(item):
                continue
            facts[subject] = _describe_object(kind, item)
    return facts


def _describe_object(kind: str, item: Mapping[str, Any]) -> dict[str, Any]:
    if kind in NAMED_KINDS:
        return {"exists": True}
    metadata = item["metadata"]
    annotations = {name: text for name, text in (metadata.get("annotations") or {}).items() if name != SIMULATED}
    for name in _ANNOTATIONS_PER_RUN:
        annotations.pop(name, None)
    described: dict[str, Any] = {
        "labels": metadata.get("labels"),
        "annotations": annotations,
        "finalizers": metadata.get("finalizers"),
        "owners": [_describe_owner(reference) for reference in metadata.get("ownerReferences") or ()],
    }
    if kind == "ConfigMap":
        data = {} if metadata["name"] in _LONG_CONFIG_MAPS else item.get("data") or {}
        described["data"] = {key: _describe_if_certificate(text) for key, text in data.items()}
    elif kind == "Secret":
        values = {key: base64.b64decode(value) for key, value in (item.get("data") or {}).items()}
        described["data"] = {key: _describe_secret_value(key, value) for key, value in values.items()}
        described["type"] = item.get("type")
    else:
        described["status"] = _describe_status(item.get("status") or {})
    return {name: value for name, value in described.items() if value}


def _describe_owner(reference: Mapping[str, Any]) -> str:
    flags = [name for name in ("controller", "blockOwnerDeletion") if reference.get(name)]
    return " ".join([reference["apiVersion"], reference["kind"], reference["name"], *flags])


def _describe_status(status: Mapping[str, Any]) -> dict[str, Any]:
    described = {name: value for name, value in status.items() if name != "conditions" and value}
    for condition in status.get("conditions") or ():
        words = (condition["type"], condition["status"], condition.get("reason", ""), condition.get("message", ""))
        described[f"condition {words[0]}"] = " ".join(filter(None, words[1:]))
    return described


def _describe_secret_value(key: str, value: bytes) -> str:
    """Say what a value is, without the value."""
    text = value.decode(errors="replace")
    if key in _PUBLIC_KEYS:
        return text
    if text.startswith("-----BEGIN CERTIFICATE"):
        return _describe_certificate(value)
    if text.startswith("-----BEGIN"):
        loaded = serialization.load_pem_private_key(value, None)
        kind = f"RSA {loaded.key_size}" if isinstance(loaded, rsa.RSAPrivateKey) else type(loaded).__name__
        return f"<private key: {kind}, {text.splitlines()[0]}>"
    if _TIME.fullmatch(text):
        return "<time>"
    if match := _BCRYPT.fullmatch(text):
        return f"<bcrypt hash of cost {match[1]}>"
    if text.count(".") == 2 and text.startswith("eyJ"):
        return "<token>"
    return f"<{len(value)} bytes>"


def _describe_if_certificate(text: str) -> str:
    """Describe a certificate, which every installation makes anew; other text stays."""
    try:
        return _describe_certificate(text.encode()) if text.startswith("-----BEGIN CERTIFICATE") else text
    except ValueError:
        return text


def _describe_certificate(value: bytes) -> str:
    certificate = x509.load_pem_x509_certificate(value)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = ", ".join(names.get_values_for_type(x509.DNSName))
    except x509.ExtensionNotFound:
        hosts = "no host"
    try:
        is_authority = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        is_authority = False
    kind = "authority" if is_authority else "certificate"
    subject, issuer = certificate.subject.rfc4514_string(), certificate.issuer.rfc4514_string()
    return f"<{kind}: {subject} by {issuer}, for {hosts}>"


def _is_token_of_default_account(item: Mapping[str, Any]) -> bool:
    return (item["metadata"].get("annotations") or {}).get("kubernetes.io/service-account.name") == "default"


def encode_changes(before: Facts, after: Facts) -> Facts:
    """Return what differs, field by field; a missing object or field is None."""
    changes: Facts = {}
    for subject in sorted({*before, *after}):
        changed = _encode_change(before.get(subject), after.get(subject))
        if changed is not _SAME:
            changes[subject] = changed
    return changes


def decode_changes(before: Facts, changes: Facts) -> Facts:
    """Undo `encode_changes`."""
    decoded: Facts = _decode_change(before, changes)
    return decoded


_SAME: Final = object()


def _encode_change(before: Any, after: Any) -> Any:
    if before == after:
        return _SAME
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    changes = {name: _encode_change(before.get(name), after.get(name)) for name in sorted({*before, *after})}
    return {name: change for name, change in changes.items() if change is not _SAME}


def _decode_change(before: Any, change: Any) -> Any:
    if not isinstance(before, dict) or not isinstance(change, dict):
        return change
    merged = {**before, **{name: _decode_change(before.get(name), value) for name, value in change.items()}}
    return {name: value for name, value in merged.items() if value is not None}
