"""Secrets and ConfigMaps in Argo CD's format: repositories, clusters, settings.

In: an ApplicationService, a Secret type, values. Out: DeclaredSecret values. Never: puts a Secret's value into a
message or repr; deletes a Secret that another tool manages.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from argosy.annotations import LAST_APPLIED, SECRET_TYPE
from argosy.errors import Conflict, UserError
from argosy.gitops.application_client.application_service import MAX_WRITE_ATTEMPTS, ApplicationService
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP, SECRET

MANAGED_BY_ANNOTATION: Final = "managed-by"  # argo: annotation; Argo CD deletes only Secrets that have it
ARGOCD_MANAGER: Final = "argocd.argoproj.io"
_FNV_PRIME, _FNV_OFFSET = 0x01000193, 0x811C9DC5


class SecretField(NamedTuple):
    """A field of the API and the key of the Secret that stores it."""

    wire_name: str
    key: str
    value_type: type = str  # str, bool or int
    is_secret: bool = False


@dataclass(frozen=True)
class DeclaredSecret:
    name: str
    values: Mapping[str, str] = field(repr=False)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    manifest: Manifest = field(default_factory=dict, repr=False)

    def get_stripped(self, key: str) -> str:
        return self.values.get(key, "").strip()


def decode_live_secret(secret: Manifest) -> DeclaredSecret:
    """Decode a Secret; values that are not base64 of UTF-8 are left out."""
    metadata: Mapping[str, Any] = secret["metadata"]
    values: dict[str, str] = {}
    for key, text in (secret.get("data") or {}).items():
        try:
            values[key] = base64.b64decode(text or "", validate=True).decode()
        except (binascii.Error, ValueError, TypeError):
            continue
    labels = {name: text for name, text in (metadata.get("labels") or {}).items() if name != SECRET_TYPE}
    hidden = (LAST_APPLIED, MANAGED_BY_ANNOTATION)
    annotations = {name: text for name, text in (metadata.get("annotations") or {}).items() if name not in hidden}
    return DeclaredSecret(str(metadata["name"]), values, labels, annotations, secret)


async def list_declared_secrets(service: ApplicationService, secret_type: str) -> list[DeclaredSecret]:
    listing = await service.cluster.list(
        SECRET, namespace=service.control_namespace, labels=f"{SECRET_TYPE}={secret_type}"
    )
    return sorted((decode_live_secret(secret) for secret in listing.items), key=lambda secret: secret.name)


async def create_declared_secret(
    service: ApplicationService,
    secret_type: str,
    name: str,
    values: Mapping[str, str],
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> DeclaredSecret:
    created = await service.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {
                "name": name,
                "namespace": service.control_namespace,
                "labels": {**(labels or {}), SECRET_TYPE: secret_type},
                "annotations": {**(annotations or {}), MANAGED_BY_ANNOTATION: ARGOCD_MANAGER},
            },
            "data": _encode_values(values),
        },
        dry_run=dry_run,
    )
    return decode_live_secret(created)


async def replace_declared_secret(
    service: ApplicationService,
    before: DeclaredSecret,
    values: Mapping[str, str],
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> DeclaredSecret:
    """Replace the values of a Secret. Raises Conflict if it changed since it was read."""
    metadata = dict(before.manifest["metadata"])
    if labels is not None:
        kind = (metadata.get("labels") or {}).get(SECRET_TYPE)
        metadata["labels"] = {**labels, SECRET_TYPE: kind}
    if annotations is not None:
        hidden = {
            name: text for name, text in (metadata.get("annotations") or {}).items() if name == MANAGED_BY_ANNOTATION
        }
        metadata["annotations"] = {**annotations, **hidden}
    # kubectl's last-applied annotation would keep the old values readable.
    kept_annotations = {
        name: text for name, text in (metadata.get("annotations") or {}).items() if name != LAST_APPLIED
    }
    metadata["annotations"] = kept_annotations
    other_fields = {name: value for name, value in before.manifest.items() if name not in ("data", "stringData")}
    changed = {**other_fields, "metadata": metadata, "data": _encode_values(values)}
    return decode_live_secret(await service.cluster.replace(changed, dry_run=dry_run))


async def delete_declared_secret(service: ApplicationService, declared: DeclaredSecret) -> None:
    """argo: a Secret that another tool manages keeps its data and only loses the type label."""
    metadata = declared.manifest["metadata"]
    key = ResourceKey(*SECRET, service.control_namespace, declared.name)
    if (metadata.get("annotations") or {}).get(MANAGED_BY_ANNOTATION) == ARGOCD_MANAGER:
        await service.cluster.delete(key, uid=metadata.get("uid"))
        return
    await service.cluster.patch(key, {"metadata": {"labels": {SECRET_TYPE: None}}})


def _encode_values(values: Mapping[str, str]) -> dict[str, str]:
    return {key: base64.b64encode(text.encode()).decode() for key, text in values.items() if text}


def build_secret_name(prefix: str, *words: str) -> str:
    """argo: name with an FNV-1a hash (32 bits) of what is declared, so that nothing is declared twice."""
    digest = _FNV_OFFSET
    for byte in "".join(words).encode():
        digest = ((digest ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return f"{prefix}-{digest}"


async def update_config_map(
    service: ApplicationService, name: str, change: Callable[[dict[str, str]], Mapping[str, str]]
) -> None:
    """Change a ConfigMap's data and retry on conflict; creates the ConfigMap if it does not exist."""
    key = ResourceKey(*CONFIG_MAP, service.control_namespace, name)
    for _ in range(MAX_WRITE_ATTEMPTS):
        before = await service.cluster.get(key)
        data = dict((before or {}).get("data") or {})
        after = dict(change(dict(data)))
        if after == data:
            return
        try:
            if before is None:
                labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"}
                metadata = {"name": name, "namespace": service.control_namespace, "labels": labels}
                manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": after}
                await service.cluster.create(manifest)
            else:
                await service.cluster.replace({**before, "data": after})
        except Conflict:
            continue
        return
    raise UserError(f"{name}: gave up after {MAX_WRITE_ATTEMPTS} write conflicts; try again")


