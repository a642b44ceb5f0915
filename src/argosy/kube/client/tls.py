"""Builds the SSLContext of a Connection.

In: a Connection. Out: an SSLContext with its CA and client certificate. Never: leaves key material on disk.

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

from argosy.errors import UserError
from argosy.kube.client.connection_settings import Connection


def build_ssl_context(connection: Connection, *, cert: bytes = b"", key: bytes = b"") -> ssl.SSLContext:
    """Build the context. `cert` and `key` come from an exec plugin and take precedence over those of the connection."""
    context = _build_trust_context(connection)
    if connection.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    # k8s: the CAs of many clusters lack extensions that strict verification requires and Go does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    cert_source: bytes | str = cert or connection.cert_data or connection.cert_file
    key_source: bytes | str = key or connection.key_data or connection.key_file
    if cert_source:
        _load_client_certificate(context, cert_source, key_source, connection.name)
    return context


def _build_trust_context(connection: Connection) -> ssl.SSLContext:
    try:
        if connection.ca_data:
            return ssl.create_default_context(cadata=connection.ca_data.decode())
        return ssl.create_default_context(cafile=connection.ca_file or None)
    except (OSError, ValueError) as error:  # an SSLError is an OSError; a UnicodeDecodeError is a ValueError
        raise UserError(
            f"the certificate authority cannot be read: {connection.ca_file or 'the data is not PEM'}",
            where=connection.name,
        ) from error


def _load_client_certificate(context: ssl.SSLContext, cert: bytes | str, key: bytes | str, where: str) -> None:
    with contextlib.ExitStack() as files:
        cert_file = _provide_file(cert, files)
        key_file = _provide_file(key, files) if key else None
        try:
            context.load_cert_chain(cert_file, key_file, password=_refuse_password)
        except (OSError, ValueError) as error:
            raise UserError(
                "the client certificate or key cannot be used: check that they belong together", where=where
            ) from error


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
