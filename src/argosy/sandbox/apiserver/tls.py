"""Creates, checks and renews the TLS certificates of the embedded server: its own CA, kept in the data folder."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.errors import UserError
from argosy.kube.client.private_file_permission_check import check_private_file
from argosy.kube.client.private_file_writer import write_private

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, CertificateBuilder

SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
SERVER_ADDRESSES = ("127.0.0.1", "::1", "10.96.0.1")
VALIDITY = timedelta(days=3650)
RENEW_BEFORE = timedelta(days=30)


@dataclass(frozen=True)
class CertificateFiles:
    authority: Path
    certificate: Path
    key: Path


def ensure_certificates(folder: Path) -> CertificateFiles:
    """The certificate files in the folder; created if missing or about to expire. Only the owner can read the keys."""
    files = CertificateFiles(folder / "ca.crt", folder / "server.crt", folder / "server.key")
    check_private_file(files.key)
    if not all(file.exists() for file in (files.authority, files.certificate, files.key)) or _expires_soon(files):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _create_certificates(files)
    return files


def create_self_signed_certificate(
    certificate: Path, key: Path, names: Sequence[str], addresses: Sequence[str]
) -> None:
    """Create a certificate for the web page if none is configured; users compare its fingerprint."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    certificate.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    private_key, name = ec.generate_private_key(ec.SECP256R1()), _common_name("argosy")
    builder = _certificate_builder(name, name, private_key).add_extension(
        _subject_alternative_names(names, addresses), critical=False
    )
    server_auth = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])
    signed = builder.add_extension(server_auth, critical=False).sign(private_key, hashes.SHA256())
    key_format, no_encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    write_private(key, private_key.private_bytes(serialization.Encoding.PEM, key_format, no_encryption))
    write_private(certificate, _to_pem(signed))


def read_fingerprint(certificate: Path) -> str:
    """SHA-256 fingerprint as browsers show it. Raises UserError if the file is not a certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    try:
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError) as error:
        message = "is not a readable certificate; name a PEM file"
        raise UserError(message, where=str(certificate)) from error
    return loaded.fingerprint(hashes.SHA256()).hex(":").upper()


def is_certificate_valid_for(certificate: Path, names: Sequence[str], addresses: Sequence[str]) -> bool:
    """True if the certificate covers all names and addresses and does not expire soon."""
    from cryptography import x509

    try:
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
        alternative_names = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    required = {*names, *addresses}
    certified = {
        *alternative_names.get_values_for_type(x509.DNSName),
        *map(str, alternative_names.get_values_for_type(x509.IPAddress)),
    }
    return required <= certified and _is_valid_for_long(loaded)


def _expires_soon(files: CertificateFiles) -> bool:
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(files.certificate.read_bytes())
    except ValueError as error:
        message = f"is not a certificate; remove {files.certificate.parent}, and the next start creates new ones"
        raise UserError(message, where=str(files.certificate)) from error
    return not _is_valid_for_long(certificate)


def _is_valid_for_long(certificate: x509.Certificate) -> bool:
    """Also False if it is not valid yet: it was created before the clock was set back."""
    now = datetime.now(UTC)
    return certificate.not_valid_before_utc <= now and certificate.not_valid_after_utc - now > RENEW_BEFORE


def _create_certificates(files: CertificateFiles) -> None:
    """Create CA and server certificate. Elliptic curves, because RSA keys would dominate the time of a first start."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    root_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root_name, server_name = _common_name("argosy sandbox CA"), _common_name("kube-apiserver")
    authority = x509.BasicConstraints(ca=True, path_length=0)
    root_builder = _certificate_builder(root_name, root_name, root_key).add_extension(authority, critical=True)
    signed_root = root_builder.add_extension(_key_usage(is_authority=True), critical=True).sign(
        root_key, hashes.SHA256()
    )
    server_builder = _certificate_builder(server_name, root_name, server_key).add_extension(
        _subject_alternative_names(SERVER_NAMES, SERVER_ADDRESSES), critical=False
    )
    server_auth = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])
    server_builder = server_builder.add_extension(server_auth, critical=False).add_extension(
        _key_usage(is_authority=False), critical=True
    )
    signed = server_builder.sign(root_key, hashes.SHA256())
    key_format, no_encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files.authority.unlink(missing_ok=True)  # written last: while it is missing, all files are created again
    write_private(files.key, server_key.private_bytes(serialization.Encoding.PEM, key_format, no_encryption))
    write_private(files.certificate, _to_pem(signed) + _to_pem(signed_root))
    write_private(files.authority, _to_pem(signed_root))


def _certificate_builder(subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey) -> CertificateBuilder:
    from cryptography import x509

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + VALIDITY)
    )


def _common_name(text: str) -> x509.Name:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _subject_alternative_names(names: Sequence[str], addresses: Sequence[str]) -> x509.SubjectAlternativeName:
    from cryptography import x509

    hosts = [x509.DNSName(name) for name in names]
    return x509.SubjectAlternativeName(
        [*hosts, *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses)]
    )


def _to_pem(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM)
