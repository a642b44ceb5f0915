"""Encodes entries, lists and watch events in the negotiated format: object, Table or metadata; JSON, YAML, protobuf."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import orjson

from argosy.errors import ArgosyError
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.kube.schema import columns, field_error, protobuf
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.http.content_negotiation import AVAILABLE, MEDIA_TYPES, Form
from argosy.sandbox.apiserver.http.list_encoding import encode_items, join_items
from argosy.sandbox.apiserver.listing import Page
from argosy.sandbox.apiserver.metadata import Clock
from argosy.sandbox.apiserver.served_kind import Served
from argosy.sandbox.store import Entry

PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
PARTIAL_LIST = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
LIST_PIECE_BYTES = 256 << 10
SCALE = GroupKind("autoscaling", "Scale")
INCLUDE = ("None", "Metadata", "Object")
STREAMED = "application/json, application/vnd.kubernetes.protobuf;stream=watch"
NOT_FOR_CUSTOM = f"only the following media types are accepted: {AVAILABLE}"


class Rendering:
    """Encodes the response of one request."""

    def __init__(self, served: Served, form: Form, query: Mapping[str, str], clock: Clock) -> None:
        # The clock, not the time, because a watch sends objects that are newer than its request.
        self.served, self.form, self._clock = served, form, clock
        self.pretty = query.get("pretty", "") in ("1", "true")
        self._include = query.get("includeObject") or "Metadata"
        if self._include not in INCLUDE:
            bad = field_error.not_supported("includeObject", f'"{self._include}"', INCLUDE)
            raise status_errors.invalid_options("TableOptions", bad)
        if form.encoding == "protobuf" and served.resource.custom:
            raise status_errors.not_acceptable(NOT_FOR_CUSTOM)

    @property
    def media(self) -> str:
        return MEDIA_TYPES[self.form.encoding]

    @property
    def stream_media(self) -> str:
        """Media type of a watch."""
        if self.form.encoding == "yaml":
            raise status_errors.not_acceptable(f"only the following media types are accepted: {STREAMED}")
        return f"{self.media};stream=watch" if self.form.encoding == "protobuf" else self.media

    def entry(self, entry: Entry) -> bytes:
        match self.form.projection:
            case "":
                if self.form.encoding == "json" and not self.pretty:
                    return self.served.present(entry) + b"\n"
                return self.encoded(self.served.read(entry))
            case "Table":
                return self.encoded(self.table([entry], {"resourceVersion": str(entry.revision)}))
            case _:
                return self.encoded(self._partial(self.served.read(entry)))

    @property
    def is_as_stored(self) -> bool:
        """True if the stored bytes of an entry are the response."""
        return self.form.encoding == "json" and not self.form.projection and not self.pretty

    @property
    def can_be_sent_in_pieces(self) -> bool:
        """Only compact JSON: protobuf starts with its length, and indented or YAML lists are usually small."""
        return self.form.encoding == "json" and not self.pretty

    async def pieces(self, page: Page) -> AsyncIterator[bytes]:
        """The same bytes as `encode_page`, each chunk built on demand."""
        head, item = self._list_parts(page)
        parts, size = [head], len(head)
        for number, entry in enumerate(page.entries):
            shown = item(entry)
            parts.append(b"," + shown if number else shown)
            size += len(shown)
            if size >= LIST_PIECE_BYTES:
                yield b"".join(parts)
                parts, size = [], 0
                await asyncio.sleep(0)
        yield b"".join([*parts, b"]}\n"])

    def _list_parts(self, page: Page) -> tuple[bytes, Callable[[Entry], bytes]]:
        """The bytes of a list up to its first item, and the function that encodes an item."""
        head, field = self._list_head(self._list_metadata(page))
        makers = {"Table": self._encoded_row, "": self.served.item}
        item = makers.get(self.form.projection, self._encoded_partial)
        return orjson.dumps(head)[:-1] + f',"{field}":['.encode(), item

    def _encoded_row(self, entry: Entry) -> bytes:
        return orjson.dumps(self._row(self.served.read(entry)))

    def _encoded_partial(self, entry: Entry) -> bytes:
        return orjson.dumps(self._partial(self.served.read(entry)))

    def page(self, page: Page) -> bytes:
        if self.is_as_stored:
            return self._joined(page.entries, self._list_metadata(page))
        head, field = self._list_head(self._list_metadata(page))
        return self.encoded({**head, field: self._list_items(page.entries)})

    def items(self, entries: Sequence[Entry]) -> bytes:
        """Encode some items of a list that cannot be sent in chunks; `join_page` joins them."""
        head, field = self._list_head({})
        return encode_items(head, field, self._list_items(entries), self.form.encoding)

    def joined_page(self, page: Page, groups: Sequence[bytes]) -> bytes:
        """The same bytes as `encode_page`, from encoded groups of items."""
        head, field = self._list_head(self._list_metadata(page))
        return join_items(head, field, groups, self.form.encoding)

    def _list_head(self, metadata: Mapping[str, Any]) -> tuple[Manifest, str]:
        """A list without its items, and the name of the field for the items."""
        match self.form.projection:
            case "Table":
                return {name: value for name, value in self.table([], metadata).items() if name != "rows"}, "rows"
            case "":
                return self._own_head(metadata), "items"
            case _:
                return {**PARTIAL_LIST, "metadata": metadata}, "items"

    def _list_items(self, entries: Sequence[Entry]) -> list[Any]:
        match self.form.projection:
            case "Table":
                return [self._row(self.served.read(entry)) for entry in entries]
            case "":
                return [orjson.loads(self.served.item(entry)) for entry in entries]
            case _:
                return [self._partial(self.served.read(entry)) for entry in entries]

    def _list_metadata(self, page: Page) -> dict[str, Any]:
        metadata: dict[str, Any] = {"resourceVersion": str(page.revision)}
        if page.token or self.served.resource.custom:
            metadata["continue"] = page.token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
        return metadata

    def _joined(self, entries: Sequence[Entry], metadata: Mapping[str, Any]) -> bytes:
        """Join the stored bytes of the items without decoding them."""
        head = orjson.dumps(self._own_head(metadata))[:-1] + b',"items":['
        return head + b",".join([self.served.item(entry) for entry in entries]) + b"]}\n"

    def _own_head(self, metadata: Mapping[str, Any]) -> Manifest:
        resource = self.served.resource
        kind = resource.list_kind or f"{resource.kind}List"
        return {"kind": kind, "apiVersion": resource.api_version, "metadata": metadata}

    def table(self, entries: Sequence[Entry], metadata: Mapping[str, Any], *, columns: bool = True) -> Manifest:
        rows = [self._row(self.served.read(entry)) for entry in entries]
        head = {"kind": "Table", "apiVersion": f"meta.k8s.io/{self.form.table_version}", "metadata": metadata}
        definitions = list(self.served.column_definitions()) if columns else []
        return {**head, "columnDefinitions": definitions, "rows": rows}

    def _row(self, manifest: Manifest) -> Manifest:
        shown: Manifest | None = None
        if self._include == "Object":
            shown = manifest
        elif self._include == "Metadata":
            shown = self._partial(manifest)
        return {"cells": self.served.cells(manifest, self._clock()), "object": shown}

    def _partial(self, manifest: Manifest) -> Manifest:
        return {**PARTIAL, "metadata": manifest["metadata"]}

    def scale(self, manifest: Manifest) -> bytes:
        """Encode a Scale, as an object or a Table."""
        if self.form.projection != "Table":
            return self.encoded(manifest)
        shown = columns.of(SCALE, "v1")
        row = {"cells": shown.cells(manifest, self._clock()), "object": self._partial(manifest)}
        head = {"kind": "Table", "apiVersion": f"meta.k8s.io/{self.form.table_version}"}
        version = {"resourceVersion": manifest["metadata"].get("resourceVersion", "")}
        return self.encoded({**head, "metadata": version, "columnDefinitions": list(shown.definitions), "rows": [row]})

    def encoded(self, manifest: Manifest) -> bytes:
        return encode(manifest, self.form, pretty=self.pretty)

    def event(self, type_: str, entry: Entry, *, first: bool) -> bytes:
        """Encode one event of a watch: a line of JSON, or a protobuf frame."""
        if self.form.encoding == "protobuf":
            whole = self.served.read(entry)
            return self._framed(type_, self._partial(whole) if self.form.projection else whole)
        if self.form.projection == "":
            shown = self.served.present(entry)
        elif self.form.projection == "Table":
            # k8s: only the first event has column definitions
            shown = orjson.dumps(self.table([entry], {"resourceVersion": str(entry.revision)}, columns=first))
        else:
            shown = orjson.dumps(self._partial(self.served.read(entry)))
        return b'{"type":"' + type_.encode() + b'","object":' + shown + b"}\n"

    def bookmark(self, revision: int, annotations: Mapping[str, str] | None, *, first: bool) -> bytes:
        resource = self.served.resource
        metadata: dict[str, Any] = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = dict(annotations)
        manifest: Manifest = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        if self.form.projection == "Table":
            row: Manifest = {"cells": [], "object": {**PARTIAL, "metadata": metadata}}
            version = {"resourceVersion": str(revision)}
            manifest = {**self.table([], version, columns=first), "rows": [row]}
        elif self.form.projection:
            manifest = {**PARTIAL, "metadata": metadata}
        return self._framed("BOOKMARK", manifest)

    def error(self, error: ArgosyError) -> bytes:
        """Encode the ERROR event that ends a watch."""
        return self._framed("ERROR", status_errors.status_of(error))

    def _framed(self, type_: str, manifest: Manifest) -> bytes:
        if self.form.encoding == "protobuf":
            return protobuf.encode_event(type_, protobuf.encode(manifest))
        return orjson.dumps({"type": type_, "object": manifest}) + b"\n"


def encode(manifest: Any, form: Form, *, pretty: bool = False) -> bytes:
    match form.encoding:
        case "yaml":
            from argosy.kube.objects import dump

            return dump(manifest).encode()
        case "protobuf":
            is_list = "items" in manifest and manifest["kind"].endswith("List")
            return protobuf.encode_list(manifest) if is_list else protobuf.encode(manifest)
    return orjson.dumps(manifest, option=orjson.OPT_APPEND_NEWLINE | (orjson.OPT_INDENT_2 if pretty else 0))
