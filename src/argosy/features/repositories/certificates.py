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
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.declared_objects import change_map, map_data
from argosy.gitops.reconciler.settings_watch import AUTHORITIES, KNOWN_HOSTS
from argosy.languages.globs import matches

SSH, TLS = "ssh", "https"
LINES: Final = "ssh_known_hosts"
WHERE: Final = "certificate"
_SSH_HOST: Final = re.compile(r"[A-Za-z0-9.*?_-]+|\[[A-Za-z0-9.:_-]+\]:[0-9]+")
_TLS_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.IGNORECASE)
_ALGORITHM: Final = re.compile(r"(sk-)?(ssh|ecdsa)-[a-z0-9@.-]+")
_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
# DER object identifiers of public key algorithms in a certificate
_KEYS: Final = {"rsa": "2a864886f70d010101", "ecdsa": "2a8648ce3d0201", "ed25519": "300506032b6570"}
MOST: Final = 1 << 20


@dataclass(frozen=True)
class Certificate:
    server: str
    type: str  # ssh or https
    subtype: str
    data: str  # value in the ConfigMap
    info: str = ""

    def document(self) -> dict[str, Any]:
        return {
            "serverName": self.server,
            "certType": self.type,
            "certSubType": self.subtype,
            "certData": base64.b64encode(self.data.encode()).decode(),
            "certInfo": self.info,
        }


@dataclass(frozen=True)
class Choice:
    """argo: filter for certificates; empty fields match all, the host is a glob."""

    host: str = ""
    type: str = ""
    subtype: str = ""

    def fits(self, one: Certificate) -> bool:
        is_host = self.host in ("", "*") or matches(self.host, one.server)
        return is_host and self.type in ("", "*", one.type) and self.subtype in ("", "*", one.subtype)


async def certificates(desk: Desk, choice: Choice) -> list[Certificate]:
    lines = (await map_data(desk, KNOWN_HOSTS)).get(LINES, "").splitlines()
    hosts = [found for line in lines if (found := _known_host(line))]
    authorities = [
        found
        for server, text in sorted((await map_data(desk, AUTHORITIES)).items())
        for pem in _PEM.findall(text)
        if (found := _authority(server, pem))
    ]
    return [each for each in [*hosts, *authorities] if choice.fits(each)]


def _known_host(line: str) -> Certificate | None:
    words = line.split()
    if len(words) < 3 or line.lstrip().startswith(("#", "@")):
        return None
    try:
        digest = hashlib.sha256(base64.b64decode(words[2], validate=True)).digest()
    except (binascii.Error, ValueError):
        return None
    return Certificate(words[0], SSH, words[1], words[2], "SHA256:" + base64.b64encode(digest).decode().rstrip("="))


def _authority(server: str, pem: str) -> Certificate | None:
    try:
        raw = ssl.PEM_cert_to_DER_cert(pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=pem)
    except (ValueError, ssl.SSLError):
        return None
    found = context.get_ca_certs()
    subject: Any = found[0].get("subject", ()) if found else ()
    words = ",".join(f"{name}={value}" for part in subject for name, value in part)
    shape = next((name for name, mark in _KEYS.items() if bytes.fromhex(mark) in raw), "x509")
    return Certificate(server, TLS, shape, pem, words)


def read_certificates(given: Any) -> list[Certificate]:
    """Read a RepositoryCertificateList."""
    items = given.get("items") if isinstance(given, dict) else None
    if not isinstance(items, list) or not items:
        raise UserError("items must be a non-empty list of certificates", where=WHERE)
    return [found for each in items for found in _read(each)]


def _read(item: Any) -> list[Certificate]:
    parts = (
        {name: item.get(name) or "" for name in ("serverName", "certType", "certSubType", "certData")}
        if (isinstance(item, dict))
        else {}
    )
    if not parts or not all(isinstance(each, str) for each in parts.values()):
        raise UserError("each item needs serverName, certType and certData, all strings", where=WHERE)
    try:
        data = base64.b64decode(parts["certData"], validate=True).decode().strip()
    except (binascii.Error, ValueError):
        raise UserError("certData is not base64-encoded text; encode it", where=WHERE) from None
    if len(data) > MOST:
        raise UserError("certData is too long; send one certificate at a time", where=WHERE)
    if parts["certType"] == SSH:
        return [_read_ssh(parts, data)]
    if parts["certType"] == TLS:
        return _read_tls(parts["serverName"], data)
    raise UserError("invalid certType; use ssh or https", where=WHERE)


