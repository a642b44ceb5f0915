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
from argosy.kube.patch.merge_schema_protocol import Shape
from argosy.kube.schema import builtin_type_json_codec, columns, defaults, validation
from argosy.kube.schema.api_resource import ApiResource
from argosy.kube.schema.builtin_go_struct_fields import Type, find_builtin_type
from argosy.kube.schema.crd import CustomKind
from argosy.kube.schema.field_error import FieldError
from argosy.kube.schema.selectors import FieldLabels, get_field_labels
from argosy.kube.schema.validation import metadata as metadata_rules
from argosy.sandbox.apiserver.event_and_autoscaler_conversions import Conversion, find_conversion
from argosy.sandbox.store import StoreEntry


class ApiKind(Protocol):
    """What the registry and the HTTP layer need to know about a kind."""

    @property
    def resource(self) -> ApiResource: ...

    @property
    def bucket(self) -> str: ...

    @property
    def shape(self) -> Shape: ...

    @property
    def zero_value(self) -> Manifest | None: ...

    @property
    def allows_unconditional_update(self) -> bool:
        """True if an update without a resourceVersion is allowed."""

    def decode(self, body: Any) -> tuple[Manifest, Sequence[str]]:
        """The manifest, and the paths of unknown fields."""

    def apply_defaults(self, manifest: Manifest) -> Manifest:
        """Set the kind's defaults."""

    def prepare_create(self, manifest: Manifest) -> Manifest:
        """Set or clear the fields that only the server may set on a new object."""

    def prepare_update(self, manifest: Manifest, old: Manifest) -> Manifest: ...
    def validate_create(self, manifest: Manifest) -> Sequence[FieldError]: ...
    def validate_update(self, manifest: Manifest, old: Manifest) -> Sequence[FieldError]: ...
    def prepare_status(self, manifest: Manifest, old: Manifest) -> Manifest: ...
    def validate_status(self, manifest: Manifest, old: Manifest) -> Sequence[FieldError]: ...
    def tracks_generation(self) -> bool: ...
    def to_stored(self, manifest: Manifest) -> Manifest: ...
    def read_entry(self, entry: StoreEntry) -> Manifest: ...
    def encode_entry(self, entry: StoreEntry) -> bytes: ...
    def encode_list_item(self, entry: StoreEntry) -> bytes: ...
    def column_definitions(self) -> Sequence[Mapping[str, Any]]: ...
    def build_cells(self, manifest: Manifest, now: datetime) -> list[Any]: ...

    @property
    def field_labels(self) -> FieldLabels: ...

    @property
    def deprecation_warning(self) -> str:
        """Warning for clients that use the kind in this version; empty if it is not deprecated."""


def get_bucket(group: str, plural: str) -> str:
    """Bucket of a resource. All versions of a kind share it, and so do both groups of Event."""
    if plural == "events" and group in ("", "events.k8s.io"):
        return "events"
    return f"{group}/{plural}" if group else plural


def encode_type_meta_prefix(resource: ApiResource) -> bytes:
    """The bytes that precede a stored object, which has no kind and apiVersion, in a response."""
    type_meta = {"kind": resource.kind, "apiVersion": resource.api_version}
    return orjson.dumps(type_meta)[:-1] + b","


