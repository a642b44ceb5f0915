"""Encodes entries, lists and watch events in the negotiated format: object, Table or metadata; JSON, YAML, protobuf."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import orjson

from argosy.errors import ArgosyError
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema import columns, field_error, protobuf_envelope
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.http.content_negotiation import AVAILABLE_MEDIA_TYPES, MEDIA_TYPES, ResponseFormat
from argosy.sandbox.apiserver.http.protobuf_yaml_list_encoder import encode_items, join_items
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.apiserver.listing import ListPage
from argosy.sandbox.apiserver.metadata import Clock
from argosy.sandbox.store import StoreEntry

PARTIAL_TYPE_META = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
PARTIAL_LIST_TYPE_META = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
LIST_CHUNK_BYTES = 256 << 10
SCALE_KIND = GroupKind("autoscaling", "Scale")
INCLUDE_OBJECT_VALUES = ("None", "Metadata", "Object")
WATCH_MEDIA_TYPES = "application/json, application/vnd.kubernetes.protobuf;stream=watch"
NOT_ACCEPTABLE_MESSAGE = f"only the following media types are accepted: {AVAILABLE_MEDIA_TYPES}"


class ResponseEncoder:
    """Encodes the response of one request."""

    def __init__(
        self, served: ApiKind, response_format: ResponseFormat, query: Mapping[str, str], clock: Clock
    ) -> None:
        # The clock, not the time, because a watch sends objects that are newer than its request.
        self.served, self.response_format, self._clock = served, response_format, clock
        self.is_pretty = query.get("pretty", "") in ("1", "true")
        self._include_object = query.get("includeObject") or "Metadata"
        if self._include_object not in INCLUDE_OBJECT_VALUES:
            invalid_field = field_error.not_supported(
                "includeObject", f'"{self._include_object}"', INCLUDE_OBJECT_VALUES
            )
            raise status_errors.invalid_options("TableOptions", invalid_field)
        if response_format.encoding == "protobuf" and served.resource.custom:
            raise status_errors.not_acceptable(NOT_ACCEPTABLE_MESSAGE)

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES[self.response_format.encoding]

    @property
    def watch_media_type(self) -> str:
        """Media type of a watch."""
        if self.response_format.encoding == "yaml":
            raise status_errors.not_acceptable(f"only the following media types are accepted: {WATCH_MEDIA_TYPES}")
        return f"{self.media_type};stream=watch" if self.response_format.encoding == "protobuf" else self.media_type

    def encode_entry(self, entry: StoreEntry) -> bytes:
        match self.response_format.projection:
            case "":
                if self.response_format.encoding == "json" and not self.is_pretty:
                    return self.served.encode_entry(entry) + b"\n"
                return self.encode_manifest(self.served.read_entry(entry))
            case "Table":
                return self.encode_manifest(self.build_table([entry], {"resourceVersion": str(entry.revision)}))
            case _:
                return self.encode_manifest(self._build_partial_metadata(self.served.read_entry(entry)))

    @property
    def returns_stored_bytes(self) -> bool:
        """True if the stored bytes of an entry are the response."""
        return self.response_format.encoding == "json" and not self.response_format.projection and not self.is_pretty

    @property
    def can_send_in_chunks(self) -> bool:
        """Only compact JSON: protobuf starts with its length, and indented or YAML lists are usually small."""
        return self.response_format.encoding == "json" and not self.is_pretty

    async def encode_page_in_chunks(self, page: ListPage) -> AsyncIterator[bytes]:
        """The same bytes as `encode_page`, each chunk built on demand."""
        head, encode_item = self._start_json_list(page)
        parts, chunk_bytes = [head], len(head)
        for number, entry in enumerate(page.entries):
            item_bytes = encode_item(entry)
            parts.append(b"," + item_bytes if number else item_bytes)
            chunk_bytes += len(item_bytes)
            if chunk_bytes >= LIST_CHUNK_BYTES:
                yield b"".join(parts)
                parts, chunk_bytes = [], 0
                await asyncio.sleep(0)
        yield b"".join([*parts, b"]}\n"])

    def _start_json_list(self, page: ListPage) -> tuple[bytes, Callable[[StoreEntry], bytes]]:
        """The bytes of a list up to its first item, and the function that encodes an item."""
        head, field = self._build_list_head(self._build_list_metadata(page))
        item_encoders = {"Table": self._encode_row, "": self.served.encode_list_item}
        encode_item = item_encoders.get(self.response_format.projection, self._encode_partial_metadata)
        return orjson.dumps(head)[:-1] + f',"{field}":['.encode(), encode_item

    def _encode_row(self, entry: StoreEntry) -> bytes:
        return orjson.dumps(self._build_row(self.served.read_entry(entry)))

    def _encode_partial_metadata(self, entry: StoreEntry) -> bytes:
        return orjson.dumps(self._build_partial_metadata(self.served.read_entry(entry)))

    def encode_page(self, page: ListPage) -> bytes:
        if self.returns_stored_bytes:
            return self._join_stored_items(page.entries, self._build_list_metadata(page))
        head, field = self._build_list_head(self._build_list_metadata(page))
        return self.encode_manifest({**head, field: self._build_list_items(page.entries)})

    def encode_page_items(self, entries: Sequence[StoreEntry]) -> bytes:
        """Encode some items of a list that cannot be sent in chunks; `join_page` joins them."""
        head, field = self._build_list_head({})
        return encode_items(head, field, self._build_list_items(entries), self.response_format.encoding)

    def join_page(self, page: ListPage, groups: Sequence[bytes]) -> bytes:
        """The same bytes as `encode_page`, from encoded groups of items."""
        head, field = self._build_list_head(self._build_list_metadata(page))
        return join_items(head, field, groups, self.response_format.encoding)

    def _build_list_head(self, metadata: Mapping[str, Any]) -> tuple[Manifest, str]:
        """A list without its items, and the name of the field for the items."""
        match self.response_format.projection:
            case "Table":
                return {name: value for name, value in self.build_table([], metadata).items() if name != "rows"}, "rows"
            case "":
                return self._build_object_list_head(metadata), "items"
            case _:
                return {**PARTIAL_LIST_TYPE_META, "metadata": metadata}, "items"

    def _build_list_items(self, entries: Sequence[StoreEntry]) -> list[Any]:
        match self.response_format.projection:
            case "Table":
                return [self._build_row(self.served.read_entry(entry)) for entry in entries]
            case "":
                return [orjson.loads(self.served.encode_list_item(entry)) for entry in entries]
            case _:
                return [self._build_partial_metadata(self.served.read_entry(entry)) for entry in entries]

    def _build_list_metadata(self, page: ListPage) -> dict[str, Any]:
        metadata: dict[str, Any] = {"resourceVersion": str(page.revision)}
        if page.continue_token or self.served.resource.custom:
            metadata["continue"] = page.continue_token
        if page.remaining_count is not None:
            metadata["remainingItemCount"] = page.remaining_count
        return metadata

    def _join_stored_items(self, entries: Sequence[StoreEntry], metadata: Mapping[str, Any]) -> bytes:
        """Join the stored bytes of the items without decoding them."""
        head = orjson.dumps(self._build_object_list_head(metadata))[:-1] + b',"items":['
        return head + b",".join([self.served.encode_list_item(entry) for entry in entries]) + b"]}\n"

    def _build_object_list_head(self, metadata: Mapping[str, Any]) -> Manifest:
        resource = self.served.resource
        kind = resource.list_kind or f"{resource.kind}List"
        return {"kind": kind, "apiVersion": resource.api_version, "metadata": metadata}

    def build_table(
        self, entries: Sequence[StoreEntry], metadata: Mapping[str, Any], *, with_columns: bool = True
    ) -> Manifest:
        rows = [self._build_row(self.served.read_entry(entry)) for entry in entries]
        head = {
            "kind": "Table",
            "apiVersion": f"meta.k8s.io/{self.response_format.table_version}",
            "metadata": metadata,
        }
        definitions = list(self.served.column_definitions()) if with_columns else []
        return {**head, "columnDefinitions": definitions, "rows": rows}

    def _build_row(self, manifest: Manifest) -> Manifest:
        row_object: Manifest | None = None
        if self._include_object == "Object":
            row_object = manifest
        elif self._include_object == "Metadata":
            row_object = self._build_partial_metadata(manifest)
        return {"cells": self.served.build_cells(manifest, self._clock()), "object": row_object}

    def _build_partial_metadata(self, manifest: Manifest) -> Manifest:
        return {**PARTIAL_TYPE_META, "metadata": manifest["metadata"]}

    def encode_scale(self, manifest: Manifest) -> bytes:
        """Encode a Scale, as an object or a Table."""
        if self.response_format.projection != "Table":
            return self.encode_manifest(manifest)
        scale_columns = columns.get_columns(SCALE_KIND, "v1")
        row = {
            "cells": scale_columns.build_cells(manifest, self._clock()),
            "object": self._build_partial_metadata(manifest),
        }
        head = {"kind": "Table", "apiVersion": f"meta.k8s.io/{self.response_format.table_version}"}
        list_metadata = {"resourceVersion": manifest["metadata"].get("resourceVersion", "")}
        return self.encode_manifest(
            {**head, "metadata": list_metadata, "columnDefinitions": list(scale_columns.definitions), "rows": [row]}
        )

    def encode_manifest(self, manifest: Manifest) -> bytes:
        return encode_response(manifest, self.response_format, pretty=self.is_pretty)

    def encode_event(self, type_: str, entry: StoreEntry, *, is_first: bool) -> bytes:
        """Encode one event of a watch: a line of JSON, or a protobuf frame."""
        if self.response_format.encoding == "protobuf":
            manifest = self.served.read_entry(entry)
            return self._encode_watch_frame(
                type_, self._build_partial_metadata(manifest) if self.response_format.projection else manifest
            )
        if self.response_format.projection == "":
            object_bytes = self.served.encode_entry(entry)
        elif self.response_format.projection == "Table":
            # k8s: only the first event has column definitions
            object_bytes = orjson.dumps(
                self.build_table([entry], {"resourceVersion": str(entry.revision)}, with_columns=is_first)
            )
        else:
            object_bytes = orjson.dumps(self._build_partial_metadata(self.served.read_entry(entry)))
        return b'{"type":"' + type_.encode() + b'","object":' + object_bytes + b"}\n"

    def encode_bookmark(self, revision: int, annotations: Mapping[str, str] | None, *, is_first: bool) -> bytes:
        resource = self.served.resource
        metadata: dict[str, Any] = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = dict(annotations)
        manifest: Manifest = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        if self.response_format.projection == "Table":
            row: Manifest = {"cells": [], "object": {**PARTIAL_TYPE_META, "metadata": metadata}}
            version = {"resourceVersion": str(revision)}
            manifest = {**self.build_table([], version, with_columns=is_first), "rows": [row]}
        elif self.response_format.projection:
            manifest = {**PARTIAL_TYPE_META, "metadata": metadata}
        return self._encode_watch_frame("BOOKMARK", manifest)

    def encode_error(self, error: ArgosyError) -> bytes:
        """Encode the ERROR event that ends a watch."""
        return self._encode_watch_frame("ERROR", status_errors.error_to_status(error))

    def _encode_watch_frame(self, type_: str, manifest: Manifest) -> bytes:
        if self.response_format.encoding == "protobuf":
            return protobuf_envelope.encode_event(type_, protobuf_envelope.encode(manifest))
        return orjson.dumps({"type": type_, "object": manifest}) + b"\n"


def encode_response(manifest: Any, response_format: ResponseFormat, *, pretty: bool = False) -> bytes:
    match response_format.encoding:
        case "yaml":
            from argosy.kube.objects import dump_yaml

            return dump_yaml(manifest).encode()
        case "protobuf":
            is_list = "items" in manifest and manifest["kind"].endswith("List")
            return protobuf_envelope.encode_list(manifest) if is_list else protobuf_envelope.encode(manifest)
    return orjson.dumps(manifest, option=orjson.OPT_APPEND_NEWLINE | (orjson.OPT_INDENT_2 if pretty else 0))