def _read_ssh(parts: dict[str, str], data: str) -> Certificate:
    server, subtype = parts["serverName"], parts["certSubType"]
    if not _SSH_HOST.fullmatch(server) or not _ALGORITHM.fullmatch(subtype):
        raise UserError(
            "invalid serverName or certSubType for ssh; use a host name, and an algorithm such as ssh-ed25519",
            where=WHERE,
        )
    found = _known_host(f"{server} {subtype} {data}") if len(data.split()) == 1 else None
    if found is None:
        raise UserError("certData is not an SSH public key; send the third field of a known_hosts line", where=WHERE)
    return found


def _read_tls(server: str, data: str) -> list[Certificate]:
    blocks = _PEM.findall(data)
    read = [_authority(server, each) for each in blocks]
    found = [each for each in read if each is not None]
    if not _TLS_HOST.fullmatch(server):
        raise UserError("serverName is not a host name; send it without a port", where=WHERE)
    if not found or len(found) != len(read):
        raise UserError("certData is not a certificate; send PEM", where=WHERE)
    return found


async def add(desk: Desk, new: Sequence[Certificate], *, replaces: bool) -> list[Certificate]:
    """Add the entries and return them. argo: replacing the key of a known host needs `upsert`."""
    hosts = [each for each in new if each.type == SSH]
    authorities = [each for each in new if each.type == TLS]
    if hosts:
        added = lambda data: {**data, LINES: _with_hosts(data.get(LINES, ""), hosts, replaces)}  # noqa: E731
        await change_map(desk, KNOWN_HOSTS, added)
    if authorities:
        await change_map(desk, AUTHORITIES, lambda data: _with_authorities(data, authorities, replaces))
    return list(new)


def _with_hosts(text: str, new: Sequence[Certificate], replaces: bool) -> str:
    lines = text.splitlines()
    for each in new:
        others = []
        for line in lines:
            found = _known_host(line)
            is_same_place = found is not None and (found.server, found.subtype) == (each.server, each.subtype)
            if is_same_place and found is not None and found.data != each.data and not replaces:
                told = f"{each.server} has another {each.subtype} key; use upsert to replace it"
                raise UserError(told, where=WHERE)
            if not is_same_place:
                others.append(line)
        lines = [*others, f"{each.server} {each.subtype} {each.data}"]
    return "\n".join(lines) + "\n"


def _with_authorities(data: dict[str, str], new: Sequence[Certificate], replaces: bool) -> dict[str, str]:
    by_server: dict[str, list[str]] = {}
    for each in new:
        by_server.setdefault(each.server, []).append(each.data)
    for server, pems in by_server.items():
        text = "\n".join(pems) + "\n"
        if data.get(server, text).split() != text.split() and not replaces:
            raise UserError(f"{server} has other certificates; use upsert to replace them", where=WHERE)
        data[server] = text
    return data


async def remove(desk: Desk, choice: Choice) -> list[Certificate]:
    """Remove and return all matching entries. argo: an empty filter is an error."""
    if not (choice.host or choice.type or choice.subtype):
        raise UserError("no filter given; pass hostNamePattern, certType or certSubType", where=WHERE)
    gone = await certificates(desk, choice)

    def without_hosts(data: dict[str, str]) -> dict[str, str]:
        kept = [line for line in data.get(LINES, "").splitlines() if not _fits_line(line, choice)]
        return {**data, LINES: "".join(f"{line}\n" for line in kept)}

    if any(each.type == SSH for each in gone):
        await change_map(desk, KNOWN_HOSTS, without_hosts)
    if names := {each.server for each in gone if each.type == TLS}:
        await change_map(desk, AUTHORITIES, lambda data: {key: text for key, text in data.items() if key not in names})
    return gone


def _fits_line(line: str, choice: Choice) -> bool:
    found = _known_host(line)
    return found is not None and choice.fits(found)
