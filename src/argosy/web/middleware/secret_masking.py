"""Redacts Secrets by structure before serialization. Redaction by value comes after it: observability/redaction.

In: documents. Out: the same with placeholders. Never: trusts the apiVersion of an object; lets a Secret through because
it is malformed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import orjson

from argosy.annotations import LAST_APPLIED
from argosy.gitops.diff.secret_masks import SHORTEST, masked
from argosy.kube.names import ResourceKey
from argosy.web.site import Site

MOST_DEPTH: Final = 200
_WORDS: Final = ("Secret", "stringData", LAST_APPLIED, "\\u00")  # the last: an escaped word
# A list row names a Secret but contains no values; so look for the fields that contain values, too.
_NAMES: Final = re.compile(rb"""kind\\*"\s*:\s*\\*"Secret|SecretList|\\u00""")
_HOLDS: Final = re.compile(rb"""["\\](?:data|stringData)\\*"\s*:|last-applied-configuration|\\u00""")


def masked_json(document: Any, annotations: Collection[str] = ()) -> bytes:
    """Serialize to JSON with every Secret redacted. A document that mentions no Secret is not walked."""
    data = orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)
    if _speaks_of_secrets(data, annotations):
        data = orjson.dumps(without_secrets(document, annotations), option=orjson.OPT_NON_STR_KEYS)
    return data


def sensitive(site: Site) -> tuple[str, ...]:
    """argo: resource.sensitive.mask.annotations of argocd-cm."""
    settings = site.lookout.cache.get(ResourceKey("", "ConfigMap", site.desk.control, "argocd-cm"))
    text = ((settings or {}).get("data") or {}).get("resource.sensitive.mask.annotations") or ""
    return tuple(each.strip() for each in str(text).split(",") if each.strip())


def _speaks_of_secrets(data: bytes, annotations: Collection[str]) -> bool:
    if b"stringData" in data:
        return True
    return _NAMES.search(data) is not None and (bool(annotations) or _HOLDS.search(data) is not None)


def without_secrets(document: Any, annotations: Collection[str] = ()) -> Any:
    """Redact every Secret in a document at any depth, also as JSON inside a string."""
    return _Walk(annotations).value(document, 0)


class _Walk:
    def __init__(self, annotations: Collection[str]) -> None:
        self._annotations = annotations

    def value(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self._text(value, depth) if len(value) > 20 and value[0] in "{[ \n\t" else value
        if kind in (int, float, bool) or value is None:
            return value
        if depth > MOST_DEPTH:
            return SHORTEST
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, list | tuple):
            return self._items(value, depth)
        return value

    def _items(self, items: Sequence[Any], depth: int) -> Any:
        made = [self.value(each, depth + 1) for each in items]
        unchanged = all(new is old for new, old in zip(made, items))
        return items if unchanged else made

    def _mapping(self, mapping: Mapping[Any, Any], depth: int) -> Any:
        kind = mapping.get("kind")
        if kind == "Secret" and ("data" in mapping or "stringData" in mapping or "metadata" in mapping):
            return self._secret(mapping)
        if kind == "SecretList" and isinstance(mapping.get("items"), list | tuple):
            return {**mapping, "items": [self._secret(each) for each in mapping["items"]]}
        made = {name: self.value(each, depth + 1) for name, each in mapping.items()}
        if isinstance(made.get("stringData"), Mapping):  # only Secrets have this field
            made["stringData"] = dict.fromkeys(made["stringData"], SHORTEST)
        given = made.get("annotations")
        if isinstance(given, Mapping) and LAST_APPLIED in given and _is_odd(given[LAST_APPLIED]):
            made["annotations"] = {**given, LAST_APPLIED: SHORTEST}
        unchanged = all(made[name] is each for name, each in mapping.items())
        return mapping if unchanged else made

    def _secret(self, secret: Any) -> Any:
        if not isinstance(secret, Mapping):
            return SHORTEST
        try:
            # treat it as a v1 Secret, whatever version it claims
            shaped = {**secret, "kind": "Secret", "apiVersion": "v1"}
            (made,) = masked([shaped], self._annotations)
            hidden = dict(made or {})
        except Exception:  # cannot be redacted field by field: hide everything
            hidden = {"metadata": {"name": _name(secret)}}
        if isinstance(given := secret.get("data"), Mapping) and isinstance(hidden.get("data"), Mapping):
            # placeholders of a diff already show which values differ: keep them
            shown = hidden["data"].items()
            hidden["data"] = {name: given[name] if _is_mark(given.get(name)) else each for name, each in shown}
        for field in ("kind", "apiVersion"):
            if field in secret:
                hidden[field] = secret[field]
            else:
                hidden.pop(field, None)
        return hidden

    def _text(self, text: str, depth: int) -> str:
        """Redact JSON in a string if it mentions Secrets."""
        if not any(word in text for word in _WORDS):
            return text
        try:
            inner = orjson.loads(text)
        except orjson.JSONDecodeError:
            return text  # redaction by value still applies
        if not isinstance(inner, dict | list):
            return text
        made = self.value(inner, depth + 1)
        return text if made is inner else orjson.dumps(made).decode()


def _is_odd(applied: Any) -> bool:
    """True if a last-applied annotation mentions a Secret and is not valid JSON."""
    if not isinstance(applied, str) or '"Secret"' not in applied:
        return False
    try:
        orjson.loads(applied)
    except orjson.JSONDecodeError:
        return True
    return False


def _is_mark(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= len(SHORTEST) and not value.strip("+")


def _name(secret: Mapping[Any, Any]) -> str:
    metadata = secret.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""
