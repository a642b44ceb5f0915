"""Extracts the secret texts of a Secret: its values, and the values in files such as JSON or .env.

In: a Secret. Out: texts, short and long. Never: a value so short or simple that masking it would mask other text; a
field with a public name.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import orjson

LEAST: Final = 8  # characters
LEAST_SIGNS: Final = 4  # distinct ones: a line of dashes is no secret
LEAST_TOKEN: Final = 16
LEAST_LINE: Final = 16  # per line of a multi-line value
LONG: Final = 1 << 10  # characters; longer values are searched by blocks
MOST_TAKEN: Final = 1_000  # texts per Secret
MOST_READ: Final = 1 << 20  # characters of a file that is parsed
RELEASE: Final = "helm.sh/release.v1"
LABEL: Final = "argocd.argoproj.io/secret-type"
# argo: fields of declared repositories and clusters that are not secret
DECLARED: Final = {
    "url", "name", "server", "type", "project", "namespaces", "shard", "clusterResources", "insecure", "enableLfs",
    "enableOCI", "proxy", "noProxy", "username", "githubAppID", "githubAppInstallationID", "githubAppEnterpriseBaseUrl",
    "forceHttpBasicAuth", "insecureIgnoreHostKey", "insecureOCIForceHttp", "depth", "useAzureWorkloadIdentity",
}  # fmt: skip
CERTIFICATES: Final = {"ca.crt", "service-ca.crt", "tls.crt", "namespace"}
PUBLIC_LEAVES: Final = {
    "apiVersion", "command", "serverName", "caData", "certData", "awsClusterName", "roleARN", "name", "kind",
    "certificate-authority-data", "server", "current-context", "username", "user", "host", "hostname", "type",
}  # fmt: skip
# argo: keys of argocd-secret: times, and token ids
PUBLIC_ENDINGS: Final = ("Mtime", ".tokens")
# `.env`, ini, properties, YAML: `name = value`; also several on one line, as in a connection string
_NAMED: Final = re.compile(r"""^[\s\-]*(?:export\s+)?["']?([\w.\-/]+)["']?\s*[=:](?!//)\s*(\S.*)$""")
_JOINED: Final = re.compile(r"(?:^|[;&,\s])([\w.\-]+)=([^;&,\s]+)")
_IN_ADDRESS: Final = re.compile(r"://([^/\s@]+)@")


class Long(NamedTuple):
    """A long value, base64-encoded as in the cluster."""

    encoded: str
    is_release: bool = False

    def forms(self) -> Iterator[bytes]:
        """Yield the value as base64 and decoded."""
        yield from ({self.encoded.encode(), self.plain()})

    def plain(self) -> bytes:
        found = _bytes(self.encoded)
        return self.encoded.encode("utf-8", "surrogatepass") if found is None else found


class Values(NamedTuple):
    short: tuple[str, ...]
    long: tuple[Long, ...]


def values(secret: Mapping[str, Any]) -> Values:
    """Extract all secret texts of a Secret."""
    short: dict[str, None] = {}
    long: list[Long] = []
    is_release = secret.get("type") == RELEASE
    for encoded, text in _fields(secret):
        if len(encoded) > LONG:
            long.append(Long(encoded, is_release))
            if is_release:
                continue  # compressed: nothing in it is readable
        if text is None:
            short[encoded.strip()] = None
            continue
        for each in islice(_inside(text), MOST_TAKEN):
            short[each.strip()] = None
    kept = (each for each in short if LEAST <= len(each) <= LONG and len(set(each)) >= LEAST_SIGNS)
    return Values(tuple(islice(kept, MOST_TAKEN)), tuple(long))


def _fields(secret: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield each value as stored, and decoded if it is text."""
    metadata = secret.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    is_declared = isinstance(labels, Mapping) and LABEL in labels
    data, plain = secret.get("data"), secret.get("stringData")
    for name, encoded in data.items() if isinstance(data, Mapping) else ():
        if not isinstance(encoded, str) or name in CERTIFICATES or str(name).endswith(PUBLIC_ENDINGS):
            continue
        if is_declared and name in DECLARED:  # public, except for a password in a URL
            yield from ((each, each) for each in in_address(_text(encoded) or ""))
            continue
        yield encoded, _text(encoded)
    for value in plain.values() if isinstance(plain, Mapping) else ():
        if isinstance(value, str):
            yield value, value


def in_address(text: str) -> list[str]:
    """List passwords in URLs, and tokens used as user names."""
    found = (each.partition(":") for each in _IN_ADDRESS.findall(text))
    told = (password or (user if len(user) >= LEAST_TOKEN else "") for user, _, password in found)
    return [form for each in told if each for form in dict.fromkeys((each, unquote(each)))]


def _bytes(encoded: str) -> bytes | None:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None


def _text(encoded: str) -> str | None:
    found = _bytes(encoded)
    try:
        return None if found is None else found.decode()
    except UnicodeDecodeError:
        return None


def _inside(text: str) -> Iterator[str]:
    """Yield the value itself and its parts: JSON leaves, lines, and values of named lines."""
    yield text
    if len(text) > MOST_READ:
        return
    yield from in_address(text)
    if text.lstrip()[:1] in ("{", "["):
        try:
            yield from _leaves("", orjson.loads(text))
            return
        except (orjson.JSONDecodeError, RecursionError):
            pass
    lines = text.splitlines()
    for line in lines:
        yield from _named(line)
    if len(lines) > 1:
        yield from (line for each in lines if len(line := each.strip()) >= LEAST_LINE and line[:5] != "-----")


def _named(line: str) -> Iterator[str]:
    pairs: Iterable[tuple[str, str]] = _JOINED.findall(line)
    if whole := _NAMED.match(line):
        pairs = [(whole[1], whole[2]), *pairs]
    for name, value in pairs:
        if name not in PUBLIC_LEAVES and name.lower() not in PUBLIC_LEAVES:
            yield value.strip().rstrip(",").strip("\"'")


def _leaves(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner, each in value.items():
            yield from _leaves(inner, each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(name, each)
    elif isinstance(value, str) and name not in PUBLIC_LEAVES:
        yield value
        yield from in_address(value)