@dataclass(frozen=True, eq=False)
class BuiltInApiKind:
    """A kind from the tables in `kube.schema`."""

    resource: ApiResource
    type: Type
    bucket: str
    conversion: Conversion | None = None

    @classmethod
    def from_resource(cls, resource: ApiResource) -> BuiltInApiKind:
        type_ = find_builtin_type(resource.group, resource.version, resource.kind)
        if type_ is None:
            raise LookupError(f"no field table for {resource.api_version} {resource.kind}")
        bucket = get_bucket(resource.group, resource.plural)
        return cls(resource, type_, bucket, find_conversion(resource.group, resource.version, resource.kind))

    @property
    def shape(self) -> Shape:
        return self.type

    @cached_property
    def zero_value(self) -> Manifest:
        return builtin_type_json_codec.build_empty_object(self.type)

    @cached_property
    def allows_unconditional_update(self) -> bool:
        return validation.allows_unconditional_update(self.resource.group_kind)

    @cached_property
    def _type_meta_prefix(self) -> bytes:
        return encode_type_meta_prefix(self.resource)

    def decode(self, body: Any) -> tuple[Manifest, Sequence[str]]:
        decoded = builtin_type_json_codec.decode(
            self.type, body, kind=self.resource.kind, api_version=self.resource.api_version
        )
        return decoded.manifest, decoded.unknown_fields

    def prepare_create(self, manifest: Manifest) -> Manifest:
        return validation.prepare_create(self.resource, manifest)

    def prepare_update(self, manifest: Manifest, old: Manifest) -> Manifest:
        return validation.prepare_update(self.resource, manifest, old)

    def apply_defaults(self, manifest: Manifest) -> Manifest:
        return defaults.apply_defaults(self.resource.group_kind, self.resource.version, manifest)

    def validate_create(self, manifest: Manifest) -> Sequence[FieldError]:
        return validation.validate_create(self.resource, manifest)

    def validate_update(self, manifest: Manifest, old: Manifest) -> Sequence[FieldError]:
        return validation.validate_update(self.resource, manifest, old)

    def prepare_status(self, manifest: Manifest, old: Manifest) -> Manifest:
        return validation.prepare_status_update(self.resource, manifest, old)

    def validate_status(self, manifest: Manifest, old: Manifest) -> Sequence[FieldError]:
        return validation.validate_status_update(self.resource, manifest, old)

    def tracks_generation(self) -> bool:
        return validation.has_generation(self.resource.group_kind)

    def to_stored(self, manifest: Manifest) -> Manifest:
        """Convert the manifest to the storage version."""
        return self.conversion.to_stored(manifest) if self.conversion else manifest

    def read_entry(self, entry: StoreEntry) -> Manifest:
        return add_type_meta(self.resource, self._from_stored(orjson.loads(entry.body)))

    def _from_stored(self, stored: Manifest) -> Manifest:
        return self.conversion.from_stored(stored) if self.conversion else stored

    def encode_entry(self, entry: StoreEntry) -> bytes:
        if self.conversion:
            return orjson.dumps(self.read_entry(entry))
        return self._type_meta_prefix + entry.body[1:]

    def encode_list_item(self, entry: StoreEntry) -> bytes:
        # k8s: items of a built-in list carry no kind and apiVersion
        return orjson.dumps(self._from_stored(orjson.loads(entry.body))) if self.conversion else entry.body

    def column_definitions(self) -> Sequence[Mapping[str, Any]]:
        return columns.get_columns(self.resource.group_kind, self.resource.version).definitions

    def build_cells(self, manifest: Manifest, now: datetime) -> list[Any]:
        return columns.get_columns(self.resource.group_kind, self.resource.version).build_cells(manifest, now)

    @property
    def field_labels(self) -> FieldLabels:
        return get_field_labels(self.resource.group_kind)

    deprecation_warning = ""


