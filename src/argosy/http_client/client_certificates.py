"""Loads client certificates into an SSLContext.

In: certificate and key, as data or as paths. Out: a context that presents them. Never: leaves key material on disk.

OpenSSL loads client certificates only from files, so data is written to an in-memory file, which disappears with the
process. On systems without such files it is written to a private folder (0700, files 0600) that is removed before the
function returns; a kill in between may leave it.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from pathlib import Path


def load_client_certificate(context: ssl.SSLContext, certificate: bytes | str, key: bytes | str) -> None:
    """Load the pair; text is a path. Raises OSError or ValueError if it cannot be used."""
    with contextlib.ExitStack() as files:
        certificate_file = _provide_file(certificate, files)
        key_file = _provide_file(key, files) if key else None
        context.load_cert_chain(certificate_file, key_file, password=_refuse_password)


def _refuse_password() -> str:
    """Refuse an encrypted key: without this, OpenSSL would prompt at the terminal and hang."""
    raise ValueError("the key is encrypted")


def _provide_file(source: bytes | str, files: contextlib.ExitStack) -> str:
    """Return the path of a file with the data, which exists until `files` is closed."""
    if isinstance(source, str):
        return source
    return _write_to_memory(source, files) or _write_to_folder(source, files)


def _write_to_memory(data: bytes, files: contextlib.ExitStack) -> str | None:
    """Return None if the system has no in-memory files, or this process cannot open one by its path."""
    if not hasattr(os, "memfd_create"):
        return None
    try:
        handle = os.memfd_create("argosy-tls", os.MFD_CLOEXEC)
    except OSError:
        return None
    files.callback(os.close, handle)
    with open(handle, "wb", closefd=False) as file:
        file.write(data)
    path = f"/proc/self/fd/{handle}"
    return path if os.access(path, os.R_OK) else None


def _write_to_folder(data: bytes, files: contextlib.ExitStack) -> str:
    path = Path(files.enter_context(tempfile.TemporaryDirectory(prefix="argosy-"))) / "data"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    return str(path)
