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
from argosy.features.notifications.subscriptions import Destination
from argosy.kube.objects import Manifest, annotation

MOST: Final = 100  # argo: the oldest go first
_KEY: Final = re.compile(r"(?:.*:)?([^:]+):\[\d+\]\.[\w-]+:([^:]*):(.*)", re.DOTALL)


def state_key(trigger: str, place: int, when: str, once_per: str, destination: Destination) -> str:
    """Build the record key. argo: the same format, so that its controller and argosy do not send twice."""
    digest = hashlib.sha1(when.encode(), usedforsecurity=False).digest()
    mark = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    key = f"{trigger}:[{place}].{mark}:{destination.service}:{destination.recipient}"
    return f"{once_per}:{key}" if once_per else key


def read_state(manifest: Manifest) -> dict[str, int]:
    found = _read(annotation(manifest, NOTIFIED))
    return {key: value for key, value in found.items() if isinstance(value, int)}


def notes(manifest: Manifest) -> list[tuple[int, str, str]]:
    """List time, trigger and destination of each recorded message."""
    found = ((value, _KEY.fullmatch(key)) for key, value in read_state(manifest).items())
    return [(value, each[1], f"{each[2]}:{each[3]}") for value, each in found if each is not None]


def read_pending(manifest: Manifest) -> dict[str, dict[str, Any]]:
    found = _read(annotation(manifest, NOTIFYING))
    return {key: value for key, value in found.items() if isinstance(value, dict)}


def _read(text: str) -> dict[str, Any]:
    try:
        found = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def annotations_for(state: Mapping[str, int], pending: Mapping[str, Any]) -> dict[str, str | None]:
    """Build the annotations for a merge patch; None removes an annotation."""
    kept = dict(sorted(state.items(), key=lambda item: item[1])[-MOST:])
    return {NOTIFIED: _written(kept), NOTIFYING: _written(pending)}


def _written(values: Mapping[str, Any]) -> str | None:
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS).decode() if values else None
