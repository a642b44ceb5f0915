"""Finds the Secrets in manifests that an operation of an Application carries.

In: an Application. Out: the secret texts. Never: fails on a malformed manifest; that one is masked as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.observability.redaction.secret_text_extraction import extract_secret_texts

_SECRET_WORDS: Final = ("Secret", "\\u00")  # the last: an escaped word
_MAX_LIST_DEPTH: Final = 20


class LocalManifestSecrets:
    """Reads them once for each list of manifests, because an Application changes often and its manifests do not."""

    def __init__(self) -> None:
        self._secrets: dict[ResourceKey, tuple[tuple[Any, ...], dict[str, dict[str, str]]]] = {}

    def read(self, application: Manifest) -> dict[str, dict[str, str]]:
        """Return the fields of a Secret with all values of the Secrets; empty if there are no manifests."""
        key, texts = key_of(application), list_local_manifests(application)
        if not texts:
            self._secrets.pop(key, None)
            return {}
        cached = self._secrets.get(key)
        if cached is None or cached[0] != texts:
            cached = self._secrets[key] = texts, build_secret_of_local_manifests(texts)
        return cached[1]


def list_local_manifests(application: Manifest) -> tuple[Any, ...]:
    """Return the manifests of the requested operation, and of the last one."""
    state = as_mapping(as_mapping(application.get("status")).get("operationState"))
    operations = (as_mapping(application.get("operation")), as_mapping(state.get("operation")))
    manifest_lists = (as_mapping(operation.get("sync")).get("manifests") for operation in operations)
    return tuple(text for texts in manifest_lists if isinstance(texts, list) for text in texts)


def build_secret_of_local_manifests(texts: tuple[Any, ...]) -> dict[str, dict[str, str]]:
    """Return the fields of one Secret that contains all values of the Secrets in these manifests."""
    short, long = dict[str, None](), dict[str, None]()
    for text in texts:
        for secret in _iter_secrets(_parse(text), 0):
            secret_texts = extract_secret_texts(secret)
            short |= dict.fromkeys(secret_texts.short)
            long |= dict.fromkeys(value.encoded for value in secret_texts.long)
    return {
        "stringData": {f"local-{number}": text for number, text in enumerate(short)},
        "data": {f"local-{number}": text for number, text in enumerate(long)},
    }


def _parse(text: Any) -> Any:
    if not isinstance(text, str) or not any(word in text for word in _SECRET_WORDS):
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _iter_secrets(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict) or depth > _MAX_LIST_DEPTH:
        return
    if value.get("kind") == "Secret":
        yield value
    items = value.get("items")
    for item in items if isinstance(items, list) else ():
        is_untyped = value.get("kind") == "SecretList" and isinstance(item, dict)
        yield from _iter_secrets({**item, "kind": "Secret"} if is_untyped else item, depth + 1)
