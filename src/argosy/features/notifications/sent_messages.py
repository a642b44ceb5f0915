"""What was sent to whom, kept on the object itself.

In: annotations. Out: annotations. Never: forgets what is still true before what is not.

A message is claimed before it is sent, and the claim is written only over what was read: of two who would send it, one
does, and after a sudden end nobody sends it again. What was on its way then is told as unclear.
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
    """argo: the same text, so that its own controller and this one do not send what the other has sent."""
    digest = hashlib.sha1(when.encode(), usedforsecurity=False).digest()
    mark = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    key = f"{trigger}:[{place}].{mark}:{destination.service}:{destination.recipient}"
    return f"{once_per}:{key}" if once_per else key


def read_state(manifest: Manifest) -> dict[str, int]:
    found = _read(annotation(manifest, NOTIFIED))
    return {key: value for key, value in found.items() if isinstance(value, int)}


def notes(manifest: Manifest) -> list[tuple[int, str, str]]:
    """When, by which trigger and to whom something was sent, as far as it is noted."""
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
    """For a merge patch; None takes one away."""
    kept = dict(sorted(state.items(), key=lambda item: item[1])[-MOST:])
    return {NOTIFIED: _written(kept), NOTIFYING: _written(pending)}


def _written(values: Mapping[str, Any]) -> str | None:
    return orjson.dumps(values, option=orjson.OPT_SORT_KEYS).decode() if values else None
