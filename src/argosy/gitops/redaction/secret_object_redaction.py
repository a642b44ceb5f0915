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
from argosy.gitops.diff.secret_masks import mask_secrets
from argosy.kube.controller.cache import InformerCache
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from argosy.observability.redaction import MASK

MAX_DEPTH: Final = 200
_SECRET_WORDS: Final = ("Secret", "stringData", LAST_APPLIED, "\\u00")  # the last: an escaped word
# A list row names a Secret but contains no values; so look for the fields that contain values, too.
_SECRET_KIND_PATTERN: Final = re.compile(rb"""kind\\*"\s*:\s*\\*"Secret|SecretList|\\u00""")
_SECRET_DATA_PATTERN: Final = re.compile(rb"""["\\](?:data|stringData)\\*"\s*:|last-applied-configuration|\\u00""")


def serialize_masked(document: Any, annotations: Collection[str] = ()) -> bytes:
    """Serialize to JSON with every Secret redacted. A document that mentions no Secret is not walked."""
    data = orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)
    if _mentions_secrets(data, annotations):
        data = orjson.dumps(redact_secrets(document, annotations), option=orjson.OPT_NON_STR_KEYS)
    return data


def list_sensitive_annotations(cache: InformerCache, control_namespace: str) -> tuple[str, ...]:
    """argo: resource.sensitive.mask.annotations of argocd-cm."""
    settings = cache.get(ResourceKey(*CONFIG_MAP, control_namespace, "argocd-cm"))
    text = ((settings or {}).get("data") or {}).get("resource.sensitive.mask.annotations") or ""
    return tuple(name.strip() for name in str(text).split(",") if name.strip())


def _mentions_secrets(data: bytes, annotations: Collection[str]) -> bool:
    if b"stringData" in data or (b'"manifests"' in data and b"Secret" in data):
        return True
    return _SECRET_KIND_PATTERN.search(data) is not None and (
        bool(annotations) or _SECRET_DATA_PATTERN.search(data) is not None
    )


def redact_secrets(document: Any, annotations: Collection[str] = ()) -> Any:
    """Redact every Secret in a document at any depth, also as JSON inside a string."""
    return _SecretWalker(annotations).mask_value(document, 0)


class _SecretWalker:
    def __init__(self, annotations: Collection[str]) -> None:
        self._annotations = annotations

    def mask_value(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self._mask_text(value, depth) if len(value) > 20 and value[0] in "{[ \n\r\t" else value
        if kind in (int, float, bool) or value is None:
            return value
        if depth > MAX_DEPTH:
            return MASK
        if isinstance(value, Mapping):
            return self._mask_mapping(value, depth)
        if isinstance(value, list | tuple):
            return self._mask_items(value, depth)
        return value

    def _mask_items(self, items: Sequence[Any], depth: int) -> Any:
        masked_items = [self.mask_value(item, depth + 1) for item in items]
        unchanged = all(new is old for new, old in zip(masked_items, items))
        return items if unchanged else masked_items

    def _mask_mapping(self, mapping: Mapping[Any, Any], depth: int) -> Any:
        kind = mapping.get("kind")
        if kind == "Secret" and ("data" in mapping or "stringData" in mapping or "metadata" in mapping):
            return self._mask_secret(mapping)
        if kind == "SecretList" and isinstance(mapping.get("items"), list | tuple):
            return {**mapping, "items": [self._mask_secret(item) for item in mapping["items"]]}
        masked_mapping = {name: self.mask_value(item, depth + 1) for name, item in mapping.items()}
        if isinstance(masked_mapping.get("stringData"), Mapping):  # only Secrets have this field
            masked_mapping["stringData"] = dict.fromkeys(masked_mapping["stringData"], MASK)
        if isinstance(texts := masked_mapping.get("manifests"), list | tuple) and any(map(_is_unreadable, texts)):
            # argo: texts of manifests, in an operation
            masked_mapping["manifests"] = [MASK if _is_unreadable(text) else text for text in texts]
        annotations = masked_mapping.get("annotations")
        if (
            isinstance(annotations, Mapping)
            and LAST_APPLIED in annotations
            and _is_unreadable_secret(annotations[LAST_APPLIED])
        ):
            masked_mapping["annotations"] = {**annotations, LAST_APPLIED: MASK}
        unchanged = all(masked_mapping[name] is item for name, item in mapping.items())
        return mapping if unchanged else masked_mapping

    def _mask_secret(self, secret: Any) -> Any:
        if not isinstance(secret, Mapping):
            return MASK
        try:
            # treat it as a v1 Secret, whatever version it claims
            v1_secret = {**secret, "kind": "Secret", "apiVersion": "v1"}
            (masked_secret,) = mask_secrets([v1_secret], self._annotations)
            hidden = dict(masked_secret or {})
        except Exception:  # cannot be redacted field by field: hide everything
            hidden = {"metadata": {"name": _get_name(secret)}}
        if isinstance(data := secret.get("data"), Mapping) and isinstance(hidden.get("data"), Mapping):
            # placeholders of a diff already show which values differ: keep them
            masked_data = hidden["data"].items()
            hidden["data"] = {
                name: data[name] if _is_placeholder(data.get(name)) else item for name, item in masked_data
            }
        for field in ("kind", "apiVersion"):
            if field in secret:
                hidden[field] = secret[field]
            else:
                hidden.pop(field, None)
        return hidden

    def _mask_text(self, text: str, depth: int) -> str:
        """Redact JSON in a string if it mentions Secrets."""
        if not any(word in text for word in _SECRET_WORDS):
            return text
        try:
            inner = orjson.loads(text)
        except orjson.JSONDecodeError:
            return text  # redaction by value still applies
        if not isinstance(inner, dict | list):
            return text
        masked_value = self.mask_value(inner, depth + 1)
        return text if masked_value is inner else orjson.dumps(masked_value).decode()


def _is_unreadable_secret(last_applied: Any) -> bool:
    """True if a last-applied annotation mentions a Secret and is not valid JSON."""
    return isinstance(last_applied, str) and '"Secret"' in last_applied and _is_unreadable(last_applied)


def _is_unreadable(text: Any) -> bool:
    """True if the text mentions a Secret and is not valid JSON."""
    if not isinstance(text, str) or not any(word in text for word in _SECRET_WORDS):
        return False
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return True
    return False


def _is_placeholder(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= len(MASK) and not value.strip("+")


def _get_name(secret: Mapping[Any, Any]) -> str:
    metadata = secret.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, Mapping) else ""
