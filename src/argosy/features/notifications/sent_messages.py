"""Records of sent and pending messages in annotations of the object.

In: annotations. Out: annotations. Never: drops a newer record before an older one.

A message is claimed before it is sent, and the claim is written with the resourceVersion that was read. So only one of
two senders sends it, and after a crash it is not sent again. A message that was pending at a crash is reported as
unclear.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from argosy.annotations import NOTIFIED, NOTIFYING
from argosy.features.notifications.subscriptions import NotificationDestination
from argosy.kube.objects import Manifest, get_annotation

MAX_RECORDED_MESSAGES: Final = 100  # argo: the oldest go first
_STATE_KEY_PATTERN: Final = re.compile(r"(?:.*:)?([^:]+):\[\d+\]\.[\w-]+:([^:]*):(.*)", re.DOTALL)


def build_state_key(trigger: str, index: int, when: str, once_per: str, destination: NotificationDestination) -> str:
    """Build the record key. argo: the same format, so that its controller and argosy do not send twice."""
    digest = hashlib.sha1(when.encode(), usedforsecurity=False).digest()
    condition_hash = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    key = f"{trigger}:[{index}].{condition_hash}:{destination.service}:{destination.recipient}"
    return f"{once_per}:{key}" if once_per else key


def read_state(manifest: Manifest) -> dict[str, int]:
    records = _parse_json_map(get_annotation(manifest, NOTIFIED))
    return {key: value for key, value in records.items() if isinstance(value, int)}


def list_sent_messages(manifest: Manifest) -> list[tuple[int, str, str]]:
    """List time, trigger and destination of each recorded message."""
    matches = ((value, _STATE_KEY_PATTERN.fullmatch(key)) for key, value in read_state(manifest).items())
    return [
        (value, key_match[1], f"{key_match[2]}:{key_match[3]}") for value, key_match in matches if key_match is not None
    ]


def read_pending(manifest: Manifest) -> dict[str, dict[str, Any]]:
    claims = _parse_json_map(get_annotation(manifest, NOTIFYING))
    return {key: value for key, value in claims.items() if isinstance(value, dict)}


def _parse_json_map(text: str) -> dict[str, Any]:
    try:
        parsed = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def build_annotations(state: Mapping[str, int], pending: Mapping[str, Any]) -> dict[str, str | None]:
    """Build the annotations for a merge patch; None removes an annotation."""
    kept_records = dict(sorted(state.items(), key=lambda item: item[1])[-MAX_RECORDED_MESSAGES:])
    return {NOTIFIED: _dump_json(kept_records), NOTIFYING: _dump_json(pending)}


def _dump_json(values: Mapping[str, Any]) -> str | None:
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS).decode() if values else None
