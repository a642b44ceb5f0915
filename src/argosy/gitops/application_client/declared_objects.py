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
from argosy.gitops.application_client.client import ATTEMPTS, Desk
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

SECRET: Final = GroupKind("", "Secret")
CONFIG_MAP: Final = GroupKind("", "ConfigMap")
MANAGED_BY: Final = "managed-by"  # argo: annotation; Argo CD deletes only Secrets that have it
OURS: Final = "argocd.argoproj.io"
_PRIME, _OFFSET = 0x01000193, 0x811C9DC5


class Field(NamedTuple):
    """A field of the API and the key of the Secret that stores it."""

    wire: str
    key: str
    form: type = str  # str, bool or int
    is_secret: bool = False


@dataclass(frozen=True)
class Declared:
    name: str
    values: Mapping[str, str] = field(repr=False)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    manifest: Manifest = field(default_factory=dict, repr=False)

    def text(self, key: str) -> str:
        return self.values.get(key, "").strip()


def read_declared(secret: Manifest) -> Declared:
    """Decode a Secret; values that are not base64 of UTF-8 are left out."""
    metadata: Mapping[str, Any] = secret["metadata"]
    values: dict[str, str] = {}
    for key, text in (secret.get("data") or {}).items():
        try:
            values[key] = base64.b64decode(text or "", validate=True).decode()
        except (binascii.Error, ValueError, TypeError):
            continue
    labels = {name: text for name, text in (metadata.get("labels") or {}).items() if name != SECRET_TYPE}
    hidden = (LAST_APPLIED, MANAGED_BY)
    annotations = {name: text for name, text in (metadata.get("annotations") or {}).items() if name not in hidden}
    return Declared(str(metadata["name"]), values, labels, annotations, secret)


async def all_declared(desk: Desk, kind: str) -> list[Declared]:
    found = await desk.cluster.list(SECRET, namespace=desk.control, labels=f"{SECRET_TYPE}={kind}")
    return sorted((read_declared(each) for each in found.items), key=lambda each: each.name)


async def declare(
    desk: Desk,
    kind: str,
    name: str,
    values: Mapping[str, str],
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> Declared:
    made = await desk.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {
                "name": name,
                "namespace": desk.control,
                "labels": {**(labels or {}), SECRET_TYPE: kind},
                "annotations": {**(annotations or {}), MANAGED_BY: OURS},
            },
            "data": _encoded(values),
        },
        dry_run=dry_run,
    )
    return read_declared(made)


async def declare_anew(
    desk: Desk,
    before: Declared,
    values: Mapping[str, str],
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> Declared:
    """Replace the values of a Secret. Raises Conflict if it changed since it was read."""
    metadata = dict(before.manifest["metadata"])
    if labels is not None:
        kind = (metadata.get("labels") or {}).get(SECRET_TYPE)
        metadata["labels"] = {**labels, SECRET_TYPE: kind}
    if annotations is not None:
        hidden = {name: text for name, text in (metadata.get("annotations") or {}).items() if name == MANAGED_BY}
        metadata["annotations"] = {**annotations, **hidden}
    # kubectl's last-applied annotation would keep the old values readable.
    marks = {name: text for name, text in (metadata.get("annotations") or {}).items() if name != LAST_APPLIED}
    metadata["annotations"] = marks
    rest = {name: value for name, value in before.manifest.items() if name not in ("data", "stringData")}
    changed = {**rest, "metadata": metadata, "data": _encoded(values)}
    return read_declared(await desk.cluster.replace(changed, dry_run=dry_run))


async def withdraw(desk: Desk, declared: Declared) -> None:
    """argo: a Secret that another tool manages keeps its data and only loses the type label."""
    metadata = declared.manifest["metadata"]
    key = ResourceKey(*SECRET, desk.control, declared.name)
    if (metadata.get("annotations") or {}).get(MANAGED_BY) == OURS:
        await desk.cluster.delete(key, uid=metadata.get("uid"))
        return
    await desk.cluster.patch(key, {"metadata": {"labels": {SECRET_TYPE: None}}})


def _encoded(values: Mapping[str, str]) -> dict[str, str]:
    return {key: base64.b64encode(text.encode()).decode() for key, text in values.items() if text}


def secret_name(prefix: str, *words: str) -> str:
    """argo: name with an FNV-1a hash (32 bits) of what is declared, so that nothing is declared twice."""
    found = _OFFSET
    for byte in "".join(words).encode():
        found = ((found ^ byte) * _PRIME) & 0xFFFFFFFF
    return f"{prefix}-{found}"


async def change_map(desk: Desk, name: str, make: Callable[[dict[str, str]], Mapping[str, str]]) -> None:
    """Change a ConfigMap's data and retry on conflict; creates the ConfigMap if it does not exist."""
    key = ResourceKey(*CONFIG_MAP, desk.control, name)
    for _ in range(ATTEMPTS):
        before = await desk.cluster.get(key)
        data = dict((before or {}).get("data") or {})
        after = dict(make(dict(data)))
        if after == data:
            return
        try:
            if before is None:
                labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"}
                metadata = {"name": name, "namespace": desk.control, "labels": labels}
                made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": after}
                await desk.cluster.create(made)
            else:
                await desk.cluster.replace({**before, "data": after})
        except Conflict:
            continue
        return
    raise UserError(f"{name}: gave up after {ATTEMPTS} write conflicts; try again")


async def map_data(desk: Desk, name: str) -> dict[str, str]:
    found = await desk.cluster.get(ResourceKey(*CONFIG_MAP, desk.control, name)) or {}
    return {key: text for key, text in (found.get("data") or {}).items() if isinstance(text, str)}


def values_of(given: Mapping[str, Any], fields: tuple[Field, ...], where: str) -> dict[str, str]:
    """Convert the fields of a request to Secret values; fields that were not sent are left out."""
    found: dict[str, str] = {}
    for each in fields:
        value = given.get(each.wire)
        if value is None or value == "":
            continue
        if each.form is int and isinstance(value, str) and value.isdecimal():
            value = int(value)  # argo: 64-bit numbers are sent as strings
        if type(value) is not each.form:
            word = {str: "a string", bool: "true or false", int: "an integer"}[each.form]
            raise UserError(f"{each.wire} must be {word}; correct it", where=where)
        found[each.key] = str(value).lower() if each.form is bool else str(value)
    return found


def told(declared: Declared, fields: tuple[Field, ...]) -> dict[str, Any]:
    """Convert a Secret to API fields, without secret ones."""
    found: dict[str, Any] = {}
    for each in fields:
        text = declared.values.get(each.key, "")
        if each.is_secret or not text:
            continue
        if each.form is bool:
            found[each.wire] = text.strip() == "true"
        elif each.form is int:
            found[each.wire] = int(text) if text.strip().isdecimal() else 0
        else:
            found[each.wire] = text
    return found
