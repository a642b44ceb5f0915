"""Builds the SSLContext of a Connection.

In: a Connection. Out: an SSLContext with its CA and client certificate. Never: leaves key material on disk.
"""

from __future__ import annotations

import ssl

from argosy.errors import UserError
from argosy.http_client.client_certificates import load_client_certificate
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
    try:
        load_client_certificate(context, cert, key)
    except (OSError, ValueError) as error:
        raise UserError(
            "the client certificate or key cannot be used: check that they belong together", where=where
        ) from error
