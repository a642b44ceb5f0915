"""Certificates for TLS servers of tests, valid ones and those of attackers.

In: the properties of a certificate. Out: PEM, and an SSLContext of a server. Never: leaves files behind.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import warnings
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)
YEAR = 365 * DAY


class Certificate(NamedTuple):
    """`pem` may contain several certificates, the server's own first."""

    pem: bytes
    key: ec.EllipticCurvePrivateKey
    name: str

    @property
    def key_pem(self) -> bytes:
        form = serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def issue(
    name: str,
    issuer: Certificate | None = None,
    *,
    is_authority: bool = False,
    starts_in: datetime.timedelta = -DAY,
    ends_in: datetime.timedelta = 10 * YEAR,
    is_for_clients: bool = False,
    has_alternative_names: bool = True,
) -> Certificate:
    """Issue a certificate for a DNS name or an IP address. Without an issuer it is self-signed.

    Modules issue certificates when they are imported, hours before a long run of tests gets to them.
    """
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder().subject_name(_distinguished(name))
        .issuer_name(_distinguished(issuer.name if issuer else name))
        .public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now + starts_in).not_valid_after(now + ends_in)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )  # fmt: skip
    if has_alternative_names and not is_authority:
        builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(name)]), critical=False)
    if is_for_clients:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(usage, critical=False)
    certificate_pem = builder.sign(issuer.key if issuer else key, hashes.SHA256()).public_bytes(
        serialization.Encoding.PEM
    )
    chain = issuer.pem if issuer and not is_authority else b""
    return Certificate(certificate_pem + chain, key, name)


def server_context(certificate: Certificate, folder: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    (folder / "server.crt").write_bytes(certificate.pem)
    (folder / "server.key").write_bytes(certificate.key_pem)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    return context


def only_old_tls(context: ssl.SSLContext) -> ssl.SSLContext:
    """SSLContext of a server that supports at most TLS 1.1."""
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    return context


def _distinguished(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