@dataclass(frozen=True, eq=False)
class CustomApiKind:
    """A kind from a CustomResourceDefinition, in one of its versions."""

    resource: ApiResource
    kind: CustomKind
    bucket: str
    schema_revision: int  # older entries may lack defaults of the current schema
    schema: Manifest
    storage_kind: CustomKind  # the kind in its storage version

    zero_value = None
    allows_unconditional_update = False

    @property
    def shape(self) -> Shape:
        return self.kind.shape

    @cached_property
    def _type_meta_prefix(self) -> bytes:
        return encode_type_meta_prefix(self.resource)

    def decode(self, body: Any) -> tuple[Manifest, Sequence[str]]:
        return self.kind.decode(body)

    def apply_defaults(self, manifest: Manifest) -> Manifest:
        return self.kind.apply_defaults(manifest)

    def prepare_create(self, manifest: Manifest) -> Manifest:
        return drop_status(manifest) if self.resource.find_subresource("status") else manifest

    def prepare_update(self, manifest: Manifest, old: Manifest) -> Manifest:
        if not self.resource.find_subresource("status"):
            return manifest
        old_status = {"status": old["status"]} if "status" in old else {}
        return {**drop_status(manifest), **old_status}

    def validate_create(self, manifest: Manifest) -> Sequence[FieldError]:
        namespaced = self.resource.namespaced
        field_errors = metadata_rules.validate_metadata_create(
            manifest["metadata"], namespaced=namespaced, name_check=self.kind.name_check, is_custom=True
        )
        return [*field_errors, *self.kind.validate(manifest, None)]

    def validate_update(self, manifest: Manifest, old: Manifest) -> Sequence[FieldError]:
        field_errors = metadata_rules.validate_metadata_update(
            manifest["metadata"], old["metadata"], needs_resource_version=True
        )
        return [*field_errors, *field_errors, *self.kind.validate(manifest, old)]  # k8s: reported twice

    def prepare_status(self, manifest: Manifest, old: Manifest) -> Manifest:
        return self.kind.apply_defaults(merge_status(manifest, old))

    def validate_status(self, manifest: Manifest, old: Manifest) -> Sequence[FieldError]:
        return self.kind.validate(manifest, old)

    def tracks_generation(self) -> bool:
        return True

    def to_stored(self, manifest: Manifest) -> Manifest:
        return manifest

    def read_entry(self, entry: StoreEntry) -> Manifest:
        manifest = add_type_meta(self.resource, orjson.loads(entry.body))
        return self._convert_stale(manifest) if self._is_stale(entry) else manifest

    def _is_stale(self, entry: StoreEntry) -> bool:
        return entry.revision < self.schema_revision

    def _convert_stale(self, manifest: Manifest) -> Manifest:
        """k8s: prune and default with the storage version's schema, then prune with the requested version's schema."""
        pruned, _ = self.storage_kind.decode({**manifest, "apiVersion": self.storage_kind.resource.api_version})
        completed = self.storage_kind.apply_defaults(pruned)
        if self.storage_kind is self.kind:
            return completed
        return self.kind.decode({**completed, "apiVersion": self.resource.api_version})[0]

    def encode_entry(self, entry: StoreEntry) -> bytes:
        if self._is_stale(entry):
            return orjson.dumps(self.read_entry(entry))
        return self._type_meta_prefix + entry.body[1:]

    def encode_list_item(self, entry: StoreEntry) -> bytes:
        return self.encode_entry(entry)

    def column_definitions(self) -> Sequence[Mapping[str, Any]]:
        return self.kind.column_definitions

    def build_cells(self, manifest: Manifest, now: datetime) -> list[Any]:
        return self.kind.build_cells(manifest, now)

    @property
    def field_labels(self) -> FieldLabels:
        return self.kind.field_labels

    @property
    def deprecation_warning(self) -> str:
        return self.kind.deprecation_warning


def drop_status(manifest: Manifest) -> Manifest:
    return {name: value for name, value in manifest.items() if name != "status"}


def merge_status(manifest: Manifest, old: Manifest) -> Manifest:
    """k8s: a write to /status changes only the status and managedFields."""
    metadata = dict(old["metadata"])
    if "managedFields" in manifest["metadata"]:
        metadata["managedFields"] = manifest["metadata"]["managedFields"]
    old_fields = {name: value for name, value in old.items() if name != "status"}
    status = {"status": manifest["status"]} if "status" in manifest else {}
    return {**old_fields, "metadata": metadata, **status}


def add_type_meta(resource: ApiResource, stored: Manifest) -> Manifest:
    return {"kind": resource.kind, "apiVersion": resource.api_version, **stored}
