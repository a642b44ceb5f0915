"""Trusted SSH host keys and TLS certificates, in Argo CD's two ConfigMaps.

In: an ApplicationService, entries. Out: entries with fingerprint or subject. Never: stores an entry that clients
could not use.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.repositories.certificate_subject import read_certificate_subject
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.argocd_secrets_and_config_maps import load_config_map_data, update_config_map
from argosy.gitops.reconciler.settings_watch import KNOWN_HOSTS_CM, TLS_CERTS_CM
from argosy.languages.globs import matches_glob

SSH, TLS = "ssh", "https"
KNOWN_HOSTS_KEY: Final = "ssh_known_hosts"
ERROR_LOCATION: Final = "certificate"
_SSH_HOST: Final = re.compile(r"[A-Za-z0-9.*?_-]+|\[[A-Za-z0-9.:_-]+\]:[0-9]+")
_TLS_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.IGNORECASE)
_ALGORITHM: Final = re.compile(r"(sk-)?(ssh|ecdsa)-[a-z0-9@.-]+")
_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
# DER object identifiers of public key algorithms in a certificate
_KEY_ALGORITHM_OIDS: Final = {"rsa": "2a864886f70d010101", "ecdsa": "2a8648ce3d0201", "ed25519": "300506032b6570"}
MAX_CERTIFICATE_CHARACTERS: Final = 1 << 20


@dataclass(frozen=True)
class RepositoryCertificate:
    server: str
    type: str  # ssh or https
    subtype: str
    data: str  # value in the ConfigMap
    info: str = ""

    def to_wire(self, *, with_data: bool = True) -> dict[str, Any]:
        """argo: lists have no data."""
        return {
            "serverName": self.server,
            "certType": self.type,
            "certSubType": self.subtype,
            **({"certData": base64.b64encode(self.data.encode()).decode()} if with_data else {}),
            "certInfo": self.info,
        }

    def to_removed_wire(self) -> dict[str, Any]:
        """argo: what was removed has no certInfo, and a TLS certificate no subtype."""
        return {**self.to_wire(), "certSubType": self.subtype if self.type == SSH else "", "certInfo": ""}


@dataclass(frozen=True)
class CertificateFilter:
    """argo: filter for certificates; empty fields match all, the host is a glob."""

    host: str = ""
    type: str = ""
    subtype: str = ""

    def matches_certificate(self, certificate: RepositoryCertificate) -> bool:
        is_host = self.host in ("", "*") or matches_glob(self.host, certificate.server)
        return is_host and self.type in ("", "*", certificate.type) and self.subtype in ("", "*", certificate.subtype)


async def list_certificates(
    service: ApplicationService, certificate_filter: CertificateFilter
) -> list[RepositoryCertificate]:
    lines = (await load_config_map_data(service, KNOWN_HOSTS_CM)).get(KNOWN_HOSTS_KEY, "").splitlines()
    hosts = [certificate for line in lines if (certificate := _parse_known_host(line))]
    authorities = [
        certificate
        for server, text in sorted((await load_config_map_data(service, TLS_CERTS_CM)).items())
        for pem in _PEM.findall(text)
        if (certificate := _parse_tls_certificate(server, pem))
    ]
    return [entry for entry in [*hosts, *authorities] if certificate_filter.matches_certificate(entry)]


def _parse_known_host(line: str) -> RepositoryCertificate | None:
    words = line.split()
    if len(words) < 3 or line.lstrip().startswith(("#", "@")):
        return None
    try:
        digest = hashlib.sha256(base64.b64decode(words[2], validate=True)).digest()
    except (binascii.Error, ValueError):
        return None
    return RepositoryCertificate(
        words[0], SSH, words[1], words[2], "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
    )


def _parse_tls_certificate(server: str, pem: str) -> RepositoryCertificate | None:
    try:
        raw = ssl.PEM_cert_to_DER_cert(pem)
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
        subject = read_certificate_subject(pem)
    except (ValueError, ssl.SSLError):
        return None
    algorithm = next((name for name, oid in _KEY_ALGORITHM_OIDS.items() if bytes.fromhex(oid) in raw), "x509")
    return RepositoryCertificate(server, TLS, algorithm, pem, subject)


def read_certificates(body: Any) -> list[RepositoryCertificate]:
    """Read a RepositoryCertificateList."""
    items = body.get("items") if isinstance(body, dict) else None
    if not isinstance(items, list) or not items:
        raise UserError("items must be a non-empty list of certificates", where=ERROR_LOCATION)
    return [certificate for item in items for certificate in _read_item(item)]


def _read_item(item: Any) -> list[RepositoryCertificate]:
    parts = (
        {name: item.get(name) or "" for name in ("serverName", "certType", "certSubType", "certData")}
        if (isinstance(item, dict))
        else {}
    )
    if not parts or not all(isinstance(value, str) for value in parts.values()):
        raise UserError("each item needs serverName, certType and certData, all strings", where=ERROR_LOCATION)
    try:
        data = base64.b64decode(parts["certData"], validate=True).decode().strip()
    except (binascii.Error, ValueError):
        raise UserError("certData is not base64-encoded text; encode it", where=ERROR_LOCATION) from None
    if len(data) > MAX_CERTIFICATE_CHARACTERS:
        raise UserError("certData is too long; send one certificate at a time", where=ERROR_LOCATION)
    if parts["certType"] == SSH:
        return [_read_ssh(parts, data)]
    if parts["certType"] == TLS:
        return _read_tls(parts["serverName"], data)
    raise UserError("invalid certType; use ssh or https", where=ERROR_LOCATION)


def _read_ssh(parts: dict[str, str], data: str) -> RepositoryCertificate:
    server, subtype = parts["serverName"], parts["certSubType"]
    if not _SSH_HOST.fullmatch(server) or not _ALGORITHM.fullmatch(subtype):
        raise UserError(
            "invalid serverName or certSubType for ssh; use a host name, and an algorithm such as ssh-ed25519",
            where=ERROR_LOCATION,
        )
    certificate = _parse_known_host(f"{server} {subtype} {data}") if len(data.split()) == 1 else None
    if certificate is None:
        raise UserError(
            "certData is not an SSH public key; send the third field of a known_hosts line", where=ERROR_LOCATION
        )
    return certificate


def _read_tls(server: str, data: str) -> list[RepositoryCertificate]:
    blocks = _PEM.findall(data)
    parsed = [_parse_tls_certificate(server, item) for item in blocks]
    valid = [item for item in parsed if item is not None]
    if not _TLS_HOST.fullmatch(server):
        raise UserError("serverName is not a host name; send it without a port", where=ERROR_LOCATION)
    if not valid or len(valid) != len(parsed):
        raise UserError("certData is not a certificate; send PEM", where=ERROR_LOCATION)
    return valid


async def add_certificates(
    service: ApplicationService, new: Sequence[RepositoryCertificate], *, replaces: bool
) -> list[RepositoryCertificate]:
    """Add the entries and return them. argo: replacing the key of a known host needs `upsert`."""
    hosts = [certificate for certificate in new if certificate.type == SSH]
    authorities = [certificate for certificate in new if certificate.type == TLS]
    if hosts:

        def add_hosts(data: dict[str, str]) -> dict[str, str]:
            return {**data, KNOWN_HOSTS_KEY: _merge_known_hosts(data.get(KNOWN_HOSTS_KEY, ""), hosts, replaces)}

        await update_config_map(service, KNOWN_HOSTS_CM, add_hosts)
    if authorities:
        await update_config_map(
            service, TLS_CERTS_CM, lambda data: _merge_tls_certificates(data, authorities, replaces)
        )
    return list(new)


def _merge_known_hosts(text: str, new: Sequence[RepositoryCertificate], replaces: bool) -> str:
    lines = text.splitlines()
    for certificate in new:
        kept_lines = []
        for line in lines:
            known_host = _parse_known_host(line)
            is_same_key = known_host is not None and (known_host.server, known_host.subtype) == (
                certificate.server,
                certificate.subtype,
            )
            if is_same_key and known_host is not None and known_host.data != certificate.data and not replaces:
                message = f"{certificate.server} has another {certificate.subtype} key; use upsert to replace it"
                raise UserError(message, where=ERROR_LOCATION)
            if not is_same_key:
                kept_lines.append(line)
        lines = [*kept_lines, f"{certificate.server} {certificate.subtype} {certificate.data}"]
    return "\n".join(lines) + "\n"


def _merge_tls_certificates(
    data: dict[str, str], new: Sequence[RepositoryCertificate], replaces: bool
) -> dict[str, str]:
    by_server: dict[str, list[str]] = {}
    for certificate in new:
        by_server.setdefault(certificate.server, []).append(certificate.data)
    for server, pems in by_server.items():
        text = "\n".join(pems) + "\n"
        if data.get(server, text).split() != text.split() and not replaces:
            raise UserError(f"{server} has other certificates; use upsert to replace them", where=ERROR_LOCATION)
        data[server] = text
    return data


async def remove_certificates(
    service: ApplicationService, certificate_filter: CertificateFilter
) -> list[RepositoryCertificate]:
    """Remove and return all matching entries. argo: an empty filter is an error."""
    if not (certificate_filter.host or certificate_filter.type or certificate_filter.subtype):
        raise UserError("no filter given; pass hostNamePattern, certType or certSubType", where=ERROR_LOCATION)
    removed = await list_certificates(service, certificate_filter)

    def without_hosts(data: dict[str, str]) -> dict[str, str]:
        kept = [
            line for line in data.get(KNOWN_HOSTS_KEY, "").splitlines() if not _matches_line(line, certificate_filter)
        ]
        return {**data, KNOWN_HOSTS_KEY: "".join(f"{line}\n" for line in kept)}

    if any(certificate.type == SSH for certificate in removed):
        await update_config_map(service, KNOWN_HOSTS_CM, without_hosts)
    if names := {certificate.server for certificate in removed if certificate.type == TLS}:
        await update_config_map(
            service, TLS_CERTS_CM, lambda data: {key: text for key, text in data.items() if key not in names}
        )
    return removed


def _matches_line(line: str, certificate_filter: CertificateFilter) -> bool:
    certificate = _parse_known_host(line)
    return certificate is not None and certificate_filter.matches_certificate(certificate)
