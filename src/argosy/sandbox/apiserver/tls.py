"""Creates, checks and renews the TLS certificates of the embedded server: its own CA, kept in the data folder."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.errors import UserError
from argosy.kube.client.file_permissions import check_private
from argosy.kube.client.private_files import write_private

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, CertificateBuilder

NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
ADDRESSES = ("127.0.0.1", "::1", "10.96.0.1")
YEARS = timedelta(days=3650)
RENEW_BEFORE = timedelta(days=30)


@dataclass(frozen=True)
class Certificates:
    authority: Path
    certificate: Path
    key: Path


def certificates(folder: Path) -> Certificates:
    """The certificate files in the folder; created if missing or about to expire. Only the owner can read the keys."""
    found = Certificates(folder / "ca.crt", folder / "server.crt", folder / "server.key")
    check_private(found.key)
    if not all(file.exists() for file in (found.authority, found.certificate, found.key)) or _ends_soon(found):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _make(found)
    return found


def self_signed(certificate: Path, key: Path, names: Sequence[str], addresses: Sequence[str]) -> None:
    """Create a certificate for the web page if none is configured; users compare its fingerprint."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    certificate.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    own, name = ec.generate_private_key(ec.SECP256R1()), _name("argosy")
    leaf = _builder(name, name, own).add_extension(_alternatives(names, addresses), critical=False)
    server_auth = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])
    signed = leaf.add_extension(server_auth, critical=False).sign(own, hashes.SHA256())
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    write_private(key, own.private_bytes(serialization.Encoding.PEM, form, plain))
    write_private(certificate, _pem(signed))


def fingerprint(certificate: Path) -> str:
    """SHA-256 fingerprint as browsers show it. Raises UserError if the file is not a certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError) as error:
        message = "is not a readable certificate; name a PEM file"
        raise UserError(message, where=str(certificate)) from error
    return found.fingerprint(hashes.SHA256()).hex(":").upper()


def speaks_for(certificate: Path, names: Sequence[str], addresses: Sequence[str]) -> bool:
    """True if the certificate covers all names and addresses and does not expire soon."""
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
        known = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    wanted = {*names, *addresses}
    told = {*known.get_values_for_type(x509.DNSName), *map(str, known.get_values_for_type(x509.IPAddress))}
    return wanted <= told and _is_valid_for_long(found)


def _ends_soon(found: Certificates) -> bool:
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(found.certificate.read_bytes())
    except ValueError as error:
        message = f"is not a certificate; remove {found.certificate.parent}, and the next start creates new ones"
        raise UserError(message, where=str(found.certificate)) from error
    return not _is_valid_for_long(certificate)


def _is_valid_for_long(certificate: x509.Certificate) -> bool:
    """Also False if it is not valid yet: it was created before the clock was set back."""
    now = datetime.now(UTC)
    return certificate.not_valid_before_utc <= now and certificate.not_valid_after_utc - now > RENEW_BEFORE


def _make(found: Certificates) -> None:
    """Create CA and server certificate. Elliptic curves, because RSA keys would dominate the time of a first start."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    root_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root_name, server_name = _name("argosy sandbox CA"), _name("kube-apiserver")
    authority = x509.BasicConstraints(ca=True, path_length=0)
    root = _builder(root_name, root_name, root_key).add_extension(authority, critical=True)
    signed_root = root.add_extension(_usage(signs=True), critical=True).sign(root_key, hashes.SHA256())
    leaf = _builder(server_name, root_name, server_key).add_extension(_alternatives(NAMES, ADDRESSES), critical=False)
    server_auth = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])
    leaf = leaf.add_extension(server_auth, critical=False).add_extension(_usage(signs=False), critical=True)
    signed = leaf.sign(root_key, hashes.SHA256())
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    found.authority.unlink(missing_ok=True)  # written last: while it is missing, all files are created again
    write_private(found.key, server_key.private_bytes(serialization.Encoding.PEM, form, plain))
    write_private(found.certificate, _pem(signed) + _pem(signed_root))
    write_private(found.authority, _pem(signed_root))


def _builder(subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey) -> CertificateBuilder:
    from cryptography import x509

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + YEARS)
    )


def _name(text: str) -> x509.Name:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _alternatives(names: Sequence[str], addresses: Sequence[str]) -> x509.SubjectAlternativeName:
    from cryptography import x509

    hosts = [x509.DNSName(name) for name in names]
    return x509.SubjectAlternativeName([*hosts, *(x509.IPAddress(ipaddress.ip_address(each)) for each in addresses)])


def _pem(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return certificate.public_bytes(serialization.Encoding.PEM)
