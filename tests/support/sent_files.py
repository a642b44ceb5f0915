"""Files as `argocd app diff --local --server-side-generate` sends them.

In: files. Out: a gzip-compressed tar archive, and the messages of its stream. Never: files of this machine.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any


def pack(files: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in files.items():
            member, data = tarfile.TarInfo(path), content.encode() if isinstance(content, str) else content
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def build_documents(archive: bytes, name: str = "one", *, size: int = 1024, **query: str) -> Iterator[dict[str, Any]]:
    yield {"query": {"name": name, "checksum": hashlib.sha256(archive).hexdigest(), **query}}
    for start in range(0, len(archive), size):
        yield {"chunk": {"chunk": base64.b64encode(archive[start : start + size]).decode()}}
