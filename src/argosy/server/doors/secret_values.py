"""Which bytes are secret: the values of Secrets, in every form that they may be told in.

In: Secrets, and words that everybody may know. Out: needles, the longest first. Never: a value so short, or so public,
that hiding it would hide something else.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import orjson

LEAST: Final = 8  # characters
WORD: Final = re.compile(r"[A-Za-z]{8,}")
LEAST_LINE: Final = 16  # of a value of several lines
MOST_VALUE: Final = 64 << 10  # bytes; of a longer one (a release of Helm) the beginning is looked for
LABEL: Final = "argocd.argoproj.io/secret-type"
# argo: fields of declared repositories and clusters that are no secrets
DECLARED: Final = {
    "url", "name", "server", "type", "project", "namespaces", "shard", "clusterResources", "insecure", "enableLfs",
    "enableOCI", "proxy", "noProxy", "username", "githubAppID", "githubAppInstallationID", "githubAppEnterpriseBaseUrl",
    "forceHttpBasicAuth", "insecureIgnoreHostKey", "insecureOCIForceHttp", "depth", "useAzureWorkloadIdentity",
}  # fmt: skip
CERTIFICATES: Final = {"ca.crt", "service-ca.crt", "tls.crt", "namespace"}
PUBLIC_LEAVES: Final = {
    "apiVersion", "command", "serverName", "caData", "certData", "awsClusterName", "roleARN", "name"
}  # fmt: skip
# argo: of argocd-secret: times, and ids of tokens
PUBLIC_ENDINGS: Final = ("Mtime", ".tokens")


@cache
def shipped_words() -> frozenset[str]:
    """Words of our own pages and of Argo CD's kinds: whoever puts one into a Secret hides no page with it."""
    import argosy.schema.definitions

    server, definitions = Path(__file__).parents[1], Path(argosy.schema.definitions.__file__).parent
    files = [*server.glob("templates/**/*.html"), *server.glob("static/*"), *server.glob("api/*.py")]
    files += definitions.glob("*.argoproj.io.yaml")
    return frozenset(word for file in files for word in WORD.findall(file.read_text(errors="replace")))


def needles(secrets: Iterable[Mapping[str, Any]], public: Collection[str] = ()) -> tuple[bytes, ...]:
    found: dict[bytes, None] = {}
    for secret in secrets:
        for value in _values(secret):
            if value not in public and value not in shipped_words():
                found.update(dict.fromkeys(_forms(value)))
    return tuple(sorted(found, key=len, reverse=True))


def _values(secret: Mapping[str, Any]) -> Iterator[str]:
    metadata = secret.get("metadata") or {}
    is_declared = LABEL in (metadata.get("labels") or {})
    data = secret.get("data")
    for name, encoded in (data.items() if isinstance(data, Mapping) else ()):
        if name in CERTIFICATES or name.endswith(PUBLIC_ENDINGS) or (is_declared and name in DECLARED):
            continue
        text = _decoded(encoded)
        if text is None:
            if isinstance(encoded, str):
                yield encoded  # bytes, or no base64 at all: as it is
            continue
        yield from _inside(text)
    plain = secret.get("stringData")
    for value in (plain.values() if isinstance(plain, Mapping) else ()):
        if isinstance(value, str):
            yield from _inside(value)


def _inside(text: str) -> Iterator[str]:
    """A value that is a JSON document is one of its leaves, too."""
    yield text
    if text[:1] not in "{[" or len(text) > MOST_VALUE:
        return
    try:
        yield from _leaves("", orjson.loads(text))
    except (orjson.JSONDecodeError, RecursionError):
        return


def _leaves(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner, each in value.items():
            yield from _leaves(inner, each)
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(name, each)
    elif isinstance(value, str) and name not in PUBLIC_LEAVES:
        yield value


def _decoded(encoded: Any) -> str | None:
    try:
        return base64.b64decode(str(encoded), validate=True).decode()
    except (binascii.Error, ValueError):
        return None


def _forms(value: str) -> Iterator[bytes]:
    value = value[:MOST_VALUE].strip()
    if len(value) < LEAST:
        return
    raw = value.encode("utf-8", "surrogatepass")
    yield raw
    yield from _encoded(raw)
    for told in (orjson.dumps(value).decode()[1:-1], html.escape(value), quote(value, safe="")):
        if told != value:
            yield told.encode()
    if "\n" in value:
        for line in value.splitlines():
            line = line.strip()
            if len(line) >= LEAST_LINE and not line.startswith("-----"):
                yield line.encode()


def _encoded(raw: bytes) -> Iterator[bytes]:
    """As base64, at whichever place of a longer text it begins; only what does not depend on what is around it."""
    for skipped in range(3):
        whole = raw[skipped : skipped + (len(raw) - skipped) // 3 * 3]
        if len(whole) >= LEAST - 2:
            yield base64.b64encode(whole)
