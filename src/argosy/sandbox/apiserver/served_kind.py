"""How the server decodes, defaults, validates, stores and encodes a kind, built-in or custom.

In: request bodies, entries of the store. Out: manifests, field errors, bytes. Never: writes to the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol

import orjson

from argosy.kube.objects import Manifest
from argosy.kube.patch.merge_schema import Shape
from argosy.kube.schema import columns, defaults, typed_json, validation
from argosy.kube.schema.builtin_types import Type, type_of
from argosy.kube.schema.crd import CustomKind
from argosy.kube.schema.field_error import Fault
from argosy.kube.schema.resources import Resource
from argosy.kube.schema.selectors import FieldLabels, field_labels
from argosy.kube.schema.validation import metadata as metadata_rules
from argosy.sandbox.apiserver.conversions import Conversion, conversion_of
from argosy.sandbox.store import Entry


class Served(Protocol):
    """What the registry and the HTTP layer need to know about a kind."""

    @property
    def resource(self) -> Resource: ...

    @property
    def bucket(self) -> str: ...

    @property
    def shape(self) -> Shape: ...

    @property
    def zero(self) -> Manifest | None: ...

    @property
    def unconditional(self) -> bool:
        """True if an update without a resourceVersion is allowed."""

    def decode(self, value: Any) -> tuple[Manifest, Sequence[str]]:
        """The manifest, and the paths of unknown fields."""

    def complete(self, manifest: Manifest) -> Manifest:
        """Set the kind's defaults."""

    def prepare_create(self, manifest: Manifest) -> Manifest:
        """Set or clear the fields that only the server may set on a new object."""

    def prepare_update(self, manifest: Manifest, old: Manifest) -> Manifest: ...
    def faults_on_create(self, manifest: Manifest) -> Sequence[Fault]: ...
    def faults_on_update(self, manifest: Manifest, old: Manifest) -> Sequence[Fault]: ...
    def prepare_status(self, manifest: Manifest, old: Manifest) -> Manifest: ...
    def faults_on_status(self, manifest: Manifest, old: Manifest) -> Sequence[Fault]: ...
    def tracks_generation(self) -> bool: ...
    def store(self, manifest: Manifest) -> Manifest: ...
    def read(self, entry: Entry) -> Manifest: ...
    def present(self, entry: Entry) -> bytes: ...
    def item(self, entry: Entry) -> bytes: ...
    def column_definitions(self) -> Sequence[Mapping[str, Any]]: ...
    def cells(self, manifest: Manifest, now: datetime) -> list[Any]: ...

    @property
    def field_labels(self) -> FieldLabels: ...

    @property
    def deprecation(self) -> str:
        """Warning for clients that use the kind in this version; empty if it is not deprecated."""


def bucket_of(group: str, plural: str) -> str:
    """Bucket of a resource. All versions of a kind share it, and so do both groups of Event."""
    if plural == "events" and group in ("", "events.k8s.io"):
        return "events"
    return f"{group}/{plural}" if group else plural


def opening(resource: Resource) -> bytes:
    """The bytes that precede a stored object, which has no kind and apiVersion, in a response."""
    head = {"kind": resource.kind, "apiVersion": resource.api_version}
    return orjson.dumps(head)[:-1] + b","


@dataclass(frozen=True, eq=False)
class BuiltIn:
    """A kind from the tables in `kube.schema`."""

    resource: Resource
    type: Type
    bucket: str
    conversion: Conversion | None = None

    @classmethod
    def of(cls, resource: Resource) -> BuiltIn:
        type_ = type_of(resource.group, resource.version, resource.kind)
        if type_ is None:
            raise LookupError(f"no field table for {resource.api_version} {resource.kind}")
        bucket = bucket_of(resource.group, resource.plural)
        return cls(resource, type_, bucket, conversion_of(resource.group, resource.version, resource.kind))

    @property
    def shape(self) -> Shape:
        return self.type

    @cached_property
    def zero(self) -> Manifest:
        return typed_json.zero(self.type)

    @cached_property
    def unconditional(self) -> bool:
        return validation.allows_unconditional_update(self.resource.group_kind)

    @cached_property
    def _opening(self) -> bytes:
        return opening(self.resource)

    def decode(self, value: Any) -> tuple[Manifest, Sequence[str]]:
        decoded = typed_json.decode(self.type, value, kind=self.resource.kind, api_version=self.resource.api_version)
        return decoded.manifest, decoded.unknown

    def prepare_create(self, manifest: Manifest) -> Manifest:
        return validation.prepare_create(self.resource, manifest)

    def prepare_update(self, manifest: Manifest, old: Manifest) -> Manifest:
        return validation.prepare_update(self.resource, manifest, old)

    def complete(self, manifest: Manifest) -> Manifest:
        return defaults.apply(self.resource.group_kind, self.resource.version, manifest)

    def faults_on_create(self, manifest: Manifest) -> Sequence[Fault]:
        return validation.on_create(self.resource, manifest)

    def faults_on_update(self, manifest: Manifest, old: Manifest) -> Sequence[Fault]:
        return validation.on_update(self.resource, manifest, old)

    def prepare_status(self, manifest: Manifest, old: Manifest) -> Manifest:
        return validation.prepare_status_update(self.resource, manifest, old)

    def faults_on_status(self, manifest: Manifest, old: Manifest) -> Sequence[Fault]:
        return validation.on_status_update(self.resource, manifest, old)

    def tracks_generation(self) -> bool:
        return validation.has_generation(self.resource.group_kind)

    def store(self, manifest: Manifest) -> Manifest:
        """Convert the manifest to the storage version."""
        return self.conversion.to_stored(manifest) if self.conversion else manifest

    def read(self, entry: Entry) -> Manifest:
        return whole(self.resource, self._shown(orjson.loads(entry.body)))

    def _shown(self, stored: Manifest) -> Manifest:
        return self.conversion.from_stored(stored) if self.conversion else stored

    def present(self, entry: Entry) -> bytes:
        if self.conversion:
            return orjson.dumps(self.read(entry))
        return self._opening + entry.body[1:]

    def item(self, entry: Entry) -> bytes:
        # k8s: items of a built-in list carry no kind and apiVersion
        return orjson.dumps(self._shown(orjson.loads(entry.body))) if self.conversion else entry.body

    def column_definitions(self) -> Sequence[Mapping[str, Any]]:
        return columns.of(self.resource.group_kind, self.resource.version).definitions

    def cells(self, manifest: Manifest, now: datetime) -> list[Any]:
        return columns.of(self.resource.group_kind, self.resource.version).cells(manifest, now)

    @property
    def field_labels(self) -> FieldLabels:
        return field_labels(self.resource.group_kind)

    deprecation = ""


