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

MIN_VALUE_CHARACTERS: Final = 8  # characters
MIN_DISTINCT_CHARACTERS: Final = 4  # distinct ones: a line of dashes is no secret
MIN_TOKEN_CHARACTERS: Final = 16
MIN_LINE_CHARACTERS: Final = 16  # per line of a multi-line value
MAX_SHORT_VALUE_CHARACTERS: Final = 1 << 10  # characters; longer values are searched by blocks
MAX_TEXTS_PER_SECRET: Final = 1_000  # texts per Secret
MAX_PARSED_CHARACTERS: Final = 1 << 20  # characters of a file that is parsed
HELM_RELEASE_TYPE: Final = "helm.sh/release.v1"
SECRET_TYPE_LABEL: Final = "argocd.argoproj.io/secret-type"
# argo: fields of declared repositories and clusters that are not secret
PUBLIC_DECLARED_FIELDS: Final = {
    "url", "name", "server", "type", "project", "namespaces", "shard", "clusterResources", "insecure", "enableLfs",
    "enableOCI", "proxy", "noProxy", "username", "githubAppID", "githubAppInstallationID", "githubAppEnterpriseBaseUrl",
    "forceHttpBasicAuth", "insecureIgnoreHostKey", "insecureOCIForceHttp", "depth", "useAzureWorkloadIdentity",
}  # fmt: skip
PUBLIC_KEYS: Final = {"ca.crt", "service-ca.crt", "tls.crt", "namespace"}
PUBLIC_FIELD_NAMES: Final = {
    "apiVersion", "command", "serverName", "caData", "certData", "awsClusterName", "roleARN", "name", "kind",
    "certificate-authority-data", "server", "current-context", "username", "user", "host", "hostname", "type",
}  # fmt: skip
# argo: keys of argocd-secret: times, and token ids
PUBLIC_KEY_SUFFIXES: Final = ("Mtime", ".tokens")
# `.env`, ini, properties, YAML: `name = value`; also several on one line, as in a connection string
_NAMED_VALUE: Final = re.compile(r"""^[\s\-]*(?:export\s+)?["']?([\w.\-/]+)["']?\s*[=:](?!//)\s*(\S.*)$""")
_JOINED_PAIRS: Final = re.compile(r"(?:^|[;&,\s])([\w.\-]+)=([^;&,\s]+)")
_URL_CREDENTIALS: Final = re.compile(r"://([^/\s@]+)@")


class LongValue(NamedTuple):
    """A long value, base64-encoded as in the cluster."""

    encoded: str
    is_release: bool = False

    def iter_forms(self) -> Iterator[bytes]:
        """Yield the value as base64 and decoded."""
        yield from ({self.encoded.encode(), self.decode()})

    def decode(self) -> bytes:
        decoded = _decode_base64(self.encoded)
        return self.encoded.encode("utf-8", "surrogatepass") if decoded is None else decoded


class SecretTexts(NamedTuple):
    short: tuple[str, ...]
    long: tuple[LongValue, ...]


def extract_secret_texts(secret: Mapping[str, Any]) -> SecretTexts:
    """Extract all secret texts of a Secret."""
    short: dict[str, None] = {}
    long: list[LongValue] = []
    is_release = secret.get("type") == HELM_RELEASE_TYPE
    for encoded, text in _iter_fields(secret):
        if len(encoded) > MAX_SHORT_VALUE_CHARACTERS:
            long.append(LongValue(encoded, is_release))
            if is_release:
                continue  # compressed: nothing in it is readable
        if text is None:
            short[encoded.strip()] = None
            continue
        for candidate in islice(_iter_text_and_parts(text), MAX_TEXTS_PER_SECRET):
            short[candidate.strip()] = None
    usable = (
        candidate
        for candidate in short
        if MIN_VALUE_CHARACTERS <= len(candidate) <= MAX_SHORT_VALUE_CHARACTERS
        and len(set(candidate)) >= MIN_DISTINCT_CHARACTERS
    )
    return SecretTexts(tuple(islice(usable, MAX_TEXTS_PER_SECRET)), tuple(long))


def _iter_fields(secret: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield each value as stored, and decoded if it is text."""
    metadata = secret.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    is_declared = isinstance(labels, Mapping) and SECRET_TYPE_LABEL in labels
    data, string_data = secret.get("data"), secret.get("stringData")
    for name, encoded in data.items() if isinstance(data, Mapping) else ():
        if not isinstance(encoded, str) or name in PUBLIC_KEYS or str(name).endswith(PUBLIC_KEY_SUFFIXES):
            continue
        if is_declared and name in PUBLIC_DECLARED_FIELDS:  # public, except for a password in a URL
            yield from ((password, password) for password in list_url_credentials(_decode_text(encoded) or ""))
            continue
        yield encoded, _decode_text(encoded)
    for value in string_data.values() if isinstance(string_data, Mapping) else ():
        if isinstance(value, str):
            yield value, value


def list_url_credentials(text: str) -> list[str]:
    """List passwords in URLs, and tokens used as user names."""
    user_infos = (item.partition(":") for item in _URL_CREDENTIALS.findall(text))
    credentials = (password or (user if len(user) >= MIN_TOKEN_CHARACTERS else "") for user, _, password in user_infos)
    return [form for item in credentials if item for form in dict.fromkeys((item, unquote(item)))]


def _decode_base64(encoded: str) -> bytes | None:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None


def _decode_text(encoded: str) -> str | None:
    decoded = _decode_base64(encoded)
    try:
        return None if decoded is None else decoded.decode()
    except UnicodeDecodeError:
        return None


def _iter_text_and_parts(text: str) -> Iterator[str]:
    """Yield the value itself and its parts: JSON leaves, lines, and values of named lines."""
    yield text
    if len(text) > MAX_PARSED_CHARACTERS:
        return
    yield from list_url_credentials(text)
    if text.lstrip()[:1] in ("{", "["):
        try:
            yield from _iter_json_leaves("", orjson.loads(text))
            return
        except (orjson.JSONDecodeError, RecursionError):
            pass
    lines = text.splitlines()
    for line in lines:
        yield from _iter_named_values(line)
    if len(lines) > 1:
        yield from (
            line for raw_line in lines if len(line := raw_line.strip()) >= MIN_LINE_CHARACTERS and line[:5] != "-----"
        )


def _iter_named_values(line: str) -> Iterator[str]:
    pairs: Iterable[tuple[str, str]] = _JOINED_PAIRS.findall(line)
    if match := _NAMED_VALUE.match(line):
        pairs = [(match[1], match[2]), *pairs]
    for name, value in pairs:
        if name not in PUBLIC_FIELD_NAMES and name.lower() not in PUBLIC_FIELD_NAMES:
            yield value.strip().rstrip(",").strip("\"'")


def _iter_json_leaves(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for field_name, item in value.items():
            yield from _iter_json_leaves(field_name, item)
    elif isinstance(value, list):
        for item in value:
            yield from _iter_json_leaves(name, item)
    elif isinstance(value, str) and name not in PUBLIC_FIELD_NAMES:
        yield value
        yield from list_url_credentials(value)
