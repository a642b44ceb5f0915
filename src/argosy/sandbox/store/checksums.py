"""Row checksums that detect damage, and the error messages about it.

In: values of a row. Out: a checksum, or a Damage. Never: repairs or removes rows.

SQLite notices a damaged page only where its structure is wrong. A flipped bit in a value is another value, so every row
has a CRC-32 of all its columns.
"""

from __future__ import annotations

import shlex
import zlib
from pathlib import Path
from typing import Any

import orjson

from argosy.errors import ClusterError, UserError


class Damage(Exception):
    """The store file differs from what argosy wrote. The message says where."""


def compute_row_checksum(
    revision: int, bucket: str, namespace: str, name: str, deleted: int, sealed: int, prev: int, body: bytes
) -> int:
    key_bytes = f"{revision}\0{bucket}\0{namespace}\0{name}\0{deleted}\0{sealed}\0{prev}\0".encode()
    return zlib.crc32(body, zlib.crc32(key_bytes))


def compute_format_1_checksum(*values: Any) -> int:
    """Checksum for a row of format 1, which has no checksum column. Raises Damage for a row that is not JSON."""
    try:
        sealed, body = values[5], values[7]
        if not sealed:
            orjson.loads(body)
        return compute_row_checksum(*values)
    except (TypeError, ValueError) as error:
        raise Damage(f"the row of revision {values[0]} is not JSON") from error


def compute_compacted_checksum(revision: int) -> int:
    return zlib.crc32(b"compacted\0%d" % revision)


def format_object_name(bucket: str, namespace: str, name: str) -> str:
    return "/".join(segment for segment in (bucket, namespace, name) if segment)


def build_startup_damage_error(path: Path, damage: object) -> UserError:
    """The error that refuses to start. The data folder was not changed."""
    reset = f"argosy sandbox reset --data-dir {shlex.quote(str(path.parent))}"
    message = f"the store is damaged ({damage}); restore it from a copy of the data folder, or remove it with: {reset}"
    return UserError(message, where=str(path))


def build_runtime_damage_error(path: Path, damage: object) -> ClusterError:
    """k8s: an object that cannot be decoded is an InternalError. Objects in memory are not affected."""
    message = (
        f"{path} is damaged ({damage}); objects are served from memory: save them with `kubectl get -o yaml`, "
        "stop argosy and restore the data folder from a copy"
    )
    return ClusterError(message, code=500, reason="InternalError", details={})