@dataclass(frozen=True, eq=False)
class Custom:
    """A kind from a CustomResourceDefinition, in one of its versions."""

    resource: Resource
    kind: CustomKind
    bucket: str
    schema_revision: int  # older entries may lack defaults of the current schema
    schema: Manifest
    stored: CustomKind  # the kind in its storage version

    zero = None
    unconditional = False

    @property
    def shape(self) -> Shape:
        return self.kind.shape

    @cached_property
    def _opening(self) -> bytes:
        return opening(self.resource)

    def decode(self, value: Any) -> tuple[Manifest, Sequence[str]]:
        return self.kind.decode(value)

    def complete(self, manifest: Manifest) -> Manifest:
        return self.kind.default(manifest)

    def prepare_create(self, manifest: Manifest) -> Manifest:
        return without_status(manifest) if self.resource.subresource("status") else manifest

    def prepare_update(self, manifest: Manifest, old: Manifest) -> Manifest:
        if not self.resource.subresource("status"):
            return manifest
        kept = {"status": old["status"]} if "status" in old else {}
        return {**without_status(manifest), **kept}

    def faults_on_create(self, manifest: Manifest) -> Sequence[Fault]:
        namespaced = self.resource.namespaced
        faults = metadata_rules.on_create(
            manifest["metadata"], namespaced=namespaced, grammar=self.kind.grammar, custom=True
        )
        return [*faults, *self.kind.validate(manifest, None)]

    def faults_on_update(self, manifest: Manifest, old: Manifest) -> Sequence[Fault]:
        faults = metadata_rules.on_update(manifest["metadata"], old["metadata"], conditional=True)
        return [*faults, *faults, *self.kind.validate(manifest, old)]  # k8s: reported twice

    def prepare_status(self, manifest: Manifest, old: Manifest) -> Manifest:
        return self.kind.default(only_status(manifest, old))

    def faults_on_status(self, manifest: Manifest, old: Manifest) -> Sequence[Fault]:
        return self.kind.validate(manifest, old)

    def tracks_generation(self) -> bool:
        return True

    def store(self, manifest: Manifest) -> Manifest:
        return manifest

    def read(self, entry: Entry) -> Manifest:
        manifest = whole(self.resource, orjson.loads(entry.body))
        return self._brought_up(manifest) if self._is_stale(entry) else manifest

    def _is_stale(self, entry: Entry) -> bool:
        return entry.revision < self.schema_revision

    def _brought_up(self, manifest: Manifest) -> Manifest:
        """k8s: prune and default with the storage version's schema, then prune with the requested version's schema."""
        pruned, _ = self.stored.decode({**manifest, "apiVersion": self.stored.resource.api_version})
        completed = self.stored.default(pruned)
        if self.stored is self.kind:
            return completed
        return self.kind.decode({**completed, "apiVersion": self.resource.api_version})[0]

    def present(self, entry: Entry) -> bytes:
        if self._is_stale(entry):
            return orjson.dumps(self.read(entry))
        return self._opening + entry.body[1:]

    def item(self, entry: Entry) -> bytes:
        return self.present(entry)

    def column_definitions(self) -> Sequence[Mapping[str, Any]]:
        return self.kind.column_definitions

    def cells(self, manifest: Manifest, now: datetime) -> list[Any]:
        return self.kind.columns(manifest, now)

    @property
    def field_labels(self) -> FieldLabels:
        return self.kind.field_labels

    @property
    def deprecation(self) -> str:
        return self.kind.deprecation


def without_status(manifest: Manifest) -> Manifest:
    return {name: value for name, value in manifest.items() if name != "status"}


def only_status(manifest: Manifest, old: Manifest) -> Manifest:
    """k8s: a write to /status changes only the status and managedFields."""
    metadata = dict(old["metadata"])
    if "managedFields" in manifest["metadata"]:
        metadata["managedFields"] = manifest["metadata"]["managedFields"]
    kept = {name: value for name, value in old.items() if name != "status"}
    status = {"status": manifest["status"]} if "status" in manifest else {}
    return {**kept, "metadata": metadata, **status}


def whole(resource: Resource, stored: Manifest) -> Manifest:
    return {"kind": resource.kind, "apiVersion": resource.api_version, **stored}
