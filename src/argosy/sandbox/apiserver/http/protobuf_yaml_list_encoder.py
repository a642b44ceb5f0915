"""Encodes lists as protobuf, YAML or indented JSON, in groups of items that are joined at the end.

In: a list without its items, and the items in groups. Out: the same bytes as `encode_response` of the whole list.
Never: encodes compact JSON, which `ResponseEncoder.encode_page_in_chunks` sends in chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from argosy.kube.objects import Manifest, dump_yaml
from argosy.kube.schema import protobuf_envelope
from argosy.sandbox.store import StoreEntry

MAX_LIST_JOB_BYTES = 1 << 20  # about half a second of work
_PLACEHOLDER = "placeholder"  # an item that is replaced by the encoded groups


def group_entries(entries: Sequence[StoreEntry], max_bytes: int) -> Iterator[list[StoreEntry]]:
    """Split entries into groups of at most `max_bytes`; a larger entry forms its own group."""
    group: list[StoreEntry] = []
    size = 0
    for entry in entries:
        if group and size + len(entry.body) > max_bytes:
            yield group
            group, size = [], 0
        group.append(entry)
        size += len(entry.body)
    if group:
        yield group


def encode_items(head: Manifest, field: str, items: Sequence[Any], encoding: str) -> bytes:
    """Encode some items of the list `head`, as they appear in its `field`."""
    match encoding:
        case "protobuf":
            return protobuf_envelope.encode_items(head["apiVersion"], head["kind"], items)
        case "yaml":
            return dump_yaml({field: items}).encode().removeprefix(f"{field}:\n".encode())
    start, end = f'{{\n  "{field}": [\n'.encode(), b"\n  ]\n}"
    return orjson.dumps({field: items}, option=orjson.OPT_INDENT_2).removeprefix(start).removesuffix(end)


def join_items(head: Manifest, field: str, groups: Sequence[bytes], encoding: str) -> bytes:
    """Put encoded groups of items into the list `head`."""
    if encoding == "protobuf":
        return protobuf_envelope.join_list(head, groups)
    document = {**head, field: [_PLACEHOLDER]}
    if encoding == "yaml":
        # Only keys of the list itself are at the start of a line.
        before, line, after = dump_yaml(document).partition(f"\n{field}:\n- {_PLACEHOLDER}\n")
        assert line
        return b"".join([before.encode(), f"\n{field}:\n".encode(), *groups, after.encode()])
    end = f'"{_PLACEHOLDER}"\n  ]\n}}\n'.encode()
    indented = orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_INDENT_2)
    assert indented.endswith(b"    " + end)
    start = indented.removesuffix(b"    " + end)
    return b"".join([start, b",\n".join(groups), b"\n  ]\n}\n"])