async def load_config_map_data(service: ApplicationService, name: str) -> dict[str, str]:
    manifest = await service.cluster.get(ResourceKey(*CONFIG_MAP, service.control_namespace, name)) or {}
    return {key: text for key, text in (manifest.get("data") or {}).items() if isinstance(text, str)}


def secret_values_from_wire(body: Mapping[str, Any], fields: tuple[SecretField, ...], where: str) -> dict[str, str]:
    """Convert the fields of a request to Secret values; fields that were not sent are left out."""
    values: dict[str, str] = {}
    for secret_field in fields:
        value = body.get(secret_field.wire_name)
        if value is None or value == "":
            continue
        if secret_field.value_type is int and isinstance(value, str) and value.isdecimal():
            value = int(value)  # argo: 64-bit numbers are sent as strings
        if type(value) is not secret_field.value_type:
            expected = {str: "a string", bool: "true or false", int: "an integer"}[secret_field.value_type]
            raise UserError(f"{secret_field.wire_name} must be {expected}; correct it", where=where)
        values[secret_field.key] = str(value).lower() if secret_field.value_type is bool else str(value)
    return values


def declared_secret_to_wire(declared: DeclaredSecret, fields: tuple[SecretField, ...]) -> dict[str, Any]:
    """Convert a Secret to API fields, without secret ones."""
    body: dict[str, Any] = {}
    for secret_field in fields:
        text = declared.values.get(secret_field.key, "")
        if secret_field.is_secret or not text:
            continue
        if secret_field.value_type is bool:
            body[secret_field.wire_name] = text.strip() == "true"
        elif secret_field.value_type is int:
            body[secret_field.wire_name] = int(text) if text.strip().isdecimal() else 0
        else:
            body[secret_field.wire_name] = text
    return body
