"""Explains an Application's health with the message of the object that it names as the cause.

In: an Application's health message, live objects. Out: a more specific sentence, or the message as it was. Never:
assesses anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from argosy.gitops.application_client.object_health_sentence import summarize_health_reason
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

GetLiveObject = Callable[[ResourceKey], Manifest | None]
CAUSED_BY_PATTERN: Final = re.compile(
    r"Caused by (?:(?P<group>[^/:,\s]+)/)?(?P<kind>\w+):(?:(?P<namespace>[^/:,\s]+)/)?(?P<name>[^/:,\s]+)"
)


def explain_health_message(get_live: GetLiveObject, message: str) -> str:
    """argo: the message only names the object; the object itself has the details."""
    match = CAUSED_BY_PATTERN.match(message)
    if match is None:
        return message
    key = ResourceKey(match["group"] or "", match["kind"], match["namespace"] or "", match["name"])
    detail = _find_detail(get_live(key) or {})
    return f"{key.kind}/{key.name}: {detail}" if detail else message


def _find_detail(manifest: Manifest) -> str:
    if manifest and (reason_text := summarize_health_reason(manifest, "")):
        return reason_text
    conditions = as_mappings(as_mapping(manifest.get("status")).get("conditions"))
    unmet = (condition for condition in conditions if condition.get("status") == "False" and condition.get("message"))
    return next((str(condition["message"]).replace("\n", " ") for condition in unmet), "")
